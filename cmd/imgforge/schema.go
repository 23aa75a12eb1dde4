package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/spf13/cobra"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/matrix"
	"github.com/imgforge/imgforge/internal/recipe"
	"github.com/imgforge/imgforge/internal/store"
)

// schemas make the schema of each kind of file.
var schemas = map[string]func() *jsonschema.Schema{
	"matrix": matrix.Schema, "recipe": recipe.Schema, "mirrors": store.Schema,
}

func (a *app) schemaCommand() *cobra.Command {
	kinds := []string{"matrix", "recipe", "mirrors"}
	return &cobra.Command{
		Use:   "schema [matrix|recipe|mirrors]",
		Short: "Print a JSON Schema, with which editors complete and explain",
		Long: `Print the JSON Schema (2020-12) of a kind of file, the matrix if none is named.
Editors with yaml-language-server complete, explain and check a file that names it
in a comment:

  imgforge schema matrix > matrix.schema.json
  imgforge schema recipe > recipe.schema.json
  imgforge schema mirrors > mirrors.schema.json

  # yaml-language-server: $schema=matrix.schema.json`,
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: kinds,
		RunE: func(_ *cobra.Command, args []string) error {
			kind := append(args, kinds[0])[0]
			make, ok := schemas[kind]
			if !ok {
				return fmt.Errorf("there is no schema of %q; %s", kind, diag.Allowed(kind, kinds))
			}
			text, err := schemaText(make())
			if err != nil {
				return err
			}
			_, err = a.stdout.Write(text)
			return err
		},
	}
}

// schemaText is a schema as its file holds it.
func schemaText(s *jsonschema.Schema) ([]byte, error) {
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	text, err := json.MarshalIndent(s, "", "  ")
	plain := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(text))
	return []byte(plain + "\n"), err
}
