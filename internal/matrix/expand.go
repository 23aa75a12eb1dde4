package matrix

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/imgforge/imgforge/internal/compat"
	"github.com/imgforge/imgforge/internal/diag"
)

// maxCells bounds a matrix: past it, an axis is a mistake.
const maxCells = 100_000

// point is a cell before it is judged: a value for each axis.
type point map[string]diag.Str

// Expand makes the cells: the product of the axes, less exclude, plus include,
// in the file's order. The error is a diag.List with every impossible cell, each
// reason once.
func (m *Matrix) Expand() ([]Cell, error) {
	e := &expansion{matrix: m, reasons: map[diag.Problem]int{}}
	points := e.product()
	points = e.exclude(points)
	points = e.include(points)
	if len(points) == 0 && len(e.bad) == 0 {
		e.bad.Add(diag.Pos{File: m.File, Line: 1}, "loosen the exclude entries", "no cell is left")
	}
	var cells []Cell
	tags := map[string]Cell{}
	for _, p := range points {
		cell := e.cell(p)
		if first, dup := tags[cell.Tag]; dup && cell.Tag != "" {
			e.bad.Add(m.Tag.Pos, "name the axes they differ in, such as ${"+differs(first, cell)+"}",
				"two cells have the tag %q: %s and %s", cell.Tag, first.describe(), cell.describe())
		}
		tags[cell.Tag] = cell
		cells = append(cells, cell)
	}
	e.report()
	return cells, e.bad.Err()
}

// expansion is one Expand: what it found wrong so far.
type expansion struct {
	matrix  *Matrix
	bad     diag.List
	reasons map[diag.Problem]int // a reason, and how many cells it strikes
}

func (e *expansion) product() []point {
	points := []point{{}}
	for name, v := range e.matrix.Defaults {
		points[0][name] = v
	}
	for _, axis := range e.matrix.Axes {
		var next []point
		for _, p := range points {
			values := axis.valuesFor(p)
			if len(values) == 0 {
				on := axis.Groups[0].WhenAxis
				e.note(axis.Name.Pos, fmt.Sprintf("add a line `%s %s: [...]`, or exclude it from axis %s", on, p[on].Value, on),
					"axis %s has no value where %s is %s", axis.Name, on, p[on].Value)
			}
			for _, v := range values {
				q := maps.Clone(p)
				q[axis.Name.Value] = v
				if next = append(next, q); len(next) > maxCells {
					e.bad.Add(axis.Name.Pos, "", "more than %d cells at axis %s", maxCells, axis.Name)
					return nil
				}
			}
		}
		points = next
	}
	if len(e.matrix.Axes) == 0 {
		return nil
	}
	return points
}

// valuesFor lists the axis's values where the other axes are as in p.
func (a Axis) valuesFor(p point) []diag.Str {
	var out []diag.Str
	for _, g := range a.Groups {
		if g.WhenAxis == "" || p[g.WhenAxis].Value == g.WhenValue {
			out = append(out, g.Values...)
		}
	}
	return out
}

func (e *expansion) exclude(points []point) []point {
	for _, rule := range e.matrix.Exclude {
		before := len(points)
		points = slices.DeleteFunc(points, func(p point) bool { return p.matches(rule.Values) })
		if len(points) == before && len(e.bad) == 0 {
			e.bad.Add(rule.Pos, "remove it, or mend its values", "this exclude entry matches no cell")
		}
	}
	return points
}

func (p point) matches(values map[string]diag.Str) bool {
	for name, v := range values {
		if p[name].Value != v.Value {
			return false
		}
	}
	return true
}

func (e *expansion) include(points []point) []point {
	for _, rule := range e.matrix.Include {
		p := point{}
		maps.Copy(p, e.matrix.Defaults)
		maps.Copy(p, rule.Values)
		for _, name := range e.axisNames() {
			if _, ok := p[name]; !ok {
				e.bad.Add(rule.Pos, "add it here or under defaults", "this include entry has no %s", name)
			}
		}
		if slices.ContainsFunc(points, func(q point) bool { return q.matches(p) }) {
			e.bad.Add(rule.Pos, "remove it", "this include entry is a cell already")
			continue
		}
		p[placeKey] = diag.Str{Pos: rule.Pos}
		points = append(points, p)
	}
	return points
}

