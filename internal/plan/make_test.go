package plan

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/matrix"
	"github.com/imgforge/imgforge/internal/recipe"
)

func TestMakeEveryShippedCell(t *testing.T) {
	cells, set := shipped(t)
	locked := lockFor(t, cells, set)
	for _, cell := range cells {
		p := mustMake(t, cell, set, locked)
		if p.Tag != cell.Tag || p.Platform != "linux/amd64" || p.Python != "3.11" || p.Epoch != 1735689600 {
			t.Errorf("%s: %s %s %s %d", cell.Tag, p.Tag, p.Platform, p.Python, p.Epoch)
		}
		if len(p.Base) == 0 || len(p.Debs) == 0 || len(p.Tools) == 0 || len(p.Wheels) == 0 || len(p.Steps) == 0 {
			t.Errorf("%s: a part of the plan is empty", cell.Tag)
		}
		if last := p.Wheels[len(p.Wheels)-1]; last.Name != "torch" {
			t.Errorf("%s: the last layer is %s", cell.Tag, last.Name)
		}
		for _, b := range p.Blobs() {
			if len(b.SHA256) != 64 || b.Name == "" || strings.Contains(b.Name, "/") || b.Origin == "" || b.Size == 0 {
				t.Errorf("%s: blob %+v", cell.Tag, b)
			}
		}
	}
}

// matplotlib#29713, #8929: Agg by its file, so that notebooks may still draw inline.
func TestConfig(t *testing.T) {
	cells, set := shipped(t)
	cell := cellOf(t, cells, "11.8", "2.1.2", "450.80.02")
	p := mustMake(t, cell, set, lockFor(t, cells, set))
	if !slices.IsSorted(p.Config.Env) {
		t.Errorf("unsorted environment %q", p.Config.Env)
	}
	for _, want := range []string{
		"NVIDIA_REQUIRE_CUDA=driver>=450.80.02", "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
		"VIRTUAL_ENV=/opt/venv", "MATPLOTLIBRC=/etc/matplotlibrc", "IMGFORGE_DRIVER_FLOOR=450.80.02", "SHELL=/usr/bin/zsh",
	} {
		if !slices.Contains(p.Config.Env, want) {
			t.Errorf("no %s in %q", want, p.Config.Env)
		}
	}
	for _, kv := range p.Config.Env {
		if strings.HasPrefix(kv, "CUDA_VERSION=") || strings.HasPrefix(kv, "MPLBACKEND=") {
			t.Errorf("the image sets %s", kv)
		}
	}
	if !slices.Equal(p.Config.Cmd, []string{"zsh"}) || !slices.Equal(p.Config.Ports, []string{"8888/tcp"}) || p.Config.WorkingDir != "/workspace" {
		t.Errorf("config is %+v", p.Config)
	}
	for name, want := range map[string]string{
		"io.imgforge.cuda": "11.8", "io.imgforge.torch": "2.1.2", "io.imgforge.python": "3.11", "io.imgforge.driver": ">=450.80.02",
		"io.imgforge.base": "debian12", "org.opencontainers.image.version": cell.Tag,
		"org.opencontainers.image.created": "2025-01-01T00:00:00Z", "io.imgforge.plan": p.Digest(),
	} {
		if got := p.Config.Labels[name]; got != want {
			t.Errorf("label %s is %q, want %q", name, got, want)
		}
	}
	if !strings.Contains(p.Config.Labels["io.imgforge.gpu-archs"], "8.0") || !strings.HasPrefix(p.Config.Labels["io.imgforge.lock"], "sha256:") {
		t.Errorf("labels %v", p.Config.Labels)
	}
}

// The digest is that of the whole plan's JSON, though most of it is written once
// for many cells.
func TestDigestIsOfTheWholePlan(t *testing.T) {
	cells, set := shipped(t)
	locked := lockFor(t, cells, set)
	for i, made := range All(cells, set, locked) {
		if made.Err != nil {
			t.Fatal(made.Err)
		}
		bare := *made.Plan
		bare.digest, bare.blobs = "", nil
		if got := made.Plan.Digest(); got != bare.Digest() || got != made.Plan.Config.Labels[planLabel] {
			t.Errorf("%s: %s, its JSON has %s", made.Plan.Tag, got, bare.Digest())
		}
		if !slices.Equal(bare.Blobs(), made.Plan.Blobs()) {
			t.Errorf("%s: its files are not its blobs", made.Plan.Tag)
		}
		if alone := mustMake(t, cells[i], set, locked); !reflect.DeepEqual(alone, made.Plan) {
			t.Errorf("%s: alone it has another plan", made.Plan.Tag)
		}
	}
}

