package lock

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// explained is a lock whose requires lines tell this story: pandas and
// matplotlib want numpy, torch wants jinja2 wants markupsafe, zsh wants zsh-common.
func explained(t testing.TB) (*File, []Need) {
	t.Helper()
	base := Request{Kind: "base", Base: "debian12", Suite: "bookworm", Arch: "amd64"}
	debs, wheels, other := base, base, base
	debs.Kind, debs.Packages = "debs", []string{"zsh"}
	wheels.Kind, wheels.Requirements, wheels.Constraints = "wheels", []string{"matplotlib", "pandas>=1", "torch==1"}, []string{"numpy<2", "setuptools<70"}
	other.Kind, other.Requirements = "wheels", []string{"numpy"}
	sets := map[string][]Entry{
		base.Set():   {debOf("libc6", "1"), debOf("dash", "1"), debOf("python3", "3")},
		debs.Set():   {debOf("zsh", "5"), debOf("zsh-common", "5")},
		other.Set():  {wheelOf("numpy", hexA)},
		wheels.Set(): {},
	}
	for _, name := range []string{"matplotlib", "pandas", "numpy", "torch", "jinja2", "markupsafe"} {
		sets[wheels.Set()] = append(sets[wheels.Set()], wheelOf(name, hexA))
	}
	var requires []Entry
	for blob, names := range map[string]string{
		"python3_3_amd64": "libc6", "dash_1_amd64": "libc6", "zsh_5_amd64": "libc6 zsh-common", "pandas-1-py3-none-any.whl": "numpy",
		"matplotlib-1-py3-none-any.whl": "numpy", "torch-1-py3-none-any.whl": "jinja2", "jinja2-1-py3-none-any.whl": "markupsafe",
		"nobody-1-py3-none-any.whl": "numpy",
	} {
		e, _ := RequiresOf(blob, strings.Fields(names))
		requires = append(requires, e)
	}
	var needs []Need
	for _, r := range []Request{base, debs, wheels, other} {
		needs = append(needs, Need{Set: r.Set(), Request: r, Cells: []string{"one", "two"}})
	}
	f, err := Parse("x.lock", (&File{}).Updated(needs, nil, Change{Sets: sets, Requires: requires, Epoch: "1735689600"}).Format())
	if err != nil {
		t.Fatal(err)
	}
	return f, needs
}

func TestWhy(t *testing.T) {
	f, needs := explained(t)
	for name, want := range map[string]string{
		"numpy":      "[matplotlib] [matplotlib numpy] [numpy<2]; [pandas>=1] [pandas numpy] [numpy<2]; [numpy] [numpy] []",
		"MarkupSafe": "[torch==1] [torch jinja2 markupsafe] []",
		"torch":      "[torch==1] [torch] []",
		"zsh-common": "[zsh] [zsh zsh-common] []",
		"libc6":      "[] [dash libc6] []",
		"dash":       "[] [dash] []",
		"fish":       "",
	} {
		var got []string
		for _, r := range f.Why(needs, name) {
			got = append(got, fmt.Sprintf("[%s] %v %v", r.Asked, r.Chain, r.Limits))
		}
		if text := strings.Join(got, "; "); text != want {
			t.Errorf("%s:\n got %s\nwant %s", name, text, want)
		}
	}
	if f.Format(); strings.Contains(string(f.Format()), "nobody") {
		t.Error("a requires line of no blob stays")
	}
}

