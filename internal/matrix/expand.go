package matrix

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/imgforge/imgforge/internal/compat"
	"github.com/imgforge/imgforge/internal/diag"
)

// maxCells bounds a matrix: past it, an axis is a mistake.
const maxCells = 100_000

// Expand makes the cells: the product of the axes in the file's order, less
// exclude, plus include. The error is a diag.List with every problem of every
// cell, each reason once with the number of cells it strikes.
func (m *Matrix) Expand() ([]Cell, error) {
	e := &expansion{matrix: m, names: m.axisNames(), reasons: map[diag.Problem]*strike{}, judged: map[compat.Subject][]compat.Judgement{}}
	if n := e.count(point{}, m.Axes) + len(m.Include); n > maxCells {
		e.bad.Add(e.place(), "split the matrix; "+m.sizes(), "the axes make more than %d cells", maxCells)
		return nil, e.bad.Err()
	}
	points := e.product()
	whole := len(e.bad) == 0 // else what matches nothing may match what is missing
	points = e.include(e.exclude(points, whole))
	if len(points) == 0 && len(e.bad) == 0 {
		e.bad.Add(e.place(), "loosen the exclude entries", "no cell is left: every one is excluded")
	}
	cells := make([]Cell, len(points))
	for i, p := range points {
		cells[i] = e.cell(p)
	}
	e.checkTags(points, cells)
	if whole {
		e.checkRecipes(points)
	}
	e.report(len(points))
	if err := e.bad.Err(); err != nil {
		return nil, err
	}
	return cells, nil
}

// expansion is one Expand: what it found wrong so far.
type expansion struct {
	matrix  *Matrix
	names   []string // of all axes
	bad     diag.List
	reasons map[diag.Problem]*strike
	judged  map[compat.Subject][]compat.Judgement
}

// point is a cell before it is judged: a value for each axis.
type point map[string]diag.Str

// place is where a problem of the axes as a whole is shown.
func (e *expansion) place() diag.Pos {
	if len(e.matrix.Axes) > 0 {
		return e.matrix.Axes[0].Name.Pos
	}
	return diag.Pos{File: e.matrix.File, Line: 1, Col: 1}
}

// count tells how many points the axes make, without making them; past maxCells
// it stops.
func (e *expansion) count(p point, axes []Axis) int {
	if len(axes) == 0 {
		return 1
	}
	n := 0
	for _, v := range axes[0].valuesFor(p) {
		p[axes[0].Name.Value] = v
		if n += e.count(p, axes[1:]); n > maxCells {
			break
		}
	}
	return max(n, 1) // a mistake that product tells; it bounds the search
}

// sizes names how many values each axis has.
func (m *Matrix) sizes() string {
	var parts []string
	for _, a := range m.Axes {
		parts = append(parts, fmt.Sprintf("%s has %d", a.Name, len(a.all())))
	}
	return strings.Join(parts, ", ")
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

func (e *expansion) product() []point {
	points := []point{{}}
	for name, v := range e.matrix.Defaults {
		points[0][name] = v
	}
	for _, axis := range e.matrix.Axes {
		var next []point
		for _, p := range points {
			for _, v := range e.values(axis, p) {
				q := maps.Clone(p)
				q[axis.Name.Value] = v
				next = append(next, q)
			}
		}
		points = next
	}
	return points
}

// values is valuesFor, none and repeated ones noted.
func (e *expansion) values(axis Axis, p point) []diag.Str {
	var out []diag.Str
	for _, v := range axis.valuesFor(p) {
		same := func(o diag.Str) bool { return o.Value == v.Value }
		if i := slices.IndexFunc(out, same); i >= 0 {
			e.bad.Add(v.Pos, fmt.Sprintf("the first is on line %d; keep one", out[i].Pos.Line), "axis %s has %q twice%s", axis.Name, v, axis.where(p))
			continue
		}
		out = append(out, v)
	}
	if len(out) == 0 {
		on := axis.Groups[0].WhenAxis // a group that always holds has values
		e.bad.Add(axis.Name.Pos, fmt.Sprintf("add a line `%s %s: [...]`, or remove that value from axis %s", on, p[on].Value, on),
			"axis %s has no value%s", axis.Name, axis.where(p))
	}
	return out
}

// where tells what p has for the axes that a depends on: " where cuda is 12.1".
func (a Axis) where(p point) string {
	var parts []string
	for _, g := range a.Groups {
		if part := g.WhenAxis + " is " + p[g.WhenAxis].Value; g.WhenAxis != "" && !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	if parts == nil {
		return ""
	}
	return " where " + strings.Join(parts, " and ")
}

// exclude drops what a rule matches. Each rule is held to all points, so that
// rules may overlap; one that matches none of the whole product is noted.
func (e *expansion) exclude(points []point, whole bool) []point {
	drop := make([]bool, len(points))
	for _, rule := range e.matrix.Exclude {
		matched := false
		for i, p := range points {
			if p.matches(rule.Values) {
				drop[i], matched = true, true
			}
		}
		if !matched && whole {
			e.bad.Add(rule.Pos, "remove it, or mend its values", "this exclude entry matches no cell")
		}
	}
	var kept []point
	for i, p := range points {
		if !drop[i] {
			kept = append(kept, p)
		}
	}
	return kept
}

func (p point) matches(values map[string]diag.Str) bool {
	for name, v := range values {
		if p[name].Value != v.Value {
			return false
		}
	}
	return true
}

// entryKey holds the position of the include entry that made a point; no axis
// can have its name.
const entryKey = "@"

func (e *expansion) include(points []point) []point {
	seen := map[string]diag.Pos{}
	for _, p := range points {
		seen[e.key(p)] = p["torch"].Pos
	}
	for _, rule := range e.matrix.Include {
		p := point{entryKey: {Pos: rule.Pos}}
		maps.Copy(p, e.matrix.Defaults)
		maps.Copy(p, rule.Values)
		var missing []string
		for _, name := range e.names {
			if _, ok := p[name]; !ok {
				missing = append(missing, name)
			}
		}
		if len(missing) > 0 {
			e.bad.Add(rule.Pos, "add it here or under defaults", "this include entry has no %s", strings.Join(missing, ", no "))
			continue
		}
		if first, dup := seen[e.key(p)]; dup {
			e.bad.Add(rule.Pos, fmt.Sprintf("the cell comes from line %d; remove this entry", first.Line), "this include entry is a cell already")
			continue
		}
		seen[e.key(p)] = rule.Pos
		points = append(points, p)
	}
	return points
}

// key tells points apart.
func (e *expansion) key(p point) string {
	var b strings.Builder
	for _, name := range e.names {
		b.WriteString(p[name].Value + "\x00")
	}
	return b.String()
}

// describe names a point as a selector would: cuda=12.1,torch=2.4.1.
func (e *expansion) describe(p point) string {
	parts := make([]string, len(e.names))
	for i, name := range e.names {
		parts[i] = name + "=" + strings.TrimPrefix(p[name].Value, ">=")
	}
	return strings.Join(parts, ",")
}