// A floor is a line of the configuration and nothing else.
func TestFloorsShareEveryLayer(t *testing.T) {
	cells, set := shipped(t)
	locked := lockFor(t, cells, set)
	a := mustMake(t, cellOf(t, cells, "12.1", "2.4.1", "525.60.13"), set, locked)
	b := mustMake(t, cellOf(t, cells, "12.1", "2.4.1", "535.54.03"), set, locked)
	if a.Digest() == b.Digest() {
		t.Error("two floors, one plan")
	}
	b.Tag, b.Config, b.digest = a.Tag, a.Config, a.digest
	if !reflect.DeepEqual(a, b) {
		t.Error("cells that differ in their floor differ in more than their configuration")
	}
}

func TestTorchesShareTheRest(t *testing.T) {
	cells, set := shipped(t)
	locked := lockFor(t, cells, set)
	planOf := func(torch string) *Plan {
		return mustMake(t, cellOf(t, cells, "12.1", torch, "525.60.13"), set, locked)
	}
	was := planOf("2.4.1")
	for torch, want := range map[string][]string{
		"2.3.1": {"triton", "torch"}, "2.5.1": {"triton", "torch"}, "2.1.2": {"numpy", "triton", "torch"},
	} {
		now := planOf(torch)
		if got := changed(was.Wheels, now.Wheels); !slices.Equal(got, want) {
			t.Errorf("torch %s instead of 2.4.1 changes the layers %v, want %v", torch, got, want)
		}
		if !reflect.DeepEqual([]any{was.Base, was.Debs, was.Tools, was.Steps}, []any{now.Base, now.Debs, now.Tools, now.Steps}) {
			t.Errorf("torch %s changes more than wheels", torch)
		}
	}
}

// What other cells add to the lock is no concern of this one.
func TestOtherCellsChangeNothing(t *testing.T) {
	cells, set := shipped(t)
	alone := mustMake(t, cells[0], set, lockFor(t, cells[:1], set))
	among := mustMake(t, cells[0], set, lockFor(t, cells, set))
	if alone.Digest() != among.Digest() || !reflect.DeepEqual(alone, among) {
		t.Error("a cell's plan depends on the cells locked beside it")
	}
}

// chainguard-dev/apko#1654: a lock that no longer fits was passed over in silence.
func TestStaleLock(t *testing.T) {
	cells, set := shipped(t)
	cell := cells[0]
	drop := func(f *lock.File, match func(lock.Entry) bool) { f.Entries = slices.DeleteFunc(f.Entries, match) }
	cases := map[string]struct {
		edit func(f *lock.File)
		want []string
	}{
		"a set":    {func(f *lock.File) { f.Drop(setOf(t, cell, set, "wheels")) }, []string{cell.Pos.String() + ": nothing is locked for its wheels (wheels/torch2.1.2-cuda11.8-py3.11-"}},
		"a blob":   {func(f *lock.File) { drop(f, func(e lock.Entry) bool { return e.Key == "zsh_1_amd64" }) }, []string{"zsh_1_amd64 for debs/debian12-"}},
		"a recipe": {func(f *lock.File) { drop(f, func(e lock.Entry) bool { return e.Key == "jupyter" }) }, []string{"recipes/jupyter.yaml:1:1: recipe jupyter is not in the lock"}},
		"another recipe": {func(f *lock.File) { f.Put(lock.Entry{Kind: lock.Recipe, Key: "zsh", Hash: "h1:x"}) }, []string{
			"recipes/zsh.yaml:1:1: recipe zsh has changed since it was locked"}},
		"the epoch":  {func(f *lock.File) { drop(f, func(e lock.Entry) bool { return e.Kind == lock.Epoch }) }, []string{"the lock has no source-date-epoch"}},
		"everything": {func(f *lock.File) { f.Entries = nil }, []string{"for its base (", "for its debs (", "for its wheels (", "for its tools (", "source-date-epoch", "recipe zsh is not"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			locked := lockFor(t, cells, set)
			c.edit(locked)
			_, err := Make(cell, set, locked)
			if !errors.Is(err, ErrStale) {
				t.Fatalf("got %v", err)
			}
			for _, want := range append(c.want, "run `imgforge lock`") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in\n%s", want, err)
				}
			}
		})
	}
}

