package matrix

import (
	"fmt"
	"slices"
	"strings"

	"github.com/imgforge/imgforge/internal/diag"
)

// product makes the points that the axes span; false when they are too many.
func (e *expansion) product() bool {
	at := make([]*diag.Str, len(e.names))
	for i, name := range e.names {
		if v, ok := e.matrix.Defaults[name]; ok {
			at[i] = &v
		}
	}
	return e.grow(at, 0)
}

// grow adds the points that begin with the first values of at.
func (e *expansion) grow(at []*diag.Str, axis int) bool {
	if axis == len(e.matrix.Axes) {
		e.points = append(e.points, point{at: slices.Clone(at)})
	}
	if len(e.points)+e.dead+len(e.matrix.Include) > maxCells {
		return false
	}
	if axis == len(e.matrix.Axes) {
		return true
	}
	values := e.valuesFor(axis, at)
	if len(values) == 0 {
		e.dead++ // a mistake that valuesFor tells; it bounds the search
	}
	for _, v := range values {
		if at[axis] = v; !e.grow(at, axis+1) {
			return false
		}
	}
	return true
}

// valuesFor lists an axis's values where the axes above it are as in at; none and
// repeated ones are noted.
func (e *expansion) valuesFor(axis int, at []*diag.Str) []*diag.Str {
	a, key := e.matrix.Axes[axis], ""
	for _, on := range e.groups[axis] {
		if on.axis >= 0 {
			key += at[on.axis].Value + "\x00"
		}
	}
	out, done := e.values[axis][key]
	if done {
		return out
	}
	for i, on := range e.groups[axis] {
		if on.axis >= 0 && !on.values[at[on.axis].Value] {
			continue
		}
		for j := range a.Groups[i].Values {
			v := &a.Groups[i].Values[j]
			same := func(o *diag.Str) bool { return o.Value == v.Value }
			if i := slices.IndexFunc(out, same); i >= 0 {
				e.bad.Add(v.Pos, fmt.Sprintf("the first is on line %d; keep one", out[i].Pos.Line), "axis %s has %q twice%s", a.Name, v, e.where(axis, at))
				continue
			}
			out = append(out, v)
		}
	}
	if len(out) == 0 {
		on := e.groups[axis][0].axis // a group that always holds has values
		e.bad.Add(a.Name.Pos, fmt.Sprintf("add a line `%s %s: [...]`, or remove that value from axis %s", e.names[on], at[on], e.names[on]),
			"axis %s has no value%s", a.Name, e.where(axis, at))
	}
	e.values[axis][key] = out
	return out
}

// where tells what at has for the axes that an axis depends on: " where cuda is 12.1".
func (e *expansion) where(axis int, at []*diag.Str) string {
	var parts []string
	for _, on := range e.groups[axis] {
		if on.axis < 0 {
			continue
		}
		if part := e.names[on.axis] + " is " + at[on.axis].Value; !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	if parts == nil {
		return ""
	}
	return " where " + strings.Join(parts, " and ")
}
