package yamlpos

import (
	"github.com/google/jsonschema-go/jsonschema"
)

// Key is a key that a mapping may have. The reader accepts the keys of a table and
// the JSON Schema is made of the same table, so the two cannot drift.
type Key struct {
	Name   string
	Needed bool               // for the schema: readers say it in their own words
	Form   *jsonschema.Schema // of the value
	Doc    string             // what editors show
}

// Keys are the keys that a mapping may have.
type Keys []Key

func (k Keys) names() []string {
	out := make([]string, len(k))
	for i, key := range k {
		out[i] = key.Name
	}
	return out
}

// Schema is the form of a mapping with these keys and no others.
func (k Keys) Schema() *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: never()}
	for _, key := range k {
		form := *key.Form
		form.Description = key.Doc
		s.Properties[key.Name] = &form
		s.PropertyOrder = append(s.PropertyOrder, key.Name)
		if key.Needed {
			s.Required = append(s.Required, key.Name)
		}
	}
	return s
}

func never() *jsonschema.Schema { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }

// ScalarForm is what Reader.Scalar takes: a single value, quoted or not.
func ScalarForm() *jsonschema.Schema {
	return &jsonschema.Schema{Types: []string{"string", "number", "boolean"}, Pattern: `\S`}
}

// StringForm is a string; pattern may be empty.
func StringForm(pattern string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: pattern}
}

// ListForm is a list of such items, at least as many as least.
func ListForm(item *jsonschema.Schema, least int) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "array", Items: item}
	if least > 0 {
		s.MinItems = &least
	}
	return s
}

// MapForm is a mapping from keys that match a pattern to such values.
func MapForm(keys string, value *jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", PatternProperties: map[string]*jsonschema.Schema{keys: value}, AdditionalProperties: never()}
}

// OneOfForm is one of some words.
func OneOfForm(words ...string) *jsonschema.Schema {
	s := &jsonschema.Schema{}
	for _, w := range words {
		s.Enum = append(s.Enum, w)
	}
	return s
}

// AnyForm is what has any of some forms.
func AnyForm(forms ...*jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: forms}
}
