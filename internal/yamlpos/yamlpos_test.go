package yamlpos

import (
	"fmt"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// read reads the mapping of data's top and all below it into lines, and says
// what was wrong.
func read(data string) (string, *Reader) {
	r := &Reader{File: "f.yaml"}
	var out strings.Builder
	var walk func(n *yaml.Node, depth int)
	walk = func(n *yaml.Node, depth int) {
		switch n = Deref(n); n.Kind {
		case yaml.MappingNode:
			for _, e := range r.Mapping(n, "it") {
				fmt.Fprintf(&out, "%s%s:", strings.Repeat(" ", depth), e.Key)
				walk(e.Value, depth+1)
			}
		case yaml.SequenceNode:
			for _, item := range r.Items(n, "it", "") {
				walk(item, depth+1)
			}
		default:
			fmt.Fprintf(&out, "%s ", r.Scalar(n, "it"))
		}
	}
	if top := r.Document([]byte(data), "test", "write something"); top != nil {
		walk(top, 0)
	}
	return out.String(), r
}

func TestAnchorsAndMerges(t *testing.T) {
	for data, want := range map[string]string{
		"a: &x 1\nb: *x":                                  "a:1 b:1 ",
		"a: &x [1, 2]\nb: *x":                             "a:1 2 b:1 2 ",
		"a: &x k\n*x : 1":                                 "a:k k:1 ",
		"a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}":           "a: p:1  q:2 b: q:3  p:1 ",
		"a: &x {p: 1}\nb: &y {p: 2, q: 3}\n<<: *x":        "a: p:1 b: p:2  q:3 p:1 ",
		"a: &x {p: 1}\nb: &y {p: 2}\nc: {<<: [*x, *y]}":   "a: p:1 b: p:2 c: p:1 ",
		"a: &x {p: 1}\nb: &y {<<: *x, q: 2}\nc: {<<: *y}": "a: p:1 b: q:2  p:1 c: q:2  p:1 ",
		"\"<<\": 1": "<<:1 ",
	} {
		got, r := read(data)
		if err := r.Bad.Err(); err != nil || got != want {
			t.Errorf("%q: got %q and %v, want %q", data, got, err, want)
		}
	}
}

func TestMistakes(t *testing.T) {
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x]\n"
	for i := range 8 {
		bomb += fmt.Sprintf("a%d: &a%[1]d [*a%d, *a%[2]d, *a%[2]d, *a%[2]d, *a%[2]d, *a%[2]d, *a%[2]d, *a%[2]d]\n", i+1, i)
	}
	for data, want := range map[string]string{
		"":                                "f.yaml:1:1: the file is empty; write something",
		"# nothing":                       "f.yaml:1:1: the file is empty; write something",
		"a: 1\n---\nb: 1":                 "f.yaml:2:1: a second YAML document begins here; one file holds one test; move it to a file of its own",
		"a: [":                            "f.yaml:1: not YAML: did not find expected node content",
		"a: 1\nb: *no":                    "f.yaml:2:4: not YAML: unknown anchor 'no' referenced",
		"a: 1\na: 2":                      "f.yaml:2:1: duplicate key \"a\" in it; the first is on line 1; keep one",
		"[a]: 1":                          "f.yaml:1:1: a key of it must be a plain word, not a list",
		"a: {<<: b}":                      "f.yaml:1:9: what << adds to it must be a mapping, not the value \"b\"; write `key: value` lines",
		"a: &x [1, *x]":                   "f.yaml:1:11: the alias *x stands inside what it stands for; write the values out",
		"a: &x {<<: *x}":                  "f.yaml:1:12: the alias *x stands inside what it stands for; write the values out",
		"a: &x\n  b: &y {c: *x}\n  d: *y": "f.yaml:2:13: the alias *x stands inside what it stands for; write the values out",
		bomb:                              "f.yaml:7:25: the aliases up to here expand to more than 1048576 values; write the values out",
		"a:":                              "f.yaml:1:3: it must be a single value, not nothing",
		"a: ' '":                          "f.yaml:1:4: it is empty",
	} {
		_, r := read(data)
		if got := r.Bad.Error(); got != want {
			t.Errorf("%.40q: got\n%s\nwant\n%s", data, got, want)
		}
	}
}

func TestStrings(t *testing.T) {
	for value, want := range map[string]string{
		"text": "", "'0644'": "", "''": "it is empty",
		"0644": "put it in quotes", "yes": "", "true": "put it in quotes", "2.10": "put it in quotes", "~": "has no value", "[a]": "not a list",
		`"a\0b"`: "NUL byte",
	} {
		r := &Reader{File: "f.yaml"}
		top := r.Document([]byte(value), "test", "")
		s, ok := r.Filled(top, "it")
		if got := r.Bad.Error(); ok != (want == "") || !strings.Contains(got, want) || ok && s.Value == "" {
			t.Errorf("%s: got %q, %t, %q", value, s, ok, got)
		}
	}
}

func TestFields(t *testing.T) {
	r := &Reader{File: "f.yaml"}
	top := r.Document([]byte("name: x\nwheles: [a]\nother: 1"), "test", "")
	f := r.Fields(top, "a thing", Keys{{Name: "name"}, {Name: "wheels"}, {Name: "debs"}})
	if _, meant := f["wheels"]; !meant || f["wheels"] != nil || f["name"].Value != "x" || len(f) != 2 {
		t.Errorf("got %v", f)
	}
	const want = `f.yaml:2:1: unknown key "wheles" in a thing; did you mean "wheels"? allowed: name, wheels, debs
f.yaml:3:1: unknown key "other" in a thing; allowed: name, wheels, debs`
	if got := r.Bad.Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if r.Scalars(nil, "x") != nil || r.Strings(nil, "x") != nil || r.Mapping(nil, "x") != nil || r.Scalar(nil, "x").Value != "" || len(r.Bad) != 2 {
		t.Error("a key that was not given was read")
	}
}

// FuzzRead: nothing panics or runs on, and every problem has a place.
func FuzzRead(f *testing.F) {
	for _, data := range []string{"a: &x {p: 1}\nb: {<<: [*x, {q: *x}]}", "a: &x [1, *x]", "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]",
		"? [k]\n: v", "a: 1\na: 2\n---\n", "<<: {<<: {}}", "&x *x", "!!binary a: b", "- - - {}", "\tx: 1"} {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data string) {
		_, r := read(data)
		for _, p := range r.Bad {
			if p.Pos.File != "f.yaml" || p.Pos.Line < 1 {
				t.Fatalf("a problem without a place: %v", p)
			}
		}
	})
}
