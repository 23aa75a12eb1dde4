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
// cell, each reason once with the number of cells it strikes. With `holes: skip`,
// a cell that cannot work is no problem but a hole.
func (m *Matrix) Expand() (*Expansion, error) {
	e := newExpansion(m)
	if !e.product() {
		e.bad = nil
		e.bad.Add(e.place(), "split the matrix; "+m.sizes(), "the axes make more than %d cells", maxCells)
		return nil, e.bad.Err()
	}
	whole := len(e.bad) == 0 // else what matches nothing may match what is missing
	e.exclude(whole)
	e.include()
	if len(e.points) == 0 && len(e.bad) == 0 {
		e.bad.Add(e.place(), "loosen the exclude entries", "no cell is left: every one is excluded")
	}
	out := &Expansion{}
	kept := e.points[:0:0]
	for _, p := range e.points {
		cell, hole := e.cell(p)
		if hole != nil {
			out.Holes = append(out.Holes, *hole)
			continue
		}
		kept = append(kept, p)
		out.Cells = append(out.Cells, cell)
	}
	if len(kept) == 0 && len(out.Holes) > 0 {
		first := out.Holes[0]
		e.bad.Add(first.Pos, "", "no cell is left: not one of %d can work; the first, %s: %s", len(out.Holes), first.Cell, strings.Join(first.Reasons, "; "))
	}
	e.checkTags(kept, out.Cells)
	if whole {
		e.checkRecipes(kept)
	}
	e.report(len(e.points))
	if err := e.bad.Err(); err != nil {
		return nil, err
	}
	return out, nil
}

// expansion is one Expand: what it made and found wrong so far.
type expansion struct {
	matrix  *Matrix
	names   []string // of all axes
	known   map[string][]string
	points  []point
	dead    int                      // points that an axis has no value for
	groups  [][]condition            // by axis of the file, then group
	uses    [][]want                 // by recipe use
	lists   map[string]recipes       // by which uses apply
	values  []map[string][]*diag.Str // by axis of the file, then by what it depends on
	tag     []piece
	bad     diag.List
	reasons map[diag.Problem]*strike
	judged  map[compat.Subject]verdict
}

// point is a cell before it is judged: a value for each axis, in their order, and
// the include entry that made it.
type point struct {
	at    []*diag.Str
	entry *Rule
}

// want is what a rule asks of one axis: one of some values.
type want struct {
	axis   int
	values map[string]bool
}

// condition is a group's; without values it always holds.
type condition = want

func newExpansion(m *Matrix) *expansion {
	e := &expansion{matrix: m, names: m.axisNames(), known: m.known(), lists: map[string]recipes{},
		reasons: map[diag.Problem]*strike{}, judged: map[compat.Subject]verdict{}}
	for _, a := range m.Axes {
		var on []condition
		for _, g := range a.Groups {
			c := condition{axis: -1}
			if g.WhenAxis != "" {
				c = e.want(g.WhenAxis, g.WhenValue)
			}
			on = append(on, c)
		}
		e.groups = append(e.groups, on)
		e.values = append(e.values, map[string][]*diag.Str{})
	}
	for _, use := range m.Recipes {
		e.uses = append(e.uses, e.wants(use.When))
	}
	e.tag, _ = split(m.Tag.Value)
	return e
}

// want asks an axis for a value, or for all inside of a range.
func (e *expansion) want(axis, value string) want {
	w := want{slices.Index(e.names, axis), map[string]bool{}}
	for _, v := range covered(axis, value, e.known[axis]) {
		w.values[v] = true
	}
	return w
}

func (e *expansion) wants(values map[string]diag.Str) []want {
	var out []want
	for _, axis := range slices.Sorted(maps.Keys(values)) {
		out = append(out, e.want(axis, values[axis].Value))
	}
	return out
}

func (p point) meets(wants []want) bool {
	for _, w := range wants {
		if !w.values[p.at[w.axis].Value] {
			return false
		}
	}
	return true
}

// place is where a problem of the axes as a whole is shown.
func (e *expansion) place() diag.Pos {
	if len(e.matrix.Axes) > 0 {
		return e.matrix.Axes[0].Name.Pos
	}
	return diag.Pos{File: e.matrix.File, Line: 1, Col: 1}
}

// sizes names how many values each axis has.
func (m *Matrix) sizes() string {
	var parts []string
	for _, a := range m.Axes {
		parts = append(parts, fmt.Sprintf("%s has %d", a.Name, len(a.all())))
	}
	return strings.Join(parts, ", ")
}

// exclude drops what a rule matches. Each rule is held to all points, so that
// rules may overlap; one that matches none of the whole product is noted.
func (e *expansion) exclude(whole bool) {
	drop := make([]bool, len(e.points))
	for _, rule := range e.matrix.Exclude {
		matched, wants := false, e.wants(rule.Values)
		for i, p := range e.points {
			if p.meets(wants) {
				drop[i], matched = true, true
			}
		}
		if !matched && whole {
			e.bad.Add(rule.Pos, "remove it, or mend its values", "this exclude entry matches no cell")
		}
	}
	kept := e.points[:0]
	for i, p := range e.points {
		if !drop[i] {
			kept = append(kept, p)
		}
	}
	e.points = kept
}

// include adds the cells of the include entries.
func (e *expansion) include() {
	if len(e.matrix.Include) == 0 {
		return
	}
	seen := map[string]diag.Pos{}
	for _, p := range e.points {
		seen[p.key()] = e.of(p, "torch").Pos
	}
	for i := range e.matrix.Include {
		rule := &e.matrix.Include[i]
		p := point{at: make([]*diag.Str, len(e.names)), entry: rule}
		var missing []string
		for j, name := range e.names {
			v, ok := rule.Values[name]
			if !ok {
				v, ok = e.matrix.Defaults[name]
			}
			if !ok {
				missing = append(missing, name)
			}
			p.at[j] = &v
		}
		if len(missing) > 0 {
			e.bad.Add(rule.Pos, "add it here or under defaults", "this include entry has no %s", strings.Join(missing, ", no "))
			continue
		}
		if first, dup := seen[p.key()]; dup {
			e.bad.Add(rule.Pos, fmt.Sprintf("the cell comes from line %d; remove this entry", first.Line), "this include entry is a cell already")
			continue
		}
		seen[p.key()] = rule.Pos
		e.points = append(e.points, p)
	}
}

// of is a point's value for an axis.
func (e *expansion) of(p point, axis string) diag.Str { return *p.at[slices.Index(e.names, axis)] }

// key tells points apart.
func (p point) key() string {
	var b strings.Builder
	for _, v := range p.at {
		b.WriteString(v.Value + "\x00")
	}
	return b.String()
}

// describe names a point as a selector would: cuda=12.1,torch=2.4.1.
func (e *expansion) describe(p point) string {
	parts := make([]string, len(e.names))
	for i, name := range e.names {
		parts[i] = name + "=" + strings.TrimPrefix(p.at[i].Value, ">=")
	}
	return strings.Join(parts, ",")
}