// placeKey holds an included point's own position; no axis can have its name.
const placeKey = "@"

func (e *expansion) axisNames() []string {
	names := slices.Clone(required)
	for _, a := range e.matrix.Axes {
		if !slices.Contains(names, a.Name.Value) {
			names = append(names, a.Name.Value)
		}
	}
	return names
}

// cell judges a point and makes it a cell.
func (e *expansion) cell(p point) Cell {
	m := e.matrix
	c := Cell{
		CUDA: p["cuda"].Value, Torch: p["torch"].Value, Python: p["python"].Value,
		Driver: strings.TrimPrefix(p["driver"].Value, ">="), BaseName: p["base"].Value,
		Base: m.Bases[p["base"].Value], Platform: m.Platform.Value, Free: map[string]string{}, Pos: p["torch"].Pos,
	}
	if at, ok := p[placeKey]; ok {
		c.Pos = at.Pos
	}
	for name, v := range p {
		if !slices.Contains(required, name) && name != placeKey {
			c.Free[name] = v.Value
		}
	}
	for _, use := range m.Recipes {
		if p.matches(use.When) {
			c.Recipes = append(c.Recipes, use.Name)
		}
	}
	c.Tag = render(m.Tag.Value, c.Vars())
	if m.Tag.Value != "" && !tagForm.MatchString(c.Tag) {
		e.note(m.Tag.Pos, "a tag is at most 128 of A-Z a-z 0-9 _ . -", "%q is not a usable tag", c.Tag)
	}
	e.judge(p, &c)
	return c
}

// judge asks compat about a cell: errors are noted where the value at fault
// stands, warnings go with the cell.
func (e *expansion) judge(p point, c *Cell) {
	s := compat.Subject{CUDA: c.CUDA, Torch: c.Torch, Python: c.Python, Driver: c.Driver}
	if c.Base.Debian != nil {
		s.Suite = c.Base.Debian.Suite.Value
	}
	for _, j := range compat.Judge(s) {
		switch j.Level {
		case compat.Error:
			e.note(at(p, j), j.Why, "%s", j.What)
		case compat.Warning:
			c.Warnings = append(c.Warnings, j.String())
		}
	}
}

// at is the position of the value that a judgement is about.
func at(p point, j compat.Judgement) diag.Pos {
	if pos := p[j.Field].Pos; pos.Line > 0 {
		return pos
	}
	return p["torch"].Pos
}

// note counts a reason instead of repeating it for every cell.
func (e *expansion) note(pos diag.Pos, help, format string, args ...any) {
	e.reasons[diag.Problem{Pos: pos, What: fmt.Sprintf(format, args...), Help: help}]++
}

// report turns counted reasons into problems.
func (e *expansion) report() {
	for problem, n := range e.reasons {
		if n > 1 {
			problem.What += fmt.Sprintf(" (%d cells)", n)
		}
		e.bad = append(e.bad, &problem)
	}
}

// describe names a cell by its axes.
func (c Cell) describe() string {
	parts := []string{"cuda=" + c.CUDA, "torch=" + c.Torch, "python=" + c.Python, "driver=" + c.Driver, "base=" + c.BaseName}
	for _, name := range slices.Sorted(maps.Keys(c.Free)) {
		parts = append(parts, name+"="+c.Free[name])
	}
	return strings.Join(parts, ",")
}

// differs names the first variable in which two cells differ.
func differs(a, b Cell) string {
	va, vb := a.Vars(), b.Vars()
	for _, name := range slices.SortedFunc(maps.Keys(va), func(x, y string) int {
		return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
	}) {
		if va[name] != vb[name] {
			return name
		}
	}
	return "driver"
}
