package matrix

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/imgforge/imgforge/internal/compat"
	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/yamlpos"
)

// reader reads one matrix file.
type reader struct {
	yamlpos.Reader
	uses []use
}

// use is a word that must name an axis, and what it stands in.
type use struct {
	word diag.Str
	in   string
}

var plain = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)

// required are the axes every matrix has; others are free.
var required = []string{"base", "cuda", "torch", "python", "driver"}

// platformAxis is neither required nor free: without it every cell has the
// matrix's own platform.
const platformAxis = "platform"

var platforms = []string{compat.AMD64, compat.ARM64}

// reserved names mean something else where a free axis would be named.
var reserved = []string{"arch", "tag", "why"}

const example = "see docs/matrix.md for an example"

// Parse reads a matrix file. The error is a diag.List with every problem of the
// file's form; what its cells make impossible is Expand's to say.
func Parse(file string, data []byte) (*Matrix, error) {
	r := &reader{Reader: yamlpos.Reader{File: file}}
	m := &Matrix{File: file, Bases: map[string]Base{}, Platform: diag.Str{Value: compat.AMD64, Pos: r.Start()}}
	top := r.Document(data, "matrix", example)
	if top != nil && top.Kind != yaml.MappingNode {
		r.Fail(top, example, "a matrix must be a mapping, not %s", yamlpos.KindOf(top))
	}
	if len(r.Bad) > 0 {
		return nil, r.Bad.Err()
	}
	f := r.Fields(top, "the matrix", matrixKeys)
	r.version(f["version"])
	m.Name = r.name(f["name"])
	if n := f["platform"]; n != nil {
		m.Platform = r.platform(n)
	}
	r.bases(f["bases"], m)
	m.Axes = r.axes(f["axes"])
	m.Defaults = r.values(f["defaults"], "defaults")
	m.Include = r.rules(f["include"], "include")
	m.Exclude = r.rules(f["exclude"], "exclude")
	m.Skip = r.holes(f["holes"])
	m.Recipes = r.recipes(f["recipes"])
	m.Tag = r.Scalar(f["tag"], "tag")
	m.Mirrors = r.Scalars(f["mirrors"], "mirrors")
	m.Smoke = r.smoke(f["smoke"])
	r.spread(f["platform"], m)
	r.checkMissing(top, f)
	if _, ok := f["axes"]; ok {
		r.checkAxes(top, m)
	}
	if len(m.Mirrors) == 0 {
		m.Mirrors = []diag.Str{{Value: "host", Pos: r.Start()}}
	}
	return m, r.Bad.Err()
}

func (r *reader) checkMissing(top *yaml.Node, fields map[string]*yaml.Node) {
	var missing []string
	for _, key := range matrixKeys {
		if _, ok := fields[key.Name]; key.Needed && !ok {
			missing = append(missing, key.Name)
		}
	}
	if len(missing) > 0 {
		r.Fail(top, example, "the matrix has no %s", strings.Join(missing, ", no "))
	}
}

func (r *reader) version(n *yaml.Node) {
	if s := r.Scalar(n, "version"); s.Value != "" && s.Value != "1" {
		r.Fail(n, "this imgforge reads version 1", "unknown matrix version %q", s.Value)
	}
}

func (r *reader) name(n *yaml.Node) diag.Str {
	s := r.Scalar(n, "name")
	if s.Value != "" && !plain.MatchString(s.Value) {
		r.Fail(n, "use lower-case letters, digits, - and _, a letter first", "name %q is not usable", s.Value)
	}
	return s
}

// holes reads what becomes of cells that cannot work; true to skip them.
func (r *reader) holes(n *yaml.Node) bool {
	s := r.Scalar(n, "holes")
	if known := []string{"error", "skip"}; s.Value != "" && !slices.Contains(known, s.Value) {
		r.Bad.Add(s.Pos, diag.Allowed(s.Value, known), "holes %q is not known", s.Value)
	}
	return s.Value == "skip"
}

func (r *reader) platform(n *yaml.Node) diag.Str {
	s := r.Scalar(n, "platform")
	r.checkPlatform(s)
	return s
}

func (r *reader) checkPlatform(s diag.Str) {
	if s.Value != "" && !slices.Contains(platforms, s.Value) {
		r.Bad.Add(s.Pos, diag.Allowed(s.Value, platforms), "unknown platform %q", s.Value)
	}
}

// spread makes the matrix's platform the default of the platform axis, where
// anything names that; a matrix that gives both is refused.
func (r *reader) spread(whole *yaml.Node, m *Matrix) {
	i := slices.IndexFunc(m.Axes, func(a Axis) bool { return a.Name.Value == platformAxis })
	own, byDefault := m.Defaults[platformAxis]
	if whole != nil && (i >= 0 || byDefault) {
		also, at := "under defaults", own.Pos
		if i >= 0 {
			also, at = "an axis", m.Axes[i].Name.Pos
		}
		r.Fail(whole, fmt.Sprintf("keep one; the other is on line %d", at.Line), "platform is given for the whole matrix, and is %s too", also)
	}
	named := slices.ContainsFunc(r.uses, func(u use) bool { return u.word.Value == platformAxis })
	if named && i < 0 && !byDefault {
		m.Defaults[platformAxis] = m.Platform
	}
}

