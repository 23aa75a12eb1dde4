package lock

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/diag"
)

func need(set string, cells ...string) Need {
	return Need{Set: set, Cells: cells, Pos: diag.Pos{File: "m.yaml", Line: 7, Col: 3}}
}

var (
	exampleNeeds = []Need{
		need("debs/debian12-00000001", "a"), need("wheels/one-00000001", "a"), need("wheels/two-00000002", "b"),
	}
	exampleRecipes = map[string]string{"python": tree2, "zsh": tree}
)

func wheelOf(name, hash string) Entry {
	return Entry{Kind: Wheel, Key: name + "-1-py3-none-any.whl", Value: "pypi:" + name + "==1", Size: 5, Hash: hash}
}

func TestCompare(t *testing.T) {
	cases := []struct {
		name             string
		edit             func(f *File)
		needs            []Need
		recipes          map[string]string
		missing, surplus []string
	}{
		{name: "complete", needs: exampleNeeds, recipes: exampleRecipes},
		{
			name: "a set is missing", needs: append(exampleNeeds[:3:3], need("wheels/new-00000003", "c", "d")), recipes: exampleRecipes,
			missing: []string{"m.yaml:7:3: wheels/new-00000003, needed by c"},
		},
		{
			name: "a set is surplus, its blob shared", needs: exampleNeeds[:2], recipes: exampleRecipes,
			surplus: []string{"pick wheels/two-00000002 numpy-1.26.4-cp311-cp311-manylinux_2_17_x86_64.whl"},
		},
		{
			name: "a set is surplus with its blobs", needs: exampleNeeds[1:], recipes: exampleRecipes,
			surplus: []string{"deb zsh_5.9-4_amd64 debian/pool/main/z/zsh/zsh_5.9-4_amd64.deb", "pick debs/debian12-00000001 zsh_5.9-4_amd64"},
		},
		{
			name: "recipes", needs: exampleNeeds, recipes: map[string]string{"python": tree, "nvml": tree},
			missing: []string{"recipe nvml", "recipe python, which has changed since it was locked"},
			surplus: []string{"recipe zsh "},
		},
		{
			name: "a blob has lost its line", needs: exampleNeeds, recipes: exampleRecipes,
			edit: func(f *File) {
				f.Entries = slices.DeleteFunc(f.Entries, func(e Entry) bool { return e.Kind == Deb })
			},
			missing: []string{"m.yaml:7:3: the lock picks zsh_5.9-4_amd64 for debs/debian12-00000001 but has no line for it"},
		},
		{
			name: "a blob nobody picks", needs: exampleNeeds, recipes: exampleRecipes,
			edit:    func(f *File) { f.Put(wheelOf("stray", hexA)) },
			surplus: []string{"wheel stray-1-py3-none-any.whl pypi:stray==1"},
		},
		{
			name: "no epoch", needs: exampleNeeds, recipes: exampleRecipes,
			edit: func(f *File) {
				f.Entries = slices.DeleteFunc(f.Entries, func(e Entry) bool { return e.Kind == Epoch })
			},
			missing: []string{"source-date-epoch"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f, _ := example(t)
			if c.edit != nil {
				c.edit(f)
			}
			before := f.Digest()
			missing, surplus := f.Compare(c.needs, c.recipes)
			if !slices.Equal(missing, c.missing) || !slices.Equal(surplus, c.surplus) {
				t.Errorf("missing %q, want %q\nsurplus %q, want %q", missing, c.missing, surplus, c.surplus)
			}
			if f.Digest() != before {
				t.Error("comparing changed the lock")
			}
		})
	}
}

func TestUpdatedWithNothingNew(t *testing.T) {
	f, data := example(t)
	if got := f.Updated(exampleNeeds, exampleRecipes, Change{Epoch: "1"}).Format(); string(got) != string(data) {
		t.Errorf("no change, another lock:\n%s", got)
	}
}

func TestUpdatedIsComplete(t *testing.T) {
	_, data := example(t)
	full, _ := Parse("x", data)
	sets := map[string][]Entry{}
	for _, n := range exampleNeeds {
		sets[n.Set], _, _ = full.Picked(n.Set)
	}
	archives := full.Entries[:1]
	var requires []Entry
	for _, e := range full.Entries {
		if e.Kind == Requires {
			requires = append(requires, e)
		}
	}
	for range 25 {
		made := (&File{}).Updated(exampleNeeds, exampleRecipes, Change{Archives: archives, Sets: sets, Requires: requires, Epoch: "1735689600"})
		if got := made.Format(); string(got) != string(data) {
			t.Fatalf("made from nothing:\n%s", got)
		}
		if missing, surplus := made.Compare(exampleNeeds, exampleRecipes); len(missing)+len(surplus) > 0 {
			t.Fatalf("a fresh lock lacks %v and has %v too much", missing, surplus)
		}
	}
}

// A new answer replaces the old one of its set and leaves the others alone, also
// where they share a blob.
func TestUpdatedReplacesOneSet(t *testing.T) {
	f, data := example(t)
	fresh := wheelOf("fresh", hexA)
	next := f.Updated(exampleNeeds, exampleRecipes, Change{Sets: map[string][]Entry{"wheels/one-00000001": {fresh}}})
	if got, _, _ := next.Picked("wheels/one-00000001"); !slices.Equal(got, []Entry{fresh}) {
		t.Errorf("the set is answered by %v", got)
	}
	was, _, _ := f.Picked("wheels/two-00000002")
	if got, _, err := next.Picked("wheels/two-00000002"); err != nil || !slices.Equal(got, was) {
		t.Errorf("another set became %v, %v", got, err)
	}
	if text := string(next.Format()); strings.Contains(text, "torch-2.1.2") {
		t.Errorf("a blob nobody picks any more stays:\n%s", text)
	}
	if string(f.Format()) != string(data) {
		t.Error("updating changed the lock itself")
	}
}

