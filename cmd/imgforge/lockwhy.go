package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/plan"
)

// whyPackage is a locked package and the ways in which it came in.
type whyPackage struct {
	Package string    `json:"package"`
	Version string    `json:"version"`
	Kind    lock.Kind `json:"kind"`
	Cells   []string  `json:"cells"`
	Limits  []string  `json:"limits"`
	Ways    []*whyWay `json:"ways"`
}

// whyWay is a chain of packages from what a line asks for to the package.
type whyWay struct {
	Where  string   `json:"where"`  // file:line:col of who asks
	For    string   `json:"for"`    // base, debs, wheels or tools
	Recipe string   `json:"recipe"` // empty: the matrix
	Asked  string   `json:"asked"`  // empty: the base or the tools as such
	Chain  []string `json:"chain"`  // empty: the lock does not record it
	Cells  []string `json:"cells"`
}

// explainLock says who pulled a package in, from the lock alone.
func (a *app) explainLock(in *inputs, name string, asJSON bool) error {
	needs, err := plan.Needs(in.cells, in.recipes)
	if err != nil {
		return err
	}
	if err := unknownPackage(in.lock, needs, name); err != nil {
		return err
	}
	askers, err := plan.Askers(in.cells, in.recipes)
	if err != nil {
		return err
	}
	found := gatherWhy(in.lock.Why(needs, name), askers)
	if asJSON {
		return writeJSON(a.stdout, found)
	}
	for _, p := range found {
		fmt.Fprintf(a.stdout, "%s %s (%s), in %s\n", p.Package, p.Version, p.Kind, someCells(p.Cells, len(in.cells)))
		for _, w := range p.Ways {
			fmt.Fprintf(a.stdout, "  %s: %s  (%s)\n", w.Where, w.text(), someCells(w.Cells, len(in.cells)))
		}
		if len(p.Limits) > 0 {
			fmt.Fprintf(a.stdout, "  limited by %s\n", strings.Join(p.Limits, ", "))
		}
	}
	return nil
}

func (w *whyWay) text() string {
	from := cmp.Or(w.Asked, "the base")
	switch {
	case len(w.Chain) == 0 && w.For != "tools":
		return "not asked for itself; this lock is from before it recorded what needs it: `imgforge lock --upgrade` records it"
	case w.For == "tools":
		return "installs the wheels, and is not in the image"
	case w.Recipe != "":
		from = fmt.Sprintf("recipe %s asks for %s", w.Recipe, w.Asked)
	}
	switch {
	case w.Asked == "":
		return from + " -> " + strings.Join(w.Chain, " -> ")
	case len(w.Chain) == 1:
		return from
	}
	return from + " -> " + strings.Join(w.Chain[1:], " -> ")
}

// gatherWhy joins the reasons of many sets: by package and version, then by who
// asks and the chain.
func gatherWhy(reasons []lock.Reason, askers map[string]map[string][]plan.Asker) []*whyPackage {
	out := []*whyPackage{}
	for _, r := range reasons {
		name, version := r.Package.Package()
		i := slices.IndexFunc(out, func(p *whyPackage) bool {
			return p.Package == name && p.Version == version && p.Kind == r.Package.Kind
		})
		if i < 0 {
			i = len(out)
			out = append(out, &whyPackage{Package: name, Version: version, Kind: r.Package.Kind, Limits: []string{}, Ways: []*whyWay{}})
		}
		p := out[i]
		p.Cells = merge(p.Cells, r.Need.Cells)
		p.Limits = merge(p.Limits, r.Limits)
		who := askers[r.Need.Set][r.Asked]
		if len(who) == 0 {
			who = []plan.Asker{{Pos: r.Need.Pos}}
		}
		for _, asker := range who {
			p.add(whyWay{Where: asker.Pos.String(), For: r.Need.Request.Kind, Recipe: asker.Recipe, Asked: r.Asked, Chain: append([]string{}, r.Chain...)}, r.Need.Cells)
		}
	}
	return out
}

func (p *whyPackage) add(w whyWay, cells []string) {
	for _, was := range p.Ways {
		if was.Where == w.Where && was.For == w.For && was.Asked == w.Asked && slices.Equal(was.Chain, w.Chain) {
			was.Cells = merge(was.Cells, cells)
			return
		}
	}
	w.Cells = merge(nil, cells)
	p.Ways = append(p.Ways, &w)
}

// merge joins two lists, sorted, each once.
func merge(a, b []string) []string {
	out := append(append([]string{}, a...), b...)
	slices.Sort(out)
	return slices.Compact(out)
}
