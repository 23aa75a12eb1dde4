package matrix

import (
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/imgforge/imgforge/internal/check"
	"github.com/imgforge/imgforge/internal/compat"
	"github.com/imgforge/imgforge/internal/yamlpos"
)

// Schema is the form of a matrix file, for editors. It refuses what is malformed;
// what is merely impossible is Expand's to say.
func Schema() *jsonschema.Schema {
	s := matrixKeys.Schema()
	s.Title, s.Description = "imgforge matrix", "Which images to build: one cell for each combination of the axes' values."
	return s
}

// The tables of keys, in the order that messages name them.
var (
	matrixKeys = yamlpos.Keys{
		{Name: "axes", Needed: true, Form: axesForm(),
			Doc: "The dimensions, in order. cuda, torch, python, driver and base must be here or under defaults; platform may be; any other name is a free axis."},
		{Name: "bases", Needed: true, Form: yamlpos.MapForm(plain.String(), baseForm()), Doc: "What the base axis can name."},
		{Name: "defaults", Form: valuesForm(), Doc: "One value for an axis that is not listed, or that an include entry leaves out."},
		{Name: "exclude", Form: yamlpos.ListForm(ruleForm("why"), 0), Doc: "Cells to leave out: those that have all values of an entry, or values inside its ranges."},
		{Name: "holes", Form: yamlpos.OneOfForm("error", "skip"), Doc: "What becomes of cells that cannot work: an error, or left out and named with the reason."},
		{Name: "include", Form: yamlpos.ListForm(ruleForm(), 0), Doc: "Cells to add, each with a value for every axis that defaults does not give."},
		{Name: "mirrors", Form: yamlpos.ListForm(yamlpos.ScalarForm(), 0), Doc: "Mirror profiles to download from, best first; [host] if left out."},
		{Name: "name", Needed: true, Form: yamlpos.StringForm(plain.String()), Doc: "The matrix's name: lower-case letters, digits, - and _."},
		{Name: "platform", Form: yamlpos.OneOfForm(platforms...), Doc: "The platform of every image; linux/amd64 if left out. It may be an axis instead."},
		{Name: "recipes", Needed: true, Form: yamlpos.ListForm(yamlpos.AnyForm(yamlpos.ScalarForm(), recipeForm()), 1),
			Doc: "What is layered, in order: names, or names with a condition."},
		{Name: "smoke", Form: smokeKeys.Schema(), Doc: "How images are tested before they may be promoted."},
		{Name: "tag", Needed: true, Form: yamlpos.ScalarForm(), Doc: "Template for each cell's tag, such as ${torch}-cuda${cuda}-driver${driver.major}."},
		{Name: "version", Needed: true, Form: &jsonschema.Schema{Enum: []any{1, "1"}}, Doc: "The version of this format."},
	}
	baseKinds = yamlpos.Keys{
		{Name: "debian", Form: debianKeys.Schema(), Doc: "Made from Debian's own packages; no registry is asked."},
		{Name: "image", Form: yamlpos.AnyForm(yamlpos.StringForm(`\S`), imageKeys.Schema()), Doc: "An image of a registry, with a tag or a digest; locked to a digest."},
		{Name: "rootfs", Form: rootfsKeys.Schema(), Doc: "A tarball of a root file system."},
	}
	debianKeys = yamlpos.Keys{
		{Name: "components", Form: componentsForm(debianComponents), Doc: "Parts of Debian's archive; [main] if left out."},
		{Name: "suite", Needed: true, Form: yamlpos.OneOfForm(compat.Suites("debian")...), Doc: "Debian's release by code name."},
	}
	rootfsKeys = yamlpos.Keys{
		{Name: "components", Form: componentsForm(anyComponents), Doc: "Parts of its distribution's archive; the usual ones if left out."},
		{Name: "sha256", Needed: true, Form: yamlpos.StringForm(hex256.String()), Doc: "The tarball's hash, in hex."},
		{Name: "url", Needed: true, Form: yamlpos.StringForm(`\S`), Doc: "Where it lies: http, https, or a path beside the matrix."},
	}
	imageKeys = yamlpos.Keys{
		{Name: "components", Form: componentsForm(anyComponents), Doc: "Parts of its distribution's archive; the usual ones if left out."},
		{Name: "ref", Needed: true, Form: yamlpos.StringForm(`\S`), Doc: "Such as nvidia/cuda:12.1.1-base-ubuntu22.04."},
	}
	smokeKeys = yamlpos.Keys{
		{Name: "checks", Form: check.Form(), Doc: "Checks of every image, beside those of its recipes; one of the same name stands for theirs."},
		{Name: "gpu", Form: yamlpos.OneOfForm(Policies...), Doc: "What becomes of checks that need a GPU where there is none: auto and skip leave them out, and the image is untested; require fails. skip leaves them out where there is one, too."},
	}
	recipeKeys = yamlpos.Keys{
		{Name: "name", Form: yamlpos.ScalarForm(), Doc: "One recipe."},
		{Name: "recipes", Form: yamlpos.ListForm(yamlpos.ScalarForm(), 1), Doc: "Several recipes, in order."},
		{Name: "when", Form: valuesForm(), Doc: "Only in cells that have all these values, or values inside these ranges."},
	}
)

