package matrix

import (
	"regexp"
	"slices"
	"strings"

	"github.com/imgforge/imgforge/internal/compat"
	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/version"
)

// ranged are the axes whose values may be ranges, over what the tables know.
var ranged = map[string]func() []string{
	"cuda": compat.CUDAs, "torch": compat.Torches, "python": compat.Pythons, "driver": compat.Drivers,
}

var wildcard = regexp.MustCompile(`\.[xX*](\.|$)`)

// oneFloor is a driver's `>=` alone: the one driver that is named.
var oneFloor = regexp.MustCompile(`^>=[0-9. ]*$`)

// isRange tells whether a value stands for several.
func isRange(axis, value string) bool {
	if ranged[axis] == nil || axis == "driver" && oneFloor.MatchString(value) {
		return false
	}
	return strings.ContainsAny(value, "<>=~^|, ") || wildcard.MatchString(value) || value == "*"
}

// zeros are leading zeros in a driver's version, which ranges cannot hold.
var zeros = regexp.MustCompile(`(^|[^0-9])0+([0-9])`)

// inRange holds a value of an axis to a range.
func inRange(axis, value, want string) (bool, error) {
	if axis == "driver" {
		value = zeros.ReplaceAllString(strings.TrimPrefix(value, ">="), "$1$2")
		want = zeros.ReplaceAllString(want, "$1$2")
	}
	return version.InRange(value, want)
}

// covered lists those of values that a rule's value stands for: itself, or all
// inside of it when it is a range.
func covered(axis, want string, values []string) []string {
	var out []string
	for _, v := range values {
		in := v == want
		if !in && isRange(axis, want) {
			in, _ = inRange(axis, v, want)
		}
		if in {
			out = append(out, v)
		}
	}
	return out
}

// line is what the patch releases of one minor release have in common; a driver's
// is its branch.
func line(axis, v string) string {
	major, minor := majorMinor(v)
	if axis == "driver" {
		return major
	}
	return major + "." + minor
}

// resolve lists what a range stands for: of each minor line the newest release
// that is inside it, oldest first. Any other value stands for itself.
func (r *reader) resolve(axis string, v diag.Str) []diag.Str {
	if !isRange(axis, v.Value) {
		return []diag.Str{v}
	}
	if !r.wellFormed(axis, v) {
		return nil
	}
	known := ranged[axis]()
	var out []diag.Str
	for _, release := range covered(axis, v.Value, known) {
		if n := len(out); n > 0 && line(axis, strings.TrimPrefix(out[n-1].Value, ">=")) == line(axis, release) {
			out = out[:n-1]
		}
		if axis == "driver" {
			release = ">=" + release
		}
		out = append(out, diag.Str{Pos: v.Pos, Value: release})
	}
	if len(out) == 0 {
		r.Bad.Add(v.Pos, "known: "+strings.Join(known, ", "), "%s %q matches no known release", axis, v.Value)
	}
	return out
}

// wellFormed notes a range that cannot be read.
func (r *reader) wellFormed(axis string, v diag.Str) bool {
	if !isRange(axis, v.Value) {
		return true
	}
	_, err := inRange(axis, "1.0.0", v.Value)
	if err != nil {
		r.Bad.Add(v.Pos, "", "%s: %s", axis, err)
	}
	return err == nil
}

// resolveOne is resolve for where one value must stand.
func (r *reader) resolveOne(axis string, v diag.Str, what string) diag.Str {
	all := r.resolve(axis, v)
	if len(all) > 1 {
		r.Bad.Add(v.Pos, "name one of them", "%s of %s is one value, and %q matches %s", axis, what, v.Value, strings.Join(words(all), ", "))
	}
	if len(all) != 1 {
		return diag.Str{Pos: v.Pos}
	}
	return all[0]
}

// resolveAll replaces every range in axes, defaults and include by what it stands
// for.
func (r *reader) resolveAll(m *Matrix) {
	for _, a := range m.Axes {
		for i, g := range a.Groups {
			a.Groups[i].Values = nil
			for _, v := range g.Values {
				a.Groups[i].Values = append(a.Groups[i].Values, r.resolve(a.Name.Value, v)...)
			}
		}
	}
	for axis, v := range m.Defaults {
		m.Defaults[axis] = r.resolveOne(axis, v, "defaults")
	}
	for _, rule := range m.Include {
		for axis, v := range rule.Values {
			rule.Values[axis] = r.resolveOne(axis, v, "include")
		}
	}
}

func words(list []diag.Str) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = s.Value
	}
	return slices.Compact(out)
}
