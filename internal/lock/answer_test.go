package lock

import (
	"slices"
	"strings"
	"testing"
)

func debOf(name, version string) Entry {
	return Entry{Kind: Deb, Key: name + "_" + version + "_amd64", Value: "debian/pool/" + name + "_" + version + ".deb", Size: 1, Hash: hexA}
}

// An answer is one only when it holds what was asked for by name, once.
func TestAnswer(t *testing.T) {
	base := Request{Kind: "base", Base: "debian12", Suite: "bookworm", Arch: "amd64"}
	debs, wheels := base, base
	debs.Kind, debs.Packages = "debs", []string{"git", "zsh"}
	wheels.Kind, wheels.Requirements = "wheels", []string{"Foo_Bar[extra]>=1", "numpy", `old; python_version < "3"`}
	whole := map[string][]Entry{
		base.Set():   {debOf("libc6", "1"), debOf("python3", "3"), debOf("git", "2")},
		debs.Set():   {debOf("zsh", "5")},
		wheels.Set(): {wheelOf("foo-bar", hexA), wheelOf("numpy", hexA), wheelOf("else", hexA)},
	}
	for _, c := range []struct {
		name string
		of   Request
		edit func(sets map[string][]Entry)
		want string
	}{
		{name: "the base is whole", of: base},
		{name: "what the base has need not be there again", of: debs},
		{name: "names are normalized, markers may not hold", of: wheels},
		{name: "nothing to add", of: debs, edit: func(s map[string][]Entry) {
			s[debs.Set()] = nil
			s[base.Set()] = append(s[base.Set()], debOf("zsh", "5"))
		}},
		{name: "a wheel is lost", of: wheels, want: "lacks numpy", edit: func(s map[string][]Entry) { s[wheels.Set()] = s[wheels.Set()][:1] }},
		{name: "a deb is lost", of: debs, want: "lacks zsh", edit: func(s map[string][]Entry) { s[debs.Set()] = []Entry{debOf("other", "1")} }},
		{name: "a deb of the base is lost", of: debs, want: "lacks git", edit: func(s map[string][]Entry) { s[base.Set()] = s[base.Set()][:2] }},
		{name: "the base has no Python", of: base, want: "lacks python3", edit: func(s map[string][]Entry) { s[base.Set()] = s[base.Set()][:1] }},
		{name: "a dependency is lost", of: wheels, want: "lacks else, which numpy-1-py3-none-any.whl needs", edit: func(s map[string][]Entry) {
			s[wheels.Set()] = s[wheels.Set()][:2]
		}},
		{name: "two versions", of: debs, want: "zsh twice", edit: func(s map[string][]Entry) { s[debs.Set()] = append(s[debs.Set()], debOf("zsh", "6")) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			sets := map[string][]Entry{}
			for set, entries := range whole {
				sets[set] = slices.Clone(entries)
			}
			if c.edit != nil {
				c.edit(sets)
			}
			needs := []Need{{Set: base.Set()}, {Set: debs.Set()}, {Set: wheels.Set()}}
			made := (&File{}).Updated(needs, nil, Change{Sets: sets, Epoch: "1735689600"})
			needsElse, _ := RequiresOf(wheelOf("numpy", hexA).Key, []string{"else"})
			if slices.ContainsFunc(sets[wheels.Set()], func(e Entry) bool { return e.Is("numpy") }) {
				made.Put(needsElse)
			}
			f, err := Parse("x.lock", made.Format())
			if err != nil {
				t.Fatal(err)
			}
			_, ok, err := f.Answer(c.of.Set(), c.of)
			switch {
			case !ok:
				t.Error("no answer at all")
			case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			}
			missing, _ := f.Compare([]Need{{Set: c.of.Set(), Request: c.of, Cells: []string{"a"}}}, nil)
			if (len(missing) > 0) != (c.want != "") {
				t.Errorf("missing: %q", missing)
			}
		})
	}
}
