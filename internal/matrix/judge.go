package matrix

import (
	"fmt"
	"slices"
	"strings"

	"github.com/imgforge/imgforge/internal/compat"
	"github.com/imgforge/imgforge/internal/diag"
)

// cell makes a point a cell and judges it.
func (e *expansion) cell(p point) Cell {
	m := e.matrix
	c := Cell{
		CUDA: p["cuda"].Value, Torch: p["torch"].Value, Python: p["python"].Value,
		Driver: strings.TrimPrefix(p["driver"].Value, ">="), BaseName: p["base"].Value,
		Base: m.Bases[p["base"].Value], Platform: m.Platform.Value, Free: map[string]string{}, Pos: p["torch"].Pos,
	}
	if entry, ok := p[entryKey]; ok {
		c.Pos = entry.Pos
	}
	for _, name := range e.names {
		if !slices.Contains(required, name) {
			c.Free[name] = p[name].Value
		}
	}
	for _, use := range m.Recipes {
		if !p.matches(use.When) {
			continue
		}
		if slices.ContainsFunc(c.Recipes, func(s diag.Str) bool { return s.Value == use.Name.Value }) {
			e.strike(p, diag.Problem{Pos: use.Name.Pos, Help: "let its conditions exclude each other",
				What: fmt.Sprintf("recipe %q is listed twice for the same cell", use.Name)})
			continue
		}
		c.Recipes = append(c.Recipes, use.Name)
	}
	c.Tag = render(m.Tag.Value, c.Vars())
	e.judge(p, &c)
	return c
}

// judge asks compat about a cell: an error stands where the value at fault does,
// warnings go with the cell.
func (e *expansion) judge(p point, c *Cell) {
	s := compat.Subject{CUDA: c.CUDA, Torch: c.Torch, Python: c.Python, Driver: c.Driver}
	if c.Base.Debian != nil {
		s.Suite = c.Base.Debian.Suite.Value
	}
	if _, ok := e.judged[s]; !ok { // cells that differ in free axes share a subject
		e.judged[s] = compat.Judge(s)
	}
	for _, j := range e.judged[s] {
		switch j.Level {
		case compat.Error:
			at, ok := p[j.Field]
			if !ok {
				at = p["torch"]
			}
			e.strike(p, diag.Problem{Pos: at.Pos, What: j.What, Help: j.Help()})
		case compat.Warning:
			c.Warnings = append(c.Warnings, j.String())
		}
	}
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
			a, b := points[j][axis], points[i][axis]
			e.bad.Add(at, "name what they differ in: ${"+axis+"}", "two cells have the tag %q: %s %s (%s) and %s (%s)",
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
	for _, name := range e.names {
		if a[name].Value != b[name].Value {
			return name
		}
	}
	return e.names[0] // cannot be: equal points are refused before
}

// checkRecipes refuses a recipe whose condition no cell meets.
func (e *expansion) checkRecipes(points []point) {
	for _, use := range e.matrix.Recipes {
		met := func(p point) bool { return p.matches(use.When) }
		if len(points) > 0 && !slices.ContainsFunc(points, met) {
			e.bad.Add(use.Name.Pos, "mend its when, or remove it", "recipe %q applies to no cell", use.Name)
		}
	}
}
