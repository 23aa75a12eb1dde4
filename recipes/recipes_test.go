package recipes_test

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/check"
	"github.com/imgforge/imgforge/internal/recipe"
	"github.com/imgforge/imgforge/recipes"
)

func load(t *testing.T) *recipe.Set {
	t.Helper()
	set, err := recipe.Load(recipe.Layer{Name: "recipes", FS: recipes.FS})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestAllLoad(t *testing.T) {
	want := []string{"base-tools", "devel", "gpu-check", "jupyter", "matplotlib-agg", "mirrors-cn", "nvml",
		"opencv-headless", "python", "python-science", "torch", "zsh"}
	if got := load(t).Names(); !slices.Equal(got, want) {
		t.Errorf("recipes %v, want %v", got, want)
	}
}

// Every shipped file is named by a recipe: a stray one is dead weight or a typo.
func TestNoOrphans(t *testing.T) {
	used := map[string]bool{}
	yamls, err := fs.Glob(recipes.FS, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range yamls {
		data, err := fs.ReadFile(recipes.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if _, from, ok := strings.Cut(line, "from: "); ok {
				used[strings.TrimSpace(from)] = true
			}
		}
	}
	for _, module := range []string{"result", "diagnosis"} {
		used["files/checks/"+module+".py"] = true
	}
	for _, b := range check.Builtins() {
		stem := "files/checks/" + strings.ReplaceAll(b.Name, "-", "_")
		used[stem+".py"], used[stem+".sh"] = true, true
	}
	err = fs.WalkDir(recipes.FS, "files", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !used[path] {
			t.Errorf("%s is shipped by no recipe", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