func componentsForm(known []string) *jsonschema.Schema {
	return yamlpos.ListForm(yamlpos.OneOfForm(known...), 0)
}

func baseForm() *jsonschema.Schema {
	s, one := baseKinds.Schema(), 1
	s.MinProperties, s.MaxProperties = &one, &one
	return s
}

func recipeForm() *jsonschema.Schema {
	s := recipeKeys.Schema()
	s.OneOf = []*jsonschema.Schema{{Required: []string{"name"}}, {Required: []string{"recipes"}}}
	return s
}

// notReserved is a name that an axis may have.
func notReserved() *jsonschema.Schema {
	return &jsonschema.Schema{Pattern: plain.String(), Not: yamlpos.OneOfForm(reserved...)}
}

// valueForms are the forms of one value of the axes that have more than a name.
var valueForms = map[string]*jsonschema.Schema{
	"cuda":   versionForm("A CUDA release without the update, or a range: \"12.1\", \">=11.8,<12.5\".", compat.CUDAs()),
	"torch":  versionForm("A torch release, or a range: \"2.4.1\", \"~2.3\".", compat.Torches()),
	"python": versionForm("The Python of the base, or a range: \"3.11\".", compat.Pythons()),
	"driver": {Type: "string", Pattern: `[<>=~^*]|\.[xX]`,
		Description: "The oldest NVIDIA driver, after >=, or a range: \">=525.60.13\", \"~535\"."},
	"base":       {Types: []string{"string", "number"}, Description: "A name under bases."},
	platformAxis: platformForm(),
}

func platformForm() *jsonschema.Schema {
	s := yamlpos.OneOfForm(platforms...)
	s.Description = "What the image runs on."
	return s
}

// described are the axes that have forms of their own, in the order that an editor
// offers them.
var described = append(slices.Clone(required), platformAxis)

// versionForm is a version that is known, or a range.
func versionForm(doc string, known []string) *jsonschema.Schema {
	s := yamlpos.AnyForm(yamlpos.OneOfForm(known...), yamlpos.StringForm(`[<>=~^*|, ]|\.[xX]`), &jsonschema.Schema{Type: "number"})
	s.Description = doc
	return s
}

func axesForm() *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, PropertyNames: notReserved(),
		AdditionalProperties: axisForm(yamlpos.ScalarForm())}
	for _, name := range described {
		s.Properties[name] = axisForm(valueForms[name])
		s.PropertyOrder = append(s.PropertyOrder, name)
	}
	return s
}

// axisForm is a list of values, or such lists under conditions: `cuda 12.1`.
func axisForm(value *jsonschema.Schema) *jsonschema.Schema {
	list := yamlpos.ListForm(value, 1)
	groups, one := yamlpos.MapForm(`^\S+ +\S`, list), 1
	groups.MinProperties = &one
	groups.Description = "Values that depend on an axis above: `cuda 12.1: [...]`."
	return yamlpos.AnyForm(list, groups)
}

// valuesForm is one value, or a range, for some axes.
func valuesForm() *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, PropertyOrder: described}
	for _, name := range described {
		s.Properties[name] = valueForms[name]
	}
	s.AdditionalProperties = yamlpos.ScalarForm()
	return s
}

func ruleForm(needed ...string) *jsonschema.Schema {
	s := valuesForm()
	s.Required = needed
	s.Properties["why"] = &jsonschema.Schema{Types: []string{"string", "number", "boolean"}, Pattern: `\S`, Description: "The reason, for the next reader."}
	return s
}
