package plan

import (
	"fmt"
	"slices"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/matrix"
	"github.com/imgforge/imgforge/internal/recipe"
)

// Asker is the line of a recipe that asks for a package, or the line of the
// matrix that asks for a base.
type Asker struct {
	Recipe string // empty: the matrix
	Pos    diag.Pos
}

// Askers finds who asks for what is locked: by set, and by the text that the
// set's request has of it, which is empty for a base and for tools.
func Askers(cells []matrix.Cell, set *recipe.Set) (map[string]map[string][]Asker, error) {
	out := map[string]map[string][]Asker{}
	for _, cell := range cells {
		recipes, err := recipesOf(cell, set)
		if err != nil {
			return nil, err
		}
		r, err := requestsFor(cell, recipes)
		if err != nil {
			return nil, err
		}
		note := func(of lock.Request, text string, who Asker) {
			name := of.Set()
			if out[name] == nil {
				out[name] = map[string][]Asker{}
			}
			if !slices.Contains(out[name][text], who) {
				out[name][text] = append(out[name][text], who)
			}
		}
		note(r.base, "", Asker{Pos: cell.Base.Pos})
		note(r.tools, "", Asker{Pos: cell.Base.Pos})
		for _, rec := range recipes {
			for _, list := range []struct {
				of    lock.Request
				texts []diag.Str
			}{{r.debs, rec.Debs}, {r.wheels, rec.Wheels}} {
				for _, s := range list.texts {
					text, err := recipe.Expand(s, varsOf(cell))
					if err != nil {
						return nil, fmt.Errorf("%s: %w", s.Pos, err)
					}
					note(list.of, text, Asker{Recipe: rec.Name, Pos: s.Pos})
				}
			}
		}
	}
	return out, nil
}
