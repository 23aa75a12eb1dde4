package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"github.com/imgforge/imgforge/internal/matrix"
	"github.com/imgforge/imgforge/internal/recipe"
	"github.com/imgforge/imgforge/internal/store"
)

// The files that editors read are what the program prints.
func TestSchemaFiles(t *testing.T) {
	for kind, schema := range schemas {
		text, err := schemaText(schema())
		if err != nil {
			t.Fatal(err)
		}
		file := repository("schema", kind+".json")
		if *update {
			if err := os.WriteFile(file, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s is not what `imgforge schema %s` prints (go test ./cmd/imgforge -run TestSchemaFiles -update writes it): %v", file, kind, err)
		}
	}
	shipped, _ := filepath.Glob(repository("matrix", "*.yaml"))
	for _, file := range shipped {
		data, _ := os.ReadFile(file)
		if !bytes.HasPrefix(data, []byte("# yaml-language-server: $schema=../schema/matrix.json\n")) {
			t.Errorf("%s does not name its schema", file)
		}
	}
}

// judge compiles a schema with another library than the one that made it.
func judge(t *testing.T, kind string) func(file string) error {
	t.Helper()
	text, err := schemaText(schemas[kind]())
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(kind+".json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile(kind + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return func(file string) error {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var value any
		if err := yaml.Unmarshal(data, &value); err != nil {
			return err
		}
		text, err := json.Marshal(value) // as editors see it
		if err != nil {
			return err
		}
		instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return err
		}
		return schema.Validate(instance)
	}
}

func TestSchemaTakesWhatIsRight(t *testing.T) {
	for kind, patterns := range map[string][]string{
		"matrix":  {"matrix/*.yaml", "testdata/ok/*.yaml", "testdata/flow/*/matrix.yaml", "testdata/small/matrix.yaml"},
		"recipe":  {"recipes/*.yaml", "testdata/*/recipes/*.yaml", "testdata/flow/*/recipes/*.yaml", "internal/recipe/testdata/good/*.yaml"},
		"mirrors": {"internal/store/data/mirrors.yaml"},
	} {
		valid := judge(t, kind)
		for _, pattern := range patterns {
			files, _ := filepath.Glob(repository(filepath.FromSlash(pattern)))
			if len(files) == 0 {
				t.Errorf("no file is like %s", pattern)
			}
			for _, file := range files {
				if err := valid(file); err != nil {
					t.Errorf("%s: %v", file, err)
				}
			}
		}
	}
}

// Broken files that a schema can see to be broken: each of testdata/schema-refused
// stays refused. What is only impossible, or wrong between two places, it cannot see.
func TestSchemaRefusesWhatIsMalformed(t *testing.T) {
	for kind, dir := range map[string]string{"matrix": "testdata/err", "recipe": "internal/recipe/testdata/err", "mirrors": "internal/store/testdata/profiles"} {
		valid := judge(t, kind)
		files, _ := filepath.Glob(repository(filepath.FromSlash(dir), "*.yaml"))
		var refused []string
		for _, file := range files {
			if valid(file) != nil {
				refused = append(refused, filepath.Base(file))
			}
		}
		list := filepath.Join("testdata", "schema-refused", kind)
		if *update {
			if err := os.WriteFile(list, []byte(strings.Join(refused, "\n")+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range strings.Fields(string(want)) {
			if !slices.Contains(refused, name) {
				t.Errorf("the %s schema takes %s", kind, name)
			}
		}
		t.Logf("%s: %d of %d broken files are refused", kind, len(refused), len(files))
	}
}

// The keys a parser takes and those in the schema come from one table; this holds
// the parser to using it, wherever a mapping has known keys.
func TestSchemaHasTheParsersKeys(t *testing.T) {
	const odd = "zzzzzzzzzz: 1"
	parse := map[string]func(text string) error{
		"matrix": func(text string) error { _, err := matrix.Parse("f.yaml", []byte(text)); return err },
		"recipe": func(text string) error {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "f.yaml"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := recipe.Load(recipe.Layer{Name: "recipes", FS: os.DirFS(dir)})
			return err
		},
		"mirrors": func(text string) error { _, err := store.ParseProfiles("f.yaml", []byte(text)); return err },
	}
	for at, text := range map[string]string{
		"matrix":                odd,
		"matrix, a base":        "bases: {b: {" + odd + "}}",
		"matrix, debian":        "bases: {b: {debian: {" + odd + "}}}",
		"matrix, rootfs":        "bases: {b: {rootfs: {" + odd + "}}}",
		"matrix, image":         "bases: {b: {image: {" + odd + "}}}",
		"matrix, a recipe":      "recipes: [{" + odd + "}]",
		"recipe":                odd,
		"recipe, a file":        "files: [{" + odd + "}]",
		"recipe, a run step":    "run: [{" + odd + "}]",
		"mirrors, of a profile": "[{" + odd + "}]",
	} {
		kind, _, _ := strings.Cut(at, ",")
		err := parse[kind](text)
		if err == nil {
			t.Fatalf("%s: an odd key is taken", at)
		}
		m := regexp.MustCompile(`unknown key "zzzzzzzzzz" in [^;]*; allowed: (.*)`).FindStringSubmatch(err.Error())
		if m == nil {
			t.Errorf("%s: no allowed keys in %v", at, err)
			continue
		}
		allowed := strings.Split(m[1], ", ")
		slices.Sort(allowed)
		if !hasMapping(schemaValue(t, kind), allowed) {
			t.Errorf("%s: no mapping of the schema has just the keys %s", at, allowed)
		}
	}
}

func schemaValue(t *testing.T, kind string) any {
	t.Helper()
	text, err := schemaText(schemas[kind]())
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// hasMapping tells whether some mapping in a schema has these keys and no others.
func hasMapping(value any, keys []string) bool {
	switch v := value.(type) {
	case map[string]any:
		if own, ok := v["properties"].(map[string]any); ok && v["additionalProperties"] == false && slices.Equal(slices.Sorted(maps.Keys(own)), keys) {
			return true
		}
		for _, inner := range v {
			if hasMapping(inner, keys) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(inner any) bool { return hasMapping(inner, keys) })
	}
	return false
}
