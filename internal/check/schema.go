package check

import (
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/imgforge/imgforge/internal/yamlpos"
)

// Keys are the keys of a check, in the order that messages name them.
var Keys = yamlpos.Keys{
	{Name: "use", Form: useForm(), Doc: "A built-in check, by name."},
	{Name: "with", Form: &jsonschema.Schema{Type: "object", AdditionalProperties: yamlpos.ScalarForm()}, Doc: "Options of the built-in."},
	{Name: "name", Form: yamlpos.StringForm(nameForm.String()), Doc: "The check's name; a built-in's own if left out. A later check of a name stands for the earlier one."},
	{Name: "kind", Form: yamlpos.OneOfForm(string(CPU), string(GPU)), Doc: "Where the command runs; cpu if left out."},
	{Name: "run", Form: yamlpos.StringForm(`\S`), Doc: "A command, given to sh with set -eu."},
	{Name: "user", Form: yamlpos.ScalarForm(), Doc: "Who runs the command: root, nobody, a number, or two as 1000:1000; the image's own user if left out."},
	{Name: "expect", Form: expectKeys.Schema(), Doc: "What the command must do; end with 0 if left out."},
	{Name: "timeout", Form: yamlpos.StringForm(`^[0-9.]+(s|m|h)`), Doc: "When it is killed: 1s to 1h."},
	{Name: "severity", Form: yamlpos.OneOfForm(string(Error), string(Warning)), Doc: "What a failure means: error keeps the image from being promoted."},
	{Name: "when", Form: &jsonschema.Schema{Type: "object", AdditionalProperties: yamlpos.ScalarForm()}, Doc: "Only in cells that have all these values, or values inside these ranges."},
}

var expectKeys = yamlpos.Keys{
	{Name: "exit", Form: yamlpos.ScalarForm(), Doc: "The exit code; 0 if left out."},
	{Name: "stdout", Form: yamlpos.StringForm(""), Doc: "All of standard output, without white space around it."},
	{Name: "match", Form: yamlpos.StringForm(`\S`), Doc: "A regular expression that standard output matches somewhere."},
	{Name: "json", Form: &jsonschema.Schema{Type: "object", AdditionalProperties: yamlpos.ScalarForm()}, Doc: "Values of standard output read as JSON, by path: devices.0.name."},
	{Name: "version", Form: yamlpos.StringForm(`\S`), Doc: "A range that the first version in standard output lies in."},
}

func useForm() *jsonschema.Schema {
	return yamlpos.OneOfForm(builtinNames()...)
}

// Form is the form of a list of checks: names of built-ins, or mappings.
func Form() *jsonschema.Schema {
	s := Keys.Schema()
	s.OneOf = []*jsonschema.Schema{{Required: []string{"use"}}, {Required: []string{"run", "name"}}}
	return yamlpos.ListForm(yamlpos.AnyForm(useForm(), s), 0)
}
