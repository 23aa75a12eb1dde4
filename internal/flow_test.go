package internal_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/buildkit/client/llb"
	"github.com/opencontainers/go-digest"

	"github.com/imgforge/imgforge/internal/golden"
	"github.com/imgforge/imgforge/internal/graph"
	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/matrix"
	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/recipe"
)

// flowDirs hold a matrix each, and what every stage makes of it.
var flowDirs = []string{"../testdata/flow/small", "../testdata/flow/platforms"}

// TestFlow holds every stage of the compiler to its snapshot: what a directory
// of YAML becomes on its way to BuildKit.
func TestFlow(t *testing.T) {
	for _, dir := range flowDirs {
		t.Run(filepath.Base(dir), func(t *testing.T) { checkFlow(t, dir) })
	}
}

func checkFlow(t *testing.T, dir string) {
	got := flow(t, dir)
	for _, name := range slices.Sorted(maps.Keys(got)) {
		golden.Check(t, filepath.Join(dir, name), got[name])
	}
}

// tensorchord/envd: a new digest at each run.
func TestFlowIsPure(t *testing.T) {
	for _, dir := range flowDirs {
		want := flow(t, dir)
		for range 24 {
			for name, text := range flow(t, dir) {
				if text != want[name] {
					t.Fatalf("%s: two runs give two %s", dir, name)
				}
			}
		}
	}
}

// flow runs the pure chain from the YAML files and returns each stage's text by
// the name of its snapshot.
func flow(t *testing.T, dir string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "matrix.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	m := must(matrix.Parse("matrix.yaml", data))(t)
	cells := must(m.Expand())(t).Cells
	set := must(recipe.Load(recipe.Layer{Name: "recipes", FS: os.DirFS(filepath.Join(dir, "recipes"))}))(t)
	needs := must(plan.Needs(cells, set))(t)
	locked := synthetic(t, needs, cells, set)
	var plans []*plan.Plan
	var ops strings.Builder
	for _, cell := range cells {
		p := must(plan.Make(cell, set, locked))(t)
		plans = append(plans, p)
		dump(t, &ops, p)
	}
	return map[string]string{
		"cells.out":                  showCells(cells),
		"needs.out":                  showNeeds(t, needs),
		filepath.Base(dir) + ".lock": string(locked.Format()),
		"plan.json":                  indented(t, plans),
		"graph.dump":                 ops.String(),
	}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func indented(t *testing.T, v any) string {
	t.Helper()
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func showCells(cells []matrix.Cell) string {
	var out strings.Builder
	for _, c := range cells {
		fmt.Fprintf(&out, "%s\n    at %s\n    cuda %s, torch %s, python %s, driver %s, base %s, %s\n    recipes", c.Tag, c.Pos, c.CUDA, c.Torch, c.Python, c.Driver, c.BaseName, c.Platform)
		for _, r := range c.Recipes {
			fmt.Fprintf(&out, " %s", r.Value)
		}
		for _, w := range c.Warnings {
			fmt.Fprintf(&out, "\n    warning: %s", w)
		}
		out.WriteString("\n")
	}
	return out.String()
}

func showNeeds(t *testing.T, needs []lock.Need) string {
	t.Helper()
	var out strings.Builder
	for _, n := range needs {
		fmt.Fprintf(&out, "%s\n    asked at %s\n    by %s\n%s", n.Set, n.Pos, strings.Join(n.Cells, " "), indented(t, n.Request))
	}
	return out.String()
}

// synthetic is a lock whose answers are made up: a blob for each thing asked for,
// hashed by its name.
func synthetic(t *testing.T, needs []lock.Need, cells []matrix.Cell, set *recipe.Set) *lock.File {
	t.Helper()
	change := lock.Change{Sets: map[string][]lock.Entry{}, Epoch: "1735689600"}
	for _, n := range needs {
		change.Sets[n.Set] = answer(n.Request)
	}
	for blob, name := range map[string]string{
		"python3_1.0_amd64": "libc6", "torch-2.3.1-py3-none-any.whl": "numpy", "torch-2.4.1-py3-none-any.whl": "numpy",
	} {
		e, _ := lock.RequiresOf(blob, []string{name})
		change.Requires = append(change.Requires, e)
	}
	hashes := map[string]string{}
	for _, name := range plan.RecipeNames(cells, set) {
		rec, _ := set.Get(name)
		hashes[name] = rec.Hash
	}
	locked := (&lock.File{}).Updated(needs, hashes, change)
	if missing, surplus := locked.Compare(needs, hashes); len(missing)+len(surplus) > 0 {
		t.Fatalf("a fresh lock lacks %q and has %q too much", missing, surplus)
	}
	return must(lock.Parse("small.lock", locked.Format()))(t)
}

func answer(r lock.Request) []lock.Entry {
	var out []lock.Entry
	debs, wheels := r.Packages, r.Requirements
	switch r.Kind {
	case "base":
		debs = []string{"dash", "libc6", "python3"}
	case "tools":
		wheels = []string{"installer"}
	}
	for _, name := range debs {
		key := name + "_1.0_" + r.Arch
		out = append(out, lock.Entry{Kind: lock.Deb, Key: key, Value: "debian/pool/main/" + key + ".deb", Size: 1000, Hash: hashOf(key)})
	}
	for _, requirement := range wheels {
		name, version, _ := strings.Cut(requirement, "==")
		size := int64(1000)
		if name == "numpy" {
			size = 16 << 20 // a heavy wheel
		}
		version = cmp.Or(version, "1.0")
		key := name + "-" + version + "-py3-none-any.whl"
		out = append(out, lock.Entry{Kind: lock.Wheel, Key: key, Value: "pypi:" + name + "==" + version, Size: size, Hash: hashOf(key)})
	}
	return out
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// dump compiles a plan and writes its image configuration and its ops.
func dump(t *testing.T, w *strings.Builder, p *plan.Plan) {
	t.Helper()
	g := must(graph.Compile(p, graph.Inputs{
		Bootstrap: plan.Blob{Name: "root.tar", SHA256: strings.Repeat("0", 64)},
		Blob: func(b plan.Blob) llb.State {
			return llb.HTTP("http://blobs.invalid/"+b.SHA256, llb.Filename(b.Name),
				llb.Checksum(digest.NewDigestFromEncoded(digest.SHA256, b.SHA256)))
		},
	}))(t)
	def := must(g.Marshal(t.Context(), p))(t)
	var config any
	if err := json.Unmarshal(g.Config, &config); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(w, "== %s: %d layers ==\n%s", p.Tag, g.Layers, indented(t, config))
	if err := graph.Dump(w, def); err != nil {
		t.Fatal(err)
	}
}