// The epoch dates the .debs, so it and their archives move with them alone.
func TestUpdatedEpoch(t *testing.T) {
	debs := map[string][]Entry{"debs/debian12-00000003": {{Kind: Deb, Key: "jq_1_amd64", Value: "debian/pool/main/j/jq/jq_1_amd64.deb", Size: 1, Hash: "sha256:" + hexA}}}
	wheels := map[string][]Entry{"wheels/one-00000001": {wheelOf("fresh", hexA)}}
	whole, _ := example(t)
	zsh, _, _ := whole.Picked("debs/debian12-00000001")
	same := map[string][]Entry{"debs/debian12-00000001": zsh}
	for _, c := range []struct {
		had    bool
		change Change
		want   int64
	}{
		{true, Change{}, 1735689600},
		{true, Change{Epoch: "5"}, 1735689600},
		{true, Change{Epoch: "5", Sets: wheels}, 1735689600},
		{true, Change{Epoch: "5", Sets: debs}, 5},
		{true, Change{Sets: debs}, 1735689600},
		{true, Change{Epoch: "5", Sets: same}, 1735689600},
		{false, Change{Epoch: "5"}, 5},
		{false, Change{}, 0},
	} {
		f := &File{}
		if c.had {
			f, _ = example(t)
		}
		if got := f.Updated(exampleNeeds, exampleRecipes, c.change).Epoch(); got != c.want {
			t.Errorf("had one: %t, %+v: epoch is %d, want %d", c.had, c.change, got, c.want)
		}
	}
}

// A set whose question failed while its base moved must not keep an answer that
// no longer fits.
func TestUpdatedUnsolved(t *testing.T) {
	f, _ := example(t)
	next := f.Updated(exampleNeeds, exampleRecipes, Change{Unsolved: []string{"wheels/one-00000001"}})
	if _, ok, _ := next.Picked("wheels/one-00000001"); ok {
		t.Error("an unsolved set is still answered")
	}
	if _, ok, _ := next.Picked("wheels/two-00000002"); !ok {
		t.Error("another set lost its answer")
	}
}

func TestDrop(t *testing.T) {
	f, _ := example(t)
	n := len(f.Entries)
	f.Drop("wheels/one-00000001")
	if _, ok, _ := f.Picked("wheels/one-00000001"); ok || len(f.Entries) != n-2 {
		t.Errorf("the set is still answered, or blobs went too: %d entries of %d", len(f.Entries), n)
	}
}

func fullRequest() Request {
	return Request{
		Kind: "wheels", Base: "debian12", Suite: "bookworm", Components: []string{"main", "contrib"}, Arch: "amd64",
		Packages: []string{"git", "zsh"}, Python: "3.11", CUDA: "12.1", Torch: "2.4.1",
		Requirements: []string{"numpy", "torch==2.4.1"}, Constraints: []string{"numpy<2", "setuptools<70"},
		Image: "docker.io/library/debian:12", Rootfs: "aa", On: "sha256:bb", Interpreter: "/usr/bin/python3", Excluded: []string{"torch", "triton"},
	}
}

// Every field counts, those added later too: the test goes by the type.
func TestSetDiffersByField(t *testing.T) {
	seen := map[string]string{fullRequest().Set(): "nothing changed"}
	for i := range reflect.TypeFor[Request]().NumField() {
		name := reflect.TypeFor[Request]().Field(i).Name
		for _, how := range []string{"other", "empty"} {
			r := fullRequest()
			field := reflect.ValueOf(&r).Elem().Field(i)
			switch {
			case how == "empty":
				field.SetZero()
			case field.Kind() == reflect.String:
				field.SetString(field.String() + "x")
			default:
				field.Set(reflect.Append(field, reflect.ValueOf("x")))
			}
			if other, dup := seen[r.Set()]; dup {
				t.Errorf("%s %s and %s have the set %s", name, how, other, r.Set())
			}
			seen[r.Set()] = name + " " + how
		}
	}
}

func TestSetIgnoresOrder(t *testing.T) {
	r := fullRequest()
	for _, list := range [][]string{r.Components, r.Packages, r.Requirements, r.Constraints, r.Excluded} {
		slices.Reverse(list)
	}
	before := slices.Clone(r.Requirements)
	if r.Set() != fullRequest().Set() {
		t.Errorf("another order, another set: %s and %s", r.Set(), fullRequest().Set())
	}
	if !slices.Equal(r.Requirements, before) {
		t.Error("naming the request sorted its own lists")
	}
	none, empty := Request{Kind: "base"}, Request{Kind: "base", Packages: []string{}}
	if none.Set() != empty.Set() {
		t.Error("no packages and an empty list of them differ")
	}
}

// A set's name is a key of the lock, and tells a reader what it is.
func TestSetIsReadable(t *testing.T) {
	for kind, want := range map[string]string{
		"wheels": "wheels/torch2.4.1-cuda12.1-py3.11-", "tools": "tools/py3.11-", "base": "base/debian12-", "debs": "debs/debian12-",
	} {
		r := fullRequest()
		r.Kind = kind
		if got := r.Set(); !strings.HasPrefix(got, want) || strings.ContainsAny(got, " \t\n") {
			t.Errorf("%s is called %q, want %q and a short hash", kind, got, want)
		}
	}
}
