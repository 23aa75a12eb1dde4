package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/lock"
)

// Only what holds a named package is asked again, with everything else to keep;
// a base and what stands on it move together.
func TestAsked(t *testing.T) {
	sum := "sha256:" + strings.Repeat("a", 64)
	deb := func(name string) lock.Entry {
		return lock.Entry{Kind: lock.Deb, Key: name + "_1_amd64", Value: "debian/pool/" + name + ".deb", Size: 1, Hash: sum}
	}
	wheel := func(name, version string) lock.Entry {
		return lock.Entry{Kind: lock.Wheel, Key: name + "-" + version + "-py3-none-any.whl", Value: "pypi:" + name + "==" + version, Size: 1, Hash: sum}
	}
	base := lock.Request{Kind: "base", Base: "debian12", Suite: "bookworm", Arch: "amd64"}
	debs, more, one, two := base, base, base, base
	debs.Kind, debs.Packages = "debs", []string{"zsh"}
	more.Kind, more.Packages = "debs", []string{"git"}
	one.Kind, one.Torch, one.Requirements = "wheels", "1", []string{"numpy", "torch==1"}
	two.Kind, two.Torch, two.Requirements = "wheels", "2", []string{"torch==2"}
	sets := map[string][]lock.Entry{
		base.Set(): {deb("libc6"), deb("python3")}, debs.Set(): {deb("zsh")}, more.Set(): {deb("git"), deb("perl")},
		one.Set(): {wheel("numpy", "1"), wheel("torch", "1")}, two.Set(): {wheel("torch", "2"), wheel("rich", "1")},
	}
	var all []lock.Need
	for name, r := range map[string]lock.Request{"base": base, "debs": debs, "more": more, "one": one, "two": two} {
		all = append(all, lock.Need{Set: r.Set(), Request: r, Cells: []string{name}})
	}
	slices.SortFunc(all, func(a, b lock.Need) int { return strings.Compare(a.Cells[0], b.Cells[0]) })
	whole := (&lock.File{}).Updated(all, nil, lock.Change{Sets: sets, Epoch: "1735689600"})
	newer := two
	newer.Requirements = []string{"torch==2", "tqdm"}
	for _, c := range []struct {
		name    string
		upgrade bool
		names   []string
		edit    func(needs []lock.Need, f *lock.File)
		want    string // the sets asked, with what each is to keep
	}{
		{name: "complete"},
		{name: "all", upgrade: true, want: "base[] debs[] more[] one[] two[]"},
		{name: "a wheel in one set", upgrade: true, names: []string{"NumPy"}, want: "one[torch]"},
		{name: "a wheel in two sets", upgrade: true, names: []string{"torch"}, want: "one[numpy] two[rich]"},
		{name: "a deb", upgrade: true, names: []string{"perl"}, want: "base[libc6 python3] debs[zsh] more[git]"},
		{name: "a deb of the base", upgrade: true, names: []string{"libc6"}, want: "base[python3] debs[zsh] more[git perl]"},
		{name: "two names", upgrade: true, names: []string{"zsh", "rich"}, want: "base[libc6 python3] debs[] more[git perl] two[torch]"},
		{name: "a changed question keeps its wheels", edit: func(needs []lock.Need, _ *lock.File) {
			needs[4] = lock.Need{Set: newer.Set(), Request: newer, Cells: []string{"two"}}
		}, want: "two[rich torch]"},
		{name: "a lost deb takes the base along, to today", edit: func(_ []lock.Need, f *lock.File) { f.Drop(debs.Set()) }, want: "base[] debs[] more[]"},
	} {
		needs, f := slices.Clone(all), &lock.File{Entries: slices.Clone(whole.Entries)}
		if c.edit != nil {
			c.edit(needs, f)
		}
		q := question{all: needs, selected: needs, locked: f, upgrade: c.upgrade, names: c.names}
		ask, err := q.asked()
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got []string
		for _, n := range ask {
			var keep []string
			for _, e := range n.Keep {
				name, _ := e.Package()
				keep = append(keep, name)
			}
			got = append(got, fmt.Sprintf("%s%v", n.Cells[0], keep))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s:\n asks %s\n want %s", c.name, text, c.want)
		}
	}
}
