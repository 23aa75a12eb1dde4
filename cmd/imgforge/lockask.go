package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/lock"
)

// question is what a run of `imgforge lock` is about.
type question struct {
	all, selected []lock.Need
	locked        *lock.File
	upgrade       bool
	names         []string // with upgrade: these packages alone; none: all
}

// asked picks the needs to resolve: of the selected those that are not locked,
// and for an upgrade those that hold what is to be upgraded. Where .debs are
// resolved anew, so are all others on that base, since they must fit the base as
// it is then. Each is told what to keep of its earlier answer.
func (q *question) asked() ([]lock.Need, error) {
	if err := q.known(); err != nil {
		return nil, err
	}
	wanted := map[string]bool{}
	moved := map[string]bool{} // bases whose .debs are resolved anew
	for _, n := range q.selected {
		if _, ok, err := q.locked.Answer(n.Set, n.Request); ok && err == nil && !q.upgrades(n) {
			continue
		}
		wanted[n.Set] = true
		if isDebs(n) {
			moved[n.Request.Base] = true
		}
	}
	out := slices.DeleteFunc(slices.Clone(q.all), func(n lock.Need) bool {
		return !wanted[n.Set] && !(isDebs(n) && moved[n.Request.Base])
	})
	for i, n := range out {
		out[i].Keep = q.keep(n)
	}
	return out, nil
}

// upgrades tells whether a need holds something that is to be upgraded.
func (q *question) upgrades(n lock.Need) bool {
	if !q.upgrade || len(q.names) == 0 {
		return q.upgrade
	}
	picked, _, _ := q.locked.Picked(n.Set)
	return slices.ContainsFunc(picked, q.named)
}

func (q *question) named(e lock.Entry) bool { return slices.ContainsFunc(q.names, e.Is) }

// keep is what a need should be answered with again. .debs are kept only where
// packages are named: else a base that moves at all takes the fixes of today.
func (q *question) keep(n lock.Need) []lock.Entry {
	if q.upgrade && len(q.names) == 0 || isDebs(n) && !q.upgrade {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(q.locked.Previous(n, q.all)), q.named)
}

// known refuses names that no selected cell has.
func (q *question) known() error {
	var bad diag.List
	for _, name := range q.names {
		bad.AddErr(diag.Pos{}, unknownPackage(q.locked, q.selected, name))
	}
	return bad.Err()
}

// unknownPackage is an error unless an answer to the needs holds the package.
func unknownPackage(f *lock.File, needs []lock.Need, name string) error {
	for _, n := range needs {
		picked, _, _ := f.Picked(n.Set)
		if slices.ContainsFunc(picked, func(e lock.Entry) bool { return e.Is(name) }) {
			return nil
		}
	}
	names := f.Names(needs)
	p := &diag.Problem{What: fmt.Sprintf("no package %q is locked for these cells", name)}
	switch near := diag.Nearest(strings.ToLower(name), names); {
	case near != "":
		p.Help = fmt.Sprintf("did you mean %s?", near)
	case len(names) == 0:
		p.Help = "nothing is; run `imgforge lock` first"
	default:
		p.Help = "name a distribution or a Debian package of the lock"
	}
	return p
}

func isDebs(n lock.Need) bool { return n.Request.Kind == "base" || n.Request.Kind == "debs" }
