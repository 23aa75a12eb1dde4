package matrix

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/imgforge/imgforge/internal/compat"
	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/version"
	"gopkg.in/yaml.v3"
)

// checkAxes holds axes, conditions, defaults and rules to each other.
func (r *reader) checkAxes(top *yaml.Node, m *Matrix) {
	names := map[string]bool{}
	for _, a := range m.Axes {
		names[a.Name.Value] = true
	}
	for _, name := range required {
		if _, ok := m.Defaults[name]; !ok && !names[name] {
			r.fail(top, "list its values under axes, or one under defaults", "no axis %q", name)
		}
		names[name] = true
	}
	for word, what := range r.names {
		if !names[word.Value] && word.Value != "why" {
			r.bad.Add(word.Pos, allowed(word.Value, keys(names)), "unknown axis %q in %s", word.Value, what)
		}
	}
	r.checkConditions(m)
	for _, a := range m.Axes {
		for _, g := range a.Groups {
			for _, v := range g.Values {
				r.checkValue(a.Name.Value, v, m)
			}
		}
	}
	for name, v := range m.Defaults {
		r.checkValue(name, v, m)
	}
	for _, rule := range m.Include {
		for name, v := range rule.Values {
			r.checkValue(name, v, m)
		}
	}
	for _, rule := range m.Exclude {
		r.checkKnown(rule.Values, m, "exclude")
	}
	for _, use := range m.Recipes {
		r.checkKnown(use.When, m, "when")
	}
	if m.Tag.Value != "" {
		r.checkTemplate(m)
	}
}

// checkConditions finds the axis and value each group depends on.
func (r *reader) checkConditions(m *Matrix) {
	for i, a := range m.Axes {
		for _, g := range a.Groups {
			if g.WhenAxis == "" {
				continue
			}
			on := slices.IndexFunc(m.Axes, func(o Axis) bool { return o.Name.Value == g.WhenAxis })
			switch {
			case on < 0:
				r.bad.Add(g.Pos, "", "axis %s depends on %q, which is no axis", a.Name, g.WhenAxis)
			case on >= i:
				r.bad.Add(g.Pos, "write "+g.WhenAxis+" above it", "axis %s depends on %s, which comes after it", a.Name, g.WhenAxis)
			case !m.Axes[on].has(g.WhenValue):
				r.bad.Add(g.Pos, "its values: "+strings.Join(m.Axes[on].all(), ", "), "axis %s has no value %q", g.WhenAxis, g.WhenValue)
			}
		}
	}
}

// checkKnown holds a rule's values to those the axes have.
func (r *reader) checkKnown(values map[string]diag.Str, m *Matrix, what string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		known := m.valuesOf(name)
		if v := values[name]; len(known) > 0 && !slices.Contains(known, v.Value) {
			r.bad.Add(v.Pos, "its values: "+strings.Join(known, ", "), "%s names the %s %q, which no cell has", what, name, v.Value)
		}
	}
}

var (
	exactForm = regexp.MustCompile(`^\d+\.\d+\.\d+$`)
	tagForm   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
)

// checkValue holds one value to its axis, as far as it can be judged alone.
func (r *reader) checkValue(axis string, v diag.Str, m *Matrix) {
	if v.Value == "" {
		return
	}
	switch axis {
	case "base":
		if _, ok := m.Bases[v.Value]; !ok {
			r.bad.Add(v.Pos, allowed(v.Value, keys(m.Bases)), "unknown base %q", v.Value)
		}
	case "cuda":
		if _, err := version.ParseCUDA(v.Value); err != nil {
			r.bad.Add(v.Pos, "", "cuda: %s", err)
		} else if !slices.Contains(compat.CUDAs(), v.Value) {
			r.bad.Add(v.Pos, "known: "+strings.Join(compat.CUDAs(), ", "), "no torch is built for CUDA %q", v.Value)
		}
	case "torch":
		if !exactForm.MatchString(v.Value) {
			r.bad.Add(v.Pos, matches(v.Value), "torch %q is not an exact version", v.Value)
		}
	case "python":
		if !regexp.MustCompile(`^3\.\d+$`).MatchString(v.Value) {
			r.bad.Add(v.Pos, "such as \"3.11\"", "python %q is not of the form 3.N", v.Value)
		}
	case "driver":
		if !strings.HasPrefix(v.Value, ">=") {
			r.bad.Add(v.Pos, fmt.Sprintf("write %q", ">="+strings.TrimLeft(v.Value, "<>=~^ ")), "driver %q is not a floor", v.Value)
		} else if _, err := version.ParseFloor(v.Value); err != nil {
			r.bad.Add(v.Pos, "such as \">=525.60.13\"", "driver: %s", err)
		}
	}
}

// matches tells which exact versions a range would stand for.
func matches(constraint string) string {
	var hits []string
	for _, t := range compat.Torches() {
		if ok, err := version.InRange(t, constraint); err == nil && ok {
			hits = append(hits, t)
		}
	}
	if len(hits) == 0 {
		return "known: " + strings.Join(compat.Torches(), ", ")
	}
	return "it would match " + strings.Join(hits, ", ") + "; list the ones you mean"
}

func (a Axis) has(value string) bool { return slices.Contains(a.all(), value) }

func (a Axis) all() []string {
	var out []string
	for _, g := range a.Groups {
		for _, v := range g.Values {
			if !slices.Contains(out, v.Value) {
				out = append(out, v.Value)
			}
		}
	}
	return out
}

// valuesOf lists every value that an axis can have in this matrix.
func (m *Matrix) valuesOf(name string) []string {
	var out []string
	for _, a := range m.Axes {
		if a.Name.Value == name {
			out = append(out, a.all()...)
		}
	}
	if v, ok := m.Defaults[name]; ok {
		out = append(out, v.Value)
	}
	for _, rule := range m.Include {
		if v, ok := rule.Values[name]; ok {
			out = append(out, v.Value)
		}
	}
	return out
}
