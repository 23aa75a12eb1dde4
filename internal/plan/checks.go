package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/imgforge/imgforge/internal/check"
	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/matrix"
	"github.com/imgforge/imgforge/internal/recipe"
)

// Checks lists what an image of the cell must pass: what its recipes declare and
// what the matrix declares, filled in, static ones first. A check of the matrix
// stands for one of the same name of a recipe; two recipes must agree.
func Checks(cell matrix.Cell, set *recipe.Set, smoke matrix.Smoke) ([]check.Check, error) {
	recipes, err := recipesOf(cell, set)
	if err != nil {
		return nil, err
	}
	vars := varsOf(cell)
	vars["wheels"] = requested(recipes, vars)
	d := declared{cell: cell, vars: vars}
	for _, rec := range recipes {
		d.add(rec.Checks, rec.Name)
	}
	d.add(smoke.Checks, "")
	slices.SortStableFunc(d.checks, func(a, b check.Check) int { return cmp.Compare(order(a.Kind), order(b.Kind)) })
	return d.checks, d.bad.Err()
}

// declared gathers checks.
type declared struct {
	cell   matrix.Cell
	vars   recipe.Vars
	checks []check.Check
	from   []string // who declared each: a recipe; empty for the matrix
	bad    diag.List
}

func (d *declared) add(checks []check.Check, from string) {
	for _, c := range checks {
		applies, err := d.cell.Meets(c.When)
		d.bad.AddErr(c.Pos, err)
		if err != nil || !applies {
			continue
		}
		c, err = c.Filled(func(s diag.Str) (string, error) { return recipe.Expand(s, d.vars) })
		d.bad.AddErr(c.Pos, err)
		i := slices.IndexFunc(d.checks, func(o check.Check) bool { return o.Name == c.Name })
		switch {
		case i < 0:
			d.checks, d.from = append(d.checks, c), append(d.from, from)
		case from != "":
			d.bad.Add(c.Pos, "give one of them a name of its own", "recipes %s and %s both have a check %s", d.from[i], from, c.Name)
		default:
			d.checks[i] = c
		}
	}
}

// order is the order of kinds: what costs least comes first.
func order(k check.Kind) int {
	return slices.Index([]check.Kind{check.Static, check.CPU, check.GPU}, k)
}

// requested lists the distributions that recipes ask for by name.
func requested(recipes []*recipe.Recipe, vars recipe.Vars) string {
	var names []string
	for _, rec := range recipes {
		for _, s := range rec.Wheels {
			if text, err := recipe.Expand(s, vars); err == nil { // else a plan cannot be made either
				names = append(names, lock.NameOf(text))
			}
		}
	}
	return strings.Join(sortedSet(names), ",")
}
