package store

import (
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/imgforge/imgforge/internal/yamlpos"
)

// Schema is the form of a file of mirror profiles, for editors.
func Schema() *jsonschema.Schema {
	s := yamlpos.ListForm(profileKeys.Schema(), 0)
	s.Title, s.Description = "imgforge mirror profiles", "Mirrors by name: what each carries and where."
	return s
}

var profileKeys = yamlpos.Keys{
	{Name: "name", Needed: true, Form: yamlpos.StringForm(profileName.String()), Doc: "The profile's name; host is taken."},
	{Name: "archives", Form: yamlpos.MapForm("^("+strings.Join(archiveNames, "|")+")$", webURL()), Doc: "Package archives: " + strings.Join(archiveNames, ", ") + "."},
	{Name: "indexes", Form: yamlpos.ListForm(webURL(), 0), Doc: "Python package indexes (PEP 503 or 691), in order."},
	{Name: "wheels", Form: yamlpos.MapForm(cudaName.String(), webURL()), Doc: "Listings of torch wheels, by CUDA: cu118, or cpu."},
	{Name: "hosts", Form: yamlpos.ListForm(yamlpos.StringForm(`^[^/ ]+$`), 0), Doc: "Other hosts that are the mirror's own; links elsewhere are refused."},
	{Name: "any-host", Form: &jsonschema.Schema{Type: "boolean"}, Doc: "Links and redirects may lead anywhere."},
	{Name: "missing", Form: yamlpos.ListForm(yamlpos.ScalarForm(), 0), Doc: "What it cannot serve, and why: `pytorch: it has no such index`."},
}

func webURL() *jsonschema.Schema { return yamlpos.StringForm("^https?://[^/]") }
