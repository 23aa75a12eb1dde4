package recipe

import (
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/imgforge/imgforge/internal/check"
	"github.com/imgforge/imgforge/internal/yamlpos"
)

// Schema is the form of a recipe file, for editors.
func Schema() *jsonschema.Schema {
	s := recipeKeys.Schema()
	s.Title, s.Description = "imgforge recipe", "One thing to layer into an image. ${cuda}, ${torch}, ${python} and so on are filled in under debs, wheels, limits, env and run."
	return s
}

// The tables of keys, in the order that messages name them.
var (
	recipeKeys = yamlpos.Keys{
		{Name: "name", Needed: true, Form: yamlpos.StringForm(recipeName.String()), Doc: "The file's name without .yaml."},
		{Name: "summary", Needed: true, Form: text(), Doc: "One line."},
		{Name: "requires", Form: texts(), Doc: "Recipes that must be listed too."},
		{Name: "conflicts", Form: texts(), Doc: "Recipes that must not be listed."},
		{Name: "debs", Form: texts(), Doc: "Debian packages, by bare name: the lock chooses version and architecture."},
		{Name: "wheels", Form: texts(), Doc: "PEP 508 requirements: name, extras, versions, marker; no URLs."},
		{Name: "limits", Form: texts(), Doc: "PEP 508 constraints: they bound a version and pull in nothing."},
		{Name: "env", Form: yamlpos.MapForm(envName.String(), yamlpos.StringForm("")), Doc: "Environment of the image."},
		{Name: "files", Form: yamlpos.ListForm(fileForm(), 0), Doc: "Files, directories and links, owned by root."},
		{Name: "run", Form: yamlpos.ListForm(runKeys.Schema(), 0), Doc: "Commands, run as root, without a network, after all packages and files are in place."},
		{Name: "cmd", Form: yamlpos.ListForm(yamlpos.StringForm(""), 0), Doc: "The image's default command; the last recipe that has one wins."},
		{Name: "ports", Form: yamlpos.ListForm(yamlpos.StringForm(portForm.String()), 0), Doc: "Exposed ports, such as 8888/tcp."},
		{Name: "checks", Form: check.Form(), Doc: "What proves that the recipe works: built-in checks and commands, run on every image that has it."},
	}
	runKeys = yamlpos.Keys{
		{Name: "name", Needed: true, Form: text(), Doc: "What is shown while it runs."},
		{Name: "run", Needed: true, Form: text(), Doc: "Given to sh with set -eu."},
	}
	fileKeys = yamlpos.Keys{
		{Name: "path", Needed: true, Form: yamlpos.StringForm("^/."), Doc: "Where it goes: absolute."},
		{Name: "mode", Form: yamlpos.StringForm(octal.String()), Doc: "Octal, in quotes: \"0755\"; \"0644\" for a file and \"0755\" for a directory if left out."},
		{Name: "from", Form: yamlpos.StringForm("^files/"), Doc: "A file beside the recipe, below files/."},
		{Name: "content", Form: yamlpos.StringForm(""), Doc: "The text itself; no templates."},
		{Name: "link", Form: text(), Doc: "The target of a symbolic link."},
		{Name: "dir", Form: &jsonschema.Schema{Enum: []any{true}}, Doc: "A directory."},
	}
)

func text() *jsonschema.Schema { return yamlpos.StringForm(`\S`) }

func texts() *jsonschema.Schema { return yamlpos.ListForm(text(), 0) }

func fileForm() *jsonschema.Schema {
	s := fileKeys.Schema()
	for _, kind := range []string{"from", "content", "link", "dir"} {
		s.OneOf = append(s.OneOf, &jsonschema.Schema{Required: []string{kind}})
	}
	return s
}