func setOf(t *testing.T, cell matrix.Cell, set *recipe.Set, kind string) string {
	t.Helper()
	needs, err := Needs([]matrix.Cell{cell}, set)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(needs, func(n lock.Need) bool { return n.Request.Kind == kind })
	return needs[i].Set
}

// opencv-python#467, supervision#351: two of the four share files.
func TestTwoOpenCVs(t *testing.T) {
	set := own(t, map[string]string{"one": "wheels: [opencv-python]", "two": "wheels: [opencv-python-headless]"})
	cell := with(t, "one", "two")
	got := refused(t, cell, set)
	if !strings.Contains(got, cell.Pos.String()+": opencv-python and opencv-python-headless") || strings.Contains(got, "stale") {
		t.Errorf("got %s", got)
	}
}

func TestRecipesThatMeet(t *testing.T) {
	const file, dir = "files:\n  - {path: /srv/a, content: x}", "files:\n  - {path: /srv/a, dir: true}"
	cases := map[string]struct{ one, two, want string }{
		"one file":          {file, file, "recipes/two.yaml:4:12: recipes one and two both place /srv/a; keep one of the two"},
		"file and dir":      {file, dir, "recipes one and two both place /srv/a"},
		"link and file":     {"files:\n  - {path: /srv/a, link: b}", file, "recipes one and two both place /srv/a"},
		"modes of a dir":    {dir, "files:\n  - {path: /srv/a, dir: true, mode: \"0700\"}", "recipes one and two both place /srv/a"},
		"below a file":      {file, "files:\n  - {path: /srv/a/b/c, content: x}", "recipe one makes /srv/a no directory, but recipe two places /srv/a/b/c"},
		"above a file":      {"files:\n  - {path: /srv/a/b/c, content: x}", file, "recipe two makes /srv/a no directory, but recipe one places /srv/a/b/c"},
		"one dir":           {dir, dir, ""},
		"below a dir":       {dir, "files:\n  - {path: /srv/a/b, content: x}", ""},
		"one variable":      {"env: {A: one}", "env: {A: two}", "recipes/two.yaml:3:10: recipes one and two set A differently; keep one of the two"},
		"the same value":    {"env: {A: one}", "env: {A: one}", ""},
		"a name in a value": {"env: {A: \"${torhc}\"}", "", "recipes/one.yaml:3:10: unknown name ${torhc}"},
		"a name in a step":  {"run: [{name: n, run: \"echo ${torhc}\"}]", "", "recipes/one.yaml:3:22: unknown name ${torhc}"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			set := own(t, map[string]string{"one": c.one, "two": c.two})
			cell := with(t, "one", "two")
			if c.want == "" {
				mustMake(t, cell, set, lockFor(t, []matrix.Cell{cell}, set))
			} else if got := refused(t, cell, set); !strings.HasPrefix(got, c.want) && !strings.Contains(got, ": "+c.want) {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}

// Nothing of the run or the machine is in a plan: neither map order nor clock,
// environment or working directory.
// tensorchord/envd: an environment written in the order of a map.
func TestMakeIsPure(t *testing.T) {
	texts := func() string {
		cells, set := shipped(t)
		locked := lockFor(t, cells, set)
		var out strings.Builder
		for _, cell := range []matrix.Cell{cells[0], cells[len(cells)-1]} {
			p := mustMake(t, cell, set, locked)
			text, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			out.WriteString(string(text) + "\n" + p.Digest() + "\n")
		}
		return out.String() + string(locked.Format())
	}
	want := texts()
	for range 24 {
		if texts() != want {
			t.Fatal("two runs differ")
		}
	}
	if here, err := os.Getwd(); err != nil || strings.Contains(want, here) {
		t.Errorf("the working directory %s is in a plan (%v)", here, err)
	}
	t.Chdir(t.TempDir())
	for _, name := range []string{"HOME", "USER", "HOSTNAME", "TZ", "LANG", "TMPDIR", "SOURCE_DATE_EPOCH"} {
		t.Setenv(name, "/elsewhere")
	}
	synctest.Test(t, func(*testing.T) { // the clock of a bubble begins in the year 2000
		if texts() != want {
			t.Error("another environment, another plan")
		}
	})
}