// axes reads the axes in the file's order.
func (r *reader) axes(n *yaml.Node) []Axis {
	var out []Axis
	for _, e := range r.Mapping(n, "axes") {
		switch name := e.Key.Value; {
		case slices.Contains(reserved, name):
			r.Bad.Add(e.Key.Pos, "choose another", "the axis name %q has a meaning of its own", name)
		case !plain.MatchString(name):
			r.Bad.Add(e.Key.Pos, "use lower-case letters, digits, - and _, a letter first", "axis name %q is not usable", name)
		}
		before := len(r.Bad)
		axis := Axis{Name: e.Key, Groups: r.groups(e)}
		if len(axis.all()) == 0 && len(r.Bad) == before {
			r.Fail(e.Value, "list at least one value", "axis %s is empty", e.Key)
		}
		out = append(out, axis)
	}
	return out
}

// groups reads an axis: a list, or a mapping from "other value" to the list that
// holds where that other axis has that value.
func (r *reader) groups(axis yamlpos.Entry) []Group {
	what := "axis " + axis.Key.Value
	if axis.Value.Kind != yaml.MappingNode {
		return []Group{{Pos: r.Pos(axis.Value), Values: r.Scalars(axis.Value, what)}}
	}
	var out []Group
	for _, g := range r.Mapping(axis.Value, what) {
		on, value, _ := strings.Cut(g.Key.Value, " ")
		if value = strings.TrimSpace(value); value == "" || on == axis.Key.Value {
			r.Bad.Add(g.Key.Pos, "write the other axis and its value, such as `cuda 12.1`", "%q is no condition for %s", g.Key.Value, what)
			continue
		}
		before := len(r.Bad)
		group := Group{WhenAxis: on, WhenValue: value, Pos: g.Key.Pos, Values: r.Scalars(g.Value, what)}
		if len(group.Values) == 0 && len(r.Bad) == before {
			r.Bad.Add(g.Key.Pos, "list at least one value", "%s is empty where %s is %s", what, on, value)
		}
		out = append(out, group)
	}
	return out
}

// values reads a mapping from axes to values.
func (r *reader) values(n *yaml.Node, what string) map[string]diag.Str {
	out := map[string]diag.Str{}
	for _, e := range r.Mapping(n, what) {
		out[e.Key.Value] = r.Scalar(e.Value, e.Key.Value+" of "+what)
		r.uses = append(r.uses, use{e.Key, what})
	}
	return out
}

// rules reads include or exclude entries.
func (r *reader) rules(n *yaml.Node, what string) []Rule {
	var out []Rule
	for _, item := range r.Items(n, what, "write entries that begin with -") {
		rule := Rule{Pos: r.Pos(item), Values: map[string]diag.Str{}}
		before := len(r.Bad)
		for _, e := range r.Mapping(item, "this "+what+" entry") {
			if e.Key.Value == "why" {
				rule.Why = r.Scalar(e.Value, "why")
				continue
			}
			rule.Values[e.Key.Value] = r.Scalar(e.Value, e.Key.Value+" of "+what)
			r.uses = append(r.uses, use{e.Key, what})
		}
		if len(r.Bad) == before && len(rule.Values) == 0 {
			r.Fail(item, "name at least one", "this %s entry names no axis", what)
		}
		if len(r.Bad) == before && what == "exclude" && rule.Why.Value == "" {
			r.Fail(item, "add why: \"...\", so that the next reader knows", "this exclude entry has no why")
		}
		out = append(out, rule)
	}
	return out
}

// recipes reads the recipe list: names, or mappings with a name and a condition.
func (r *reader) recipes(n *yaml.Node) []RecipeUse {
	const help = "such as recipes: [torch, zsh]"
	before := len(r.Bad)
	items := r.Items(n, "recipes", help)
	if n != nil && len(items) == 0 && len(r.Bad) == before {
		r.Fail(n, help, "recipes is empty")
	}
	var out []RecipeUse
	always := map[string]int{} // the line that lists a recipe for every cell
	for _, item := range items {
		for _, use := range r.recipe(yamlpos.Deref(item)) {
			if use.Name.Value == "" {
				continue
			}
			if line, dup := always[use.Name.Value]; dup {
				r.Bad.Add(use.Name.Pos, "keep one", "recipe %q is listed twice; the first is on line %d", use.Name.Value, line)
				continue
			}
			if len(use.When) == 0 {
				always[use.Name.Value] = use.Name.Pos.Line
			}
			out = append(out, use)
		}
	}
	return out
}

// recipe reads one entry: a name, or one name or several under a condition.
func (r *reader) recipe(n *yaml.Node) []RecipeUse {
	if n.Kind != yaml.MappingNode {
		return []RecipeUse{{Name: r.Scalar(n, "a recipe")}}
	}
	before := len(r.Bad)
	f := r.Fields(n, "this recipe entry", recipeKeys)
	names := r.Scalars(f["recipes"], "recipes")
	if f["name"] != nil {
		names = append(names, r.Scalar(f["name"], "name"))
	}
	_, one := f["name"]
	_, many := f["recipes"]
	switch {
	case one && many:
		r.Fail(n, "keep one", "this recipe entry has both name and recipes")
	case len(names) == 0 && len(r.Bad) == before:
		r.Fail(n, "such as {name: devel, when: {cuda: \"12.1\"}} or {recipes: [devel, nvml], when: {flavor: dev}}", "this recipe entry has no name")
	}
	var when map[string]diag.Str
	if n := f["when"]; n != nil {
		when = r.values(n, "when")
	}
	var out []RecipeUse
	for _, name := range names {
		out = append(out, RecipeUse{Name: name, When: when})
	}
	return out
}
