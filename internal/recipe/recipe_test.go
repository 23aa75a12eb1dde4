package recipe

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/golden"
)

// TestErrors loads a directory of broken recipes at once: every problem of every
// file is reported, in order.
func TestErrors(t *testing.T) {
	_, err := Load(Layer{Name: "recipes", FS: os.DirFS("testdata/err")})
	if err == nil {
		t.Fatal("the broken recipes load")
	}
	golden.Check(t, "testdata/err.golden", err.Error()+"\n")
}

func good(t *testing.T, layers ...Layer) *Set {
	t.Helper()
	set, err := Load(append([]Layer{{Name: "good", FS: os.DirFS("testdata/good")}}, layers...)...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestLoad(t *testing.T) {
	rec, ok := good(t).Get("demo")
	if !ok {
		t.Fatal("no demo")
	}
	at := func(line, col int) diag.Pos { return diag.Pos{File: "good/demo.yaml", Line: line, Col: col} }
	want := &Recipe{
		Name: "demo", Summary: "everything a recipe can say", Pos: at(1, 1),
		Requires: []diag.Str{{Pos: at(3, 12), Value: "other"}},
		Debs:     []diag.Str{{Pos: at(5, 5), Value: "zsh"}, {Pos: at(6, 5), Value: "python${python}-dev"}},
		Wheels: []diag.Str{{Pos: at(8, 5), Value: "${torch.requirement}"},
			{Pos: at(9, 5), Value: `pandas[excel]>=2,<3; python_version < "3.12"`}},
		Limits: []diag.Str{{Pos: at(10, 10), Value: "numpy<2"}},
		Env:    []Var{{Pos: at(12, 13), Name: "GREETING", Value: "hello ${cuda}"}},
		Files: []File{
			{Pos: at(14, 11), Path: "/etc/motd", Mode: 0o644, Content: []byte("hello\n")},
			{Pos: at(16, 11), Path: "/usr/local/bin/hi", Mode: 0o755, Content: []byte("#!/bin/sh\necho hi ${cuda} $$\n")},
			{Pos: at(21, 11), Path: "/usr/local/bin/hello", Link: "hi"},
			{Pos: at(23, 11), Path: "/var/lib/demo", Mode: 0o755, Dir: true},
		},
		Run:   []Run{{Pos: at(27, 10), Name: "say so", Command: "echo ${cuda} > /etc/cuda"}},
		Cmd:   []string{"zsh", "-l"},
		Ports: []string{"8888/tcp"},
		Hash:  rec.Hash,
	}
	if !reflect.DeepEqual(rec, want) {
		t.Errorf("got\n%+v\nwant\n%+v", rec, want)
	}
}

// The hash is written down here: should it change, every lock goes stale.
func TestHash(t *testing.T) {
	rec, _ := good(t).Get("other")
	const want = "h1:Lnl/o53hetB0FfnboDiUwUteBBNoz3fFoSHq2W1vvrs="
	if rec.Hash != want {
		t.Errorf("hash %s, want %s", rec.Hash, want)
	}
	base := fstest.MapFS{
		"a.yaml":     {Data: []byte("name: a\nsummary: s\nfiles: [{path: /x, from: files/a/x}]\n")},
		"files/a/x":  {Data: []byte("one")},
		"files/a/un": {Data: []byte("not shipped")},
	}
	hash := func(name string) string {
		t.Helper()
		set, err := Load(Layer{Name: name, FS: base})
		if err != nil {
			t.Fatal(err)
		}
		a, _ := set.Get("a")
		return a.Hash
	}
	first := hash("here")
	if hash("/some/where/else") != first {
		t.Error("the place of a recipe changes its hash")
	}
	base["files/a/un"] = &fstest.MapFile{Data: []byte("changed")}
	if hash("here") != first {
		t.Error("a file that is not shipped changes the hash")
	}
	base["files/a/x"] = &fstest.MapFile{Data: []byte("two")}
	if hash("here") == first {
		t.Error("a shipped file does not change the hash")
	}
}

func TestLaterLayerReplaces(t *testing.T) {
	over := fstest.MapFS{
		"other.yaml": {Data: []byte("name: other\nsummary: mine\n")},
		"mine.yaml":  {Data: []byte("name: mine\nsummary: new\nrequires: [demo]\n")},
		"README.md":  {Data: []byte("no recipe")},
	}
	set := good(t, Layer{Name: "over", FS: over})
	if got := fmt.Sprint(set.Names()); got != "[demo mine other]" {
		t.Errorf("names %s", got)
	}
	if other, _ := set.Get("other"); other.Summary != "mine" || other.Pos.File != "over/other.yaml" {
		t.Errorf("other is %+v", other)
	}
	if _, ok := set.Get("nothing"); ok {
		t.Error("an unknown recipe was found")
	}
}

func TestAnchors(t *testing.T) {
	set, err := Load(Layer{FS: fstest.MapFS{"a.yaml": {Data: []byte(`
name: a
summary: &s one
env: {A: *s}
files:
  - &f {path: /a, content: *s}
  - {<<: *f, path: /b}
`)}}})
	if err != nil {
		t.Fatal(err)
	}
	a, _ := set.Get("a")
	if len(a.Files) != 2 || a.Files[1].Path != "/b" || string(a.Files[1].Content) != "one" || a.Env[0].Value != "one" {
		t.Errorf("got %+v", a)
	}
}

func TestUnreadableLayer(t *testing.T) {
	if _, err := Load(Layer{Name: "gone", FS: os.DirFS("testdata/no-such")}); err == nil || !strings.HasPrefix(err.Error(), "gone: ") {
		t.Errorf("got %v", err)
	}
}

func TestExpand(t *testing.T) {
	vars := Vars{"cuda": "12.1", "torch": "2.4.1", "torch.requirement": "torch==2.4.1", "none": ""}
	pos := diag.Pos{File: "a.yaml", Line: 3, Col: 5}
	for _, c := range []struct{ in, want, err string }{
		{in: "", want: ""},
		{in: "plain", want: "plain"},
		{in: "${cuda}", want: "12.1"},
		{in: "<${cuda}-${torch}>${none}", want: "<12.1-2.4.1>"},
		{in: "${torch.requirement}", want: "torch==2.4.1"},
		{in: "$HOME $(id) $", want: "$HOME $(id) $"},
		{in: "$$", want: "$"},
		{in: "$${cuda}", want: "${cuda}"},
		{in: "$$$${cuda}$$", want: "$${cuda}$"},
		{in: "$$${cuda}", want: "$12.1"},
		{in: "${cudda}", err: `a.yaml:3:5: unknown name ${cudda} in "${cudda}"; did you mean "cuda"? allowed: cuda, none, torch, torch.requirement; write $$ for a $ of its own`},
		{in: "${ cuda }", err: `unknown name ${ cuda }`},
		{in: "${cuda", err: `a.yaml:3:5: unclosed ${ in "${cuda"; close it with }, or write $$ for a $ of its own`},
		{in: "${}", err: `a.yaml:3:5: empty ${} in "${}"`},
		{in: "${no-such} ${neither}", err: "unknown name ${neither}"},
	} {
		got, err := Expand(diag.Str{Pos: pos, Value: c.in}, vars)
		switch {
		case c.err == "" && (err != nil || got != c.want):
			t.Errorf("%q: got %q, %v; want %q", c.in, got, err, c.want)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%q: got %v, want %q", c.in, err, c.err)
		}
	}
}

// FuzzLoad: no input panics; whatever loads is safe to place in an image.
func FuzzLoad(f *testing.F) {
	for _, dir := range []string{"testdata/err", "testdata/good"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			f.Fatal(err)
		}
		for _, e := range entries {
			if data, err := os.ReadFile(dir + "/" + e.Name()); err == nil {
				f.Add(data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		set, err := Load(Layer{FS: fstest.MapFS{"x.yaml": {Data: data}, "files/x": {Data: data}}})
		if err != nil {
			for line := range strings.Lines(err.Error()) {
				if strings.TrimSpace(line) == "" {
					t.Errorf("an empty problem in %q", err)
				}
			}
			return
		}
		x, ok := set.Get("x")
		if !ok || x.Hash == "" {
			t.Fatalf("no recipe from %q", data)
		}
		for _, file := range x.Files {
			if !strings.HasPrefix(file.Path, "/") || strings.Contains(file.Path, "/../") || file.Mode&0o7002 != 0 {
				t.Errorf("%+v", file)
			}
		}
	})
}

func FuzzExpand(f *testing.F) {
	f.Add("${cuda} $$ $x ${", "v")
	f.Fuzz(func(t *testing.T, s, value string) {
		escaped := strings.ReplaceAll(s, "$", "$$")
		if got, err := Expand(diag.Str{Value: escaped}, nil); err != nil || got != s {
			t.Errorf("escaped %q comes back as %q, %v", s, got, err)
		}
		Expand(diag.Str{Value: s}, Vars{"cuda": value})
	})
}