// A lock from before requires lines knows what was asked for and no more.
func TestWhyWithoutRecord(t *testing.T) {
	f, needs := explained(t)
	var old bytes.Buffer
	for line := range bytes.Lines(f.Format()) {
		if !bytes.HasPrefix(line, []byte("requires ")) {
			old.Write(line)
		}
	}
	f, err := Parse("old.lock", old.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if missing, surplus := f.Compare(needs, nil); len(missing)+len(surplus) > 0 {
		t.Errorf("it is not complete: %q, %q", missing, surplus)
	}
	for name, want := range map[string]string{"torch": "[torch]", "markupsafe": "[]", "libc6": "[]"} {
		got := f.Why(needs, name)
		if len(got) != 1 || fmt.Sprint(got[0].Chain) != want {
			t.Errorf("%s: %+v, want %s", name, got, want)
		}
	}
}

// What blobs need is added to, whichever set is resolved last.
func TestLearn(t *testing.T) {
	f, needs := explained(t)
	more, _ := RequiresOf("torch-1-py3-none-any.whl", []string{"numpy"})
	next := f.Updated(needs, nil, Change{Requires: []Entry{more}})
	if !strings.Contains(string(next.Format()), "requires torch-1-py3-none-any.whl jinja2,numpy - -\n") {
		t.Errorf("got\n%s", next.Format())
	}
}

func TestDiff(t *testing.T) {
	f, needs := explained(t)
	wheels, asked := needs[2], needs[2].Request
	newer := wheelOf("numpy", hexB)
	newer.Key, newer.Value = "numpy-2-py3-none-any.whl", "pypi:numpy==2"
	rebuilt := wheelOf("pandas", hexB)
	rebuilt.Key = "pandas-1-1-py3-none-any.whl"
	answer := []Entry{newer, rebuilt, wheelOf("torch", hexA), wheelOf("jinja2", hexA), wheelOf("markupsafe", hexA), wheelOf("rich", hexB)}
	want := "numpy 1>2 [one two] 5 false; pandas 1>1 [one two] 5 true; rich >1 [one two] 5 false; matplotlib 1> [one two] 0 false"
	for _, set := range []string{wheels.Set, "another question"} {
		now := append([]Need{}, needs...)
		if set != wheels.Set { // the question changed, and so did the set's name
			asked.Requirements = append([]string{"rich"}, asked.Requirements...)
			now[2] = Need{Set: asked.Set(), Request: asked, Cells: wheels.Cells}
		}
		next := f.Updated(now, nil, Change{Sets: map[string][]Entry{now[2].Set: answer}})
		got := map[string]bool{}
		for _, m := range Diff(f, next, now) {
			got[fmt.Sprintf("%s %s>%s %v %d %t", m.Package, m.Old, m.New, m.Cells, m.Size, m.Rebuilt)] = true
		}
		for _, line := range strings.Split(want, "; ") {
			if !got[line] {
				t.Errorf("%s: no %q in %v", set, line, got)
			}
		}
		if len(got) != 4 {
			t.Errorf("%s: %v", set, got)
		}
	}
	if same := Diff(f, f, needs); len(same) > 0 || same == nil {
		t.Errorf("nothing moved, but %v", same)
	}
}

// The parts of a base that was made elsewhere have no versions but their hashes.
func TestDiffOfBases(t *testing.T) {
	n := Need{Set: "base/debian-00000001", Request: Request{Kind: "base", Image: "x"}, Cells: []string{"a"}}
	part := func(hash string) *File {
		return (&File{}).Updated([]Need{n}, nil, Change{Epoch: "1735689600", Sets: map[string][]Entry{
			n.Set: {{Kind: Image, Key: "debian_amd64_config", Value: "application/vnd.oci.image.config.v1+json", Size: 7, Hash: hash}},
		}})
	}
	got := Diff(part(hexA), part(hexB), []Need{n})
	if len(got) != 1 || got[0].Old != "aaaaaaaaaaaa" || got[0].New != "bbbbbbbbbbbb" {
		t.Errorf("%+v", got)
	}
	if why := part(hexA).Why([]Need{n}, "debian_amd64_config"); len(why) != 1 || len(why[0].Chain) != 1 {
		t.Errorf("%+v", why)
	}
}

// What went with a change is not needed any more; what was lost is, until the file
// that needs it is chosen anew.
func TestPrune(t *testing.T) {
	f, needs := explained(t)
	wheels := needs[2]
	line := func(f *File) string {
		for _, e := range f.Entries {
			if e.Kind == Requires && strings.HasPrefix(e.Key, "torch-") {
				return e.Value
			}
		}
		return ""
	}
	torch := []Entry{wheelOf("torch", hexA), wheelOf("pandas", hexA), wheelOf("matplotlib", hexA), wheelOf("numpy", hexA)}
	answered := Change{Sets: map[string][]Entry{wheels.Set: torch}}
	if got := line(f.Updated(needs, nil, answered)); got != "" {
		t.Errorf("chosen anew without it, torch still needs %s", got)
	}
	broken := &File{}
	for _, e := range f.Entries {
		if !strings.Contains(e.Key+e.Value, "jinja2-") {
			broken.Entries = append(broken.Entries, e)
		}
	}
	if missing, _ := broken.Compare(needs, nil); len(missing) != 1 || !strings.Contains(missing[0], "lacks jinja2, which torch-1-py3-none-any.whl needs") {
		t.Errorf("missing: %q", missing)
	}
	next := broken.Updated(needs, nil, Change{})
	if missing, _ := next.Compare(needs, nil); line(next) != "jinja2" || len(missing) != 1 {
		t.Errorf("a lock that could not be mended counts as whole: %q", missing)
	}
	if got := line(broken.Updated(needs, nil, answered)); got != "" {
		t.Errorf("mended, torch still needs %s", got)
	}
}
