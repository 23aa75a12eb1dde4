package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/matrix"
	"github.com/imgforge/imgforge/internal/recipe"
	matrices "github.com/imgforge/imgforge/matrix"
	"github.com/imgforge/imgforge/recipes"
)

// shipped is the matrix and the recipes that come with imgforge.
func shipped(t testing.TB) ([]matrix.Cell, *recipe.Set) {
	t.Helper()
	data, err := fs.ReadFile(matrices.FS, "universal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m, err := matrix.Parse("universal.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	out, err := m.Expand()
	if err != nil {
		t.Fatal(err)
	}
	return out.Cells, loadRecipes(t, recipes.FS)
}

func loadRecipes(t testing.TB, fsys fs.FS) *recipe.Set {
	t.Helper()
	set, err := recipe.Load(recipe.Layer{Name: "recipes", FS: fsys})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// own makes recipes from the part of their YAML that matters; python is there.
func own(t testing.TB, bodies map[string]string) *recipe.Set {
	t.Helper()
	fsys := fstest.MapFS{"python.yaml": {Data: []byte("name: python\nsummary: x\nwheels: [pip]\n")}}
	for name, body := range bodies {
		fsys[name+".yaml"] = &fstest.MapFile{Data: []byte("name: " + name + "\nsummary: x\n" + body + "\n")}
	}
	return loadRecipes(t, fsys)
}

// with is a cell of the shipped matrix with other recipes, the first on line 1.
func with(t testing.TB, names ...string) matrix.Cell {
	t.Helper()
	cells, _ := shipped(t)
	cell := cellOf(t, cells, "12.1", "2.4.1", "525.60.13")
	cell.Recipes = nil
	for i, name := range names {
		cell.Recipes = append(cell.Recipes, diag.Str{Value: name, Pos: diag.Pos{File: "m.yaml", Line: i + 1, Col: 5}})
	}
	return cell
}

func cellOf(t testing.TB, cells []matrix.Cell, cuda, torch, driver string) matrix.Cell {
	t.Helper()
	for _, c := range cells {
		if c.CUDA == cuda && c.Torch == torch && c.Driver == driver {
			return c
		}
	}
	t.Fatalf("the matrix has no cuda %s, torch %s, driver %s", cuda, torch, driver)
	return matrix.Cell{}
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func debOf(name string) lock.Entry {
	return lock.Entry{Kind: lock.Deb, Key: name + "_1_amd64", Value: "debian/pool/main/" + name + "_1_amd64.deb", Size: 1000, Hash: hashOf("deb " + name)}
}

func wheelOf(name, version string, size int64) lock.Entry {
	return lock.Entry{
		Kind: lock.Wheel, Key: strings.ReplaceAll(name, "-", "_") + "-" + version + "-py3-none-any.whl",
		Value: "pypi:" + name + "==" + version, Size: size, Hash: hashOf("wheel " + name + version),
	}
}

// answer makes up what a solver would say: one blob for each thing asked for,
// torch with what it pins, and numpy as the constraints want it.
func answer(r lock.Request) []lock.Entry {
	switch r.Kind {
	case "base":
		return []lock.Entry{debOf("libc6"), debOf("dash"), debOf("python3")}
	case "debs":
		var out []lock.Entry
		for _, name := range r.Packages {
			out = append(out, debOf(name))
		}
		return out
	case "tools":
		return []lock.Entry{wheelOf("installer", "1.0", 1000)}
	}
	out := []lock.Entry{wheelOf("jinja2", "3.1", 100_000), wheelOf("tornado", "6", 400_000)}
	heavy := map[string]int64{"scipy": 35 << 20, "pandas": 12 << 20, "opencv-python-headless": 50 << 20}
	for _, requirement := range r.Requirements {
		switch name, version, _ := strings.Cut(requirement, "=="); name {
		case "torch":
			out = append(out, wheelOf(name, version, 700<<20), wheelOf("triton", r.Torch, 150<<20), wheelOf("nvidia-cudnn", r.CUDA, 600<<20))
		case "numpy":
			version := "2.2.1"
			if slices.Contains(r.Constraints, "numpy<2") {
				version = "1.26.4"
			}
			out = append(out, wheelOf(name, version, 16<<20))
		default:
			out = append(out, wheelOf(name, "1.0", max(heavy[name], 200_000)))
		}
	}
	return out
}

// lockFor is a complete lock for the cells.
func lockFor(t testing.TB, cells []matrix.Cell, set *recipe.Set) *lock.File {
	t.Helper()
	needs, err := Needs(cells, set)
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string][]lock.Entry{}
	for _, n := range needs {
		answers[n.Set] = answer(n.Request)
	}
	hashes := map[string]string{}
	for _, name := range RecipeNames(cells, set) {
		rec, _ := set.Get(name)
		hashes[name] = rec.Hash
	}
	return (&lock.File{}).Updated(needs, hashes, lock.Change{Sets: answers, Epoch: "1735689600"})
}

func mustMake(t testing.TB, cell matrix.Cell, set *recipe.Set, locked *lock.File) *Plan {
	t.Helper()
	p, err := Make(cell, set, locked)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// refused makes a plan of one cell, completely locked, and wants it refused.
func refused(t *testing.T, cell matrix.Cell, set *recipe.Set) string {
	t.Helper()
	_, err := Make(cell, set, lockFor(t, []matrix.Cell{cell}, set))
	if err == nil {
		t.Fatal("a plan was made")
	}
	return err.Error()
}
