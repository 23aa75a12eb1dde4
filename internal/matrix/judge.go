package matrix

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/imgforge/imgforge/internal/compat"
	"github.com/imgforge/imgforge/internal/diag"
)

// cell makes a point a cell and judges it; a hole when it cannot work and the
// matrix skips those.
func (e *expansion) cell(p point) (Cell, *Hole) {
	m := e.matrix
	c := Cell{Platform: m.Platform.Value, Free: map[string]string{}}
	for i, name := range e.names {
		switch v := p.at[i]; name {
		case "cuda":
			c.CUDA = v.Value
		case "torch":
			c.Torch, c.Pos = v.Value, v.Pos
		case "python":
			c.Python = v.Value
		case "driver":
			c.Driver = strings.TrimPrefix(v.Value, ">=")
		case platformAxis:
			c.Platform = v.Value
		case "base":
			c.BaseName, c.Base = v.Value, m.Bases[v.Value]
		default:
			c.Free[name] = v.Value
		}
	}
	if p.entry != nil {
		c.Pos = p.entry.Pos
	}
	v := e.judge(c)
	c.Warnings = v.warnings
	if len(v.errors) > 0 && m.Skip {
		return c, e.hole(p, v)
	}
	for _, j := range v.errors {
		e.strike(p, diag.Problem{Pos: e.fault(p, j), What: j.What, Help: j.Help()})
	}
	c.Recipes = e.recipes(p)
	c.Tag = c.render(e.tag)
	return c, nil
}

// recipes are the names that some uses of recipes give, and the uses that name one
// again.
type recipes struct {
	names []diag.Str
	twice []diag.Str
}

// recipes lists the recipes whose conditions a point meets.
func (e *expansion) recipes(p point) []diag.Str {
	met := make([]byte, len(e.uses))
	for i, when := range e.uses {
		if p.meets(when) {
			met[i] = 1
		}
	}
	list, done := e.lists[string(met)]
	for i, use := range e.matrix.Recipes {
		if done || met[i] == 0 {
			continue
		}
		if slices.ContainsFunc(list.names, func(s diag.Str) bool { return s.Value == use.Name.Value }) {
			list.twice = append(list.twice, use.Name)
			continue
		}
		list.names = append(list.names, use.Name)
	}
	e.lists[string(met)] = list
	for _, name := range list.twice {
		e.strike(p, diag.Problem{Pos: name.Pos, Help: "let its conditions exclude each other",
			What: fmt.Sprintf("recipe %q is listed twice for the same cell", name)})
	}
	return list.names
}

// verdict is what compat says of a subject.
type verdict struct {
	errors   []compat.Judgement
	warnings []string
}

// judge asks compat about a cell, once for all cells that differ in free axes alone.
func (e *expansion) judge(c Cell) verdict {
	s := compat.Subject{CUDA: c.CUDA, Torch: c.Torch, Python: c.Python, Driver: c.Driver, Platform: c.Platform}
	if c.Base.Debian != nil {
		s.Suite = c.Base.Debian.Suite.Value
	}
	v, done := e.judged[s]
	if done {
		return v
	}
	for _, j := range compat.Judge(s) {
		switch j.Level {
		case compat.Error:
			v.errors = append(v.errors, j)
		case compat.Warning:
			v.warnings = append(v.warnings, j.String())
		}
	}
	e.judged[s] = v
	return v
}

// fault is where the value stands that an error is about.
func (e *expansion) fault(p point, j compat.Judgement) diag.Pos {
	if i := slices.Index(e.names, j.Field); i >= 0 {
		return p.at[i].Pos
	}
	if j.Field == platformAxis {
		return e.matrix.Platform.Pos
	}
	return e.of(p, "torch").Pos
}

func (e *expansion) hole(p point, v verdict) *Hole {
	h := &Hole{Cell: e.describe(p), Pos: e.fault(p, v.errors[0])}
	for _, j := range v.errors {
		h.Reasons = append(h.Reasons, j.String())
	}
	return h
}

// strike is how many points one reason strikes, and the first of them.
type strike struct {
	points int
	first  point
}

// strike counts a reason instead of repeating it for every cell.
func (e *expansion) strike(p point, reason diag.Problem) {
	if e.reasons[reason] == nil {
		e.reasons[reason] = &strike{first: p}
	}
	e.reasons[reason].points++
}

// report turns counted reasons into problems that say which of all points they
// strike.
func (e *expansion) report(all int) {
	for reason, s := range e.reasons {
		which := ""
		switch {
		case s.points == all && all > 1:
			which = fmt.Sprintf(" (in all %d cells)", all)
		case s.points > 1:
			which = fmt.Sprintf(" (in %d cells, the first of them %s)", s.points, e.describe(s.first))
		case all > 1:
			which = fmt.Sprintf(" (in the cell %s)", e.describe(s.first))
		}
		e.bad.Add(reason.Pos, reason.Help, "%s%s", reason.What, which)
	}
}

// checkTags holds tags to what registries take, and to one cell each. Cells that
// collide because the template leaves out the same axis are one problem.
func (e *expansion) checkTags(points []point, cells []Cell) {
	at := e.matrix.Tag.Pos
	first := map[string]int{}
	said := map[string]bool{}
	for i, c := range cells {
		if !tagForm.MatchString(c.Tag) {
			if !said[""] {
				e.bad.Add(at, "a tag is 1 to 128 of A-Z a-z 0-9 _ . -, and does not begin with . or -",
					"%q is not a usable tag (of the cell %s)", c.Tag, e.describe(points[i]))
			}
			said[""] = true
			continue
		}
		j, taken := first[c.Tag]
		if !taken {
			first[c.Tag] = i
			continue
		}
		axis := e.differ(points[i], points[j])
		if !said[axis] {
			a, b := e.of(points[j], axis), e.of(points[i], axis)
			name := map[string]string{platformAxis: "arch"}[axis] // a tag cannot hold a platform's slash
			e.bad.Add(at, "name what they differ in: ${"+cmp.Or(name, axis)+"}", "two cells have the tag %q: %s %s (%s) and %s (%s)",
				c.Tag, axis, a, cells[j].placeOf(a), b, cells[i].placeOf(b))
		}
		said[axis] = true
	}
}

// placeOf is where a value of the cell stands, or the cell's own place.
func (c Cell) placeOf(v diag.Str) diag.Pos {
	if v.Pos.Line > 0 {
		return v.Pos
	}
	return c.Pos
}

// differ names the first axis in which two points differ.
func (e *expansion) differ(a, b point) string {
	for i, name := range e.names {
		if a.at[i].Value != b.at[i].Value {
			return name
		}
	}
	return e.names[0] // cannot be: equal points are refused before
}

// checkRecipes refuses a recipe whose condition no cell meets.
func (e *expansion) checkRecipes(points []point) {
	for i, use := range e.matrix.Recipes {
		met := func(p point) bool { return p.meets(e.uses[i]) }
		if len(points) > 0 && !slices.ContainsFunc(points, met) {
			e.bad.Add(use.Name.Pos, "mend its when, or remove it", "recipe %q applies to no cell", use.Name)
		}
	}
}
