package matrix

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/imgforge/imgforge/internal/compat"
	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/version"
)

// checkAxes holds axes, conditions, defaults and rules to each other.
func (r *reader) checkAxes(top *yaml.Node, m *Matrix) {
	names := map[string]bool{}
	for _, a := range m.Axes {
		names[a.Name.Value] = true
	}
	var missing []string
	for _, name := range required {
		if _, ok := m.Defaults[name]; !ok && !names[name] {
			missing = append(missing, name)
		}
		names[name] = true
	}
	names[platformAxis] = true
	if len(missing) > 0 {
		r.Fail(top, "list their values under axes, or one under defaults", "no axis %s", strings.Join(missing, ", no axis "))
	}
	for _, u := range r.uses {
		if !names[u.word.Value] {
			r.Bad.Add(u.word.Pos, diag.Allowed(u.word.Value, slices.Sorted(maps.Keys(names))), "unknown axis %q in %s", u.word.Value, u.in)
		}
	}
	r.resolveAll(m)
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
	known := m.known()
	for _, rule := range m.Exclude {
		r.checkKnown(rule.Values, known, "exclude")
	}
	for _, use := range m.Recipes {
		r.checkKnown(use.When, known, "when")
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
				r.Bad.Add(g.Pos, "write one of axes, above it", "axis %s depends on %q, which is no axis", a.Name, g.WhenAxis)
			case on >= i:
				r.Bad.Add(g.Pos, "write "+g.WhenAxis+" above it", "axis %s depends on %s, which comes after it", a.Name, g.WhenAxis)
			case len(m.Axes[on].all()) > 0 && len(covered(g.WhenAxis, g.WhenValue, m.Axes[on].all())) == 0:
				r.Bad.Add(g.Pos, "its values: "+strings.Join(m.Axes[on].all(), ", "), "axis %s has no value %q", g.WhenAxis, g.WhenValue)
			}
		}
	}
}

// checkKnown holds a rule's values to those that some cell could have.
func (r *reader) checkKnown(values map[string]diag.Str, known map[string][]string, what string) {
	for name, v := range values {
		if !r.wellFormed(name, v) {
			continue
		}
		if has := known[name]; v.Value != "" && len(has) > 0 && len(covered(name, v.Value, has)) == 0 {
			r.Bad.Add(v.Pos, "its values: "+strings.Join(has, ", "), "%s names the %s %q, which no cell has", what, name, v.Value)
		}
	}
}

var (
	exactForm  = regexp.MustCompile(`^\d+\.\d+\.\d+$`)
	pythonForm = regexp.MustCompile(`^3\.\d+$`)
	floorForm  = regexp.MustCompile(`^>=\d[\d.]*$`)
	tagForm    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
)

// checkValue holds one value to its axis, as far as it can be judged alone.
func (r *reader) checkValue(axis string, v diag.Str, m *Matrix) {
	if v.Value == "" {
		return
	}
	switch axis {
	case "base":
		if _, ok := m.Bases[v.Value]; !ok && len(m.Bases) > 0 {
			r.Bad.Add(v.Pos, diag.Allowed(v.Value, slices.Sorted(maps.Keys(m.Bases))), "unknown base %q", v.Value)
		}
	case platformAxis:
		r.checkPlatform(v)
	case "cuda":
		if _, err := version.ParseCUDA(v.Value); err != nil {
			r.Bad.Add(v.Pos, "", "cuda: %s", err)
		} else if !slices.Contains(compat.CUDAs(), v.Value) {
			r.Bad.Add(v.Pos, "known: "+strings.Join(compat.CUDAs(), ", "), "no torch is built for CUDA %q", v.Value)
		}
	case "torch":
		if !exactForm.MatchString(v.Value) {
			r.Bad.Add(v.Pos, "write an exact release such as \"2.4.1\", or a range such as \"~2.4\"", "torch %q is not an exact version", v.Value)
		}
	case "python":
		if !pythonForm.MatchString(v.Value) {
			r.Bad.Add(v.Pos, "such as \"3.11\"", "python %q is not of the form 3.N", v.Value)
		}
	case "driver":
		bare := strings.TrimLeft(v.Value, "<>=~^ ")
		if _, err := version.ParseDriver(bare); err != nil {
			r.Bad.Add(v.Pos, "such as \">=525.60.13\"", "driver %q is not a floor", v.Value)
		} else if !floorForm.MatchString(v.Value) {
			r.Bad.Add(v.Pos, fmt.Sprintf("write %q", ">="+strings.TrimSpace(bare)), "driver %q is not a floor", v.Value)
		}
	}
}

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

// known lists every value that an axis can have in this matrix, by axis.
func (m *Matrix) known() map[string][]string {
	out := map[string][]string{}
	add := func(name, value string) {
		if value != "" && !slices.Contains(out[name], value) {
			out[name] = append(out[name], value)
		}
	}
	for _, a := range m.Axes {
		for _, v := range a.all() {
			add(a.Name.Value, v)
		}
	}
	for name, v := range m.Defaults {
		add(name, v.Value)
	}
	for _, rule := range m.Include {
		for name, v := range rule.Values {
			add(name, v.Value)
		}
	}
	return out
}

// axisNames lists the file's axes in its order, then the required ones, and the
// platform, that only defaults give.
func (m *Matrix) axisNames() []string {
	var names []string
	for _, a := range m.Axes {
		names = append(names, a.Name.Value)
	}
	for _, name := range required {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if _, ok := m.Defaults[platformAxis]; ok && !slices.Contains(names, platformAxis) {
		names = append(names, platformAxis)
	}
	return names
}
