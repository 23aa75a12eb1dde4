package matrix

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/imgforge/imgforge/internal/compat"
	"github.com/imgforge/imgforge/internal/diag"
)

// required are the axes every matrix has; others are free.
var required = []string{"base", "cuda", "torch", "python", "driver"}

// reserved names mean something else where a free axis would be named.
var reserved = []string{"platform", "tag", "why"}

// amd64 is the one platform there is.
const amd64 = "linux/amd64"

const example = "see docs/matrix.md for an example"

// Parse reads a matrix file. The error is a diag.List with every problem of the
// file's form; what its cells make impossible is Expand's to say.
func Parse(file string, data []byte) (*Matrix, error) {
	r := &reader{file: file}
	m := &Matrix{File: file, Bases: map[string]Base{}, Platform: diag.Str{Value: amd64, Pos: r.start()}}
	top := r.document(data)
	if top != nil && top.Kind != yaml.MappingNode {
		r.fail(top, example, "a matrix must be a mapping, not %s", kindOf(top))
	}
	if len(r.bad) > 0 {
		return nil, r.bad.Err()
	}
	got := r.fields(top, "the matrix", map[string]func(*yaml.Node){
		"version":  r.version,
		"name":     func(n *yaml.Node) { m.Name = r.name(n) },
		"platform": func(n *yaml.Node) { m.Platform = r.platform(n) },
		"bases":    func(n *yaml.Node) { r.bases(n, m) },
		"axes":     func(n *yaml.Node) { m.Axes = r.axes(n) },
		"defaults": func(n *yaml.Node) { m.Defaults = r.values(n, "defaults") },
		"include":  func(n *yaml.Node) { m.Include = r.rules(n, "include") },
		"exclude":  func(n *yaml.Node) { m.Exclude = r.rules(n, "exclude") },
		"recipes":  func(n *yaml.Node) { m.Recipes = r.recipes(n) },
		"tag":      func(n *yaml.Node) { m.Tag = r.text(n, "tag") },
		"mirrors":  func(n *yaml.Node) { m.Mirrors = r.list(n, "mirrors") },
	})
	var missing []string
	for _, key := range []string{"version", "name", "bases", "axes", "recipes", "tag"} {
		if !got[key] {
			missing = append(missing, key)
		}
	}
	if len(missing) > 0 {
		r.fail(top, example, "the matrix has no %s", strings.Join(missing, ", no "))
	}
	if got["axes"] {
		r.checkAxes(top, m)
	}
	if len(m.Mirrors) == 0 {
		m.Mirrors = []diag.Str{{Value: "host", Pos: r.start()}}
	}
	return m, r.bad.Err()
}

func (r *reader) version(n *yaml.Node) {
	if s := r.text(n, "version"); s.Value != "" && s.Value != "1" {
		r.fail(n, "this imgforge reads version 1", "unknown matrix version %q", s.Value)
	}
}

func (r *reader) name(n *yaml.Node) diag.Str {
	s := r.text(n, "name")
	if s.Value != "" && !plain.MatchString(s.Value) {
		r.fail(n, "use lower-case letters, digits, - and _, a letter first", "name %q is not usable", s.Value)
	}
	return s
}

func (r *reader) platform(n *yaml.Node) diag.Str {
	s := r.text(n, "platform")
	if s.Value != "" && s.Value != amd64 {
		r.fail(n, "only "+amd64+" for now: the tables know no torch wheels for another", "platform %q cannot be built", s.Value)
	}
	return s
}

func (r *reader) bases(n *yaml.Node, m *Matrix) {
	for _, e := range r.mapping(n, "bases") {
		base := Base{Pos: e.key.Pos}
		before := len(r.bad)
		later := func(kind string) func(*yaml.Node) {
			return func(n *yaml.Node) {
				r.fail(n, "use debian: {suite: bookworm, components: [main]}", "base %s: %s is not supported yet", e.key, kind)
			}
		}
		kinds := r.fields(e.value, "base "+e.key.Value, map[string]func(*yaml.Node){
			"debian": func(n *yaml.Node) { base.Debian = r.debian(n) },
			"rootfs": later("rootfs"),
			"image":  later("image"),
		})
		if len(kinds) > 1 || len(kinds) == 0 && len(r.bad) == before {
			r.bad.Add(e.key.Pos, "allowed: debian, rootfs, image", "base %s must have exactly one kind, not %d", e.key, len(kinds))
		}
		m.Bases[e.key.Value] = base
	}
}

func (r *reader) debian(n *yaml.Node) *Debian {
	d := &Debian{}
	r.fields(n, "debian", map[string]func(*yaml.Node){
		"suite":      func(n *yaml.Node) { d.Suite = r.text(n, "suite") },
		"components": func(n *yaml.Node) { d.Components = r.list(n, "components") },
	})
	if d.Suite.Value == "" {
		r.fail(n, "such as suite: bookworm", "debian has no suite")
	} else if _, ok := compat.DistributionOf(d.Suite.Value); !ok {
		r.bad.Add(d.Suite.Pos, allowed(d.Suite.Value, compat.Suites()), "unknown Debian suite %q", d.Suite.Value)
	}
	for _, c := range d.Components {
		if known := []string{"contrib", "main", "non-free", "non-free-firmware"}; !slices.Contains(known, c.Value) {
			r.bad.Add(c.Pos, allowed(c.Value, known), "unknown component %q", c.Value)
		}
	}
	if len(d.Components) == 0 {
		d.Components = []diag.Str{{Value: "main", Pos: r.pos(n)}}
	}
	return d
}

// axes reads the axes in the file's order.
func (r *reader) axes(n *yaml.Node) []Axis {
	var out []Axis
	for _, e := range r.mapping(n, "axes") {
		switch name := e.key.Value; {
		case slices.Contains(reserved, name):
			r.bad.Add(e.key.Pos, "choose another", "the axis name %q has a meaning of its own", name)
		case !plain.MatchString(name):
			r.bad.Add(e.key.Pos, "use lower-case letters, digits, - and _, a letter first", "axis name %q is not usable", name)
		}
		before := len(r.bad)
		axis := Axis{Name: e.key, Groups: r.groups(e)}
		if len(axis.all()) == 0 && len(r.bad) == before {
			r.fail(e.value, "list at least one value", "axis %s is empty", e.key)
		}
		out = append(out, axis)
	}
	return out
}

// groups reads an axis: a list, or a mapping from "other value" to the list that
// holds where that other axis has that value.
func (r *reader) groups(axis entry) []Group {
	what := "axis " + axis.key.Value
	if axis.value.Kind != yaml.MappingNode {
		return []Group{{Pos: r.pos(axis.value), Values: r.list(axis.value, what)}}
	}
	var out []Group
	for _, g := range r.mapping(axis.value, what) {
		on, value, _ := strings.Cut(g.key.Value, " ")
		if value = strings.TrimSpace(value); value == "" || on == axis.key.Value {
			r.bad.Add(g.key.Pos, "write the other axis and its value, such as `cuda 12.1`", "%q is no condition for %s", g.key.Value, what)
			continue
		}
		before := len(r.bad)
		group := Group{WhenAxis: on, WhenValue: value, Pos: g.key.Pos, Values: r.list(g.value, what)}
		if len(group.Values) == 0 && len(r.bad) == before {
			r.bad.Add(g.key.Pos, "list at least one value", "%s is empty where %s is %s", what, on, value)
		}
		out = append(out, group)
	}
	return out
}

// values reads a mapping from axes to values.
func (r *reader) values(n *yaml.Node, what string) map[string]diag.Str {
	out := map[string]diag.Str{}
	for _, e := range r.mapping(n, what) {
		out[e.key.Value] = r.text(e.value, e.key.Value+" of "+what)
		r.uses = append(r.uses, use{e.key, what})
	}
	return out
}

// rules reads include or exclude entries.
func (r *reader) rules(n *yaml.Node, what string) []Rule {
	n = deref(n)
	if n.Kind != yaml.SequenceNode {
		r.fail(n, "write entries that begin with -", "%s must be a list, not %s", what, kindOf(n))
		return nil
	}
	var out []Rule
	for _, item := range n.Content {
		rule := Rule{Pos: r.pos(item), Values: map[string]diag.Str{}}
		before := len(r.bad)
		for _, e := range r.mapping(item, "this "+what+" entry") {
			if e.key.Value == "why" {
				rule.Why = r.text(e.value, "why")
				continue
			}
			rule.Values[e.key.Value] = r.text(e.value, e.key.Value+" of "+what)
			r.uses = append(r.uses, use{e.key, what})
		}
		if len(r.bad) == before && len(rule.Values) == 0 {
			r.fail(item, "name at least one", "this %s entry names no axis", what)
		}
		if len(r.bad) == before && what == "exclude" && rule.Why.Value == "" {
			r.fail(item, "add why: \"...\", so that the next reader knows", "this exclude entry has no why")
		}
		out = append(out, rule)
	}
	return out
}

// recipes reads the recipe list: names, or mappings with a name and a condition.
func (r *reader) recipes(n *yaml.Node) []RecipeUse {
	n = deref(n)
	if n.Kind != yaml.SequenceNode {
		r.fail(n, "such as recipes: [torch, zsh]", "recipes must be a list, not %s", kindOf(n))
		return nil
	}
	if len(n.Content) == 0 {
		r.fail(n, "such as recipes: [torch, zsh]", "recipes is empty")
	}
	var out []RecipeUse
	always := map[string]int{} // the line that lists a recipe for every cell
	for _, item := range n.Content {
		use := r.recipe(deref(item))
		if use.Name.Value == "" {
			continue
		}
		if line, dup := always[use.Name.Value]; dup {
			r.bad.Add(use.Name.Pos, "keep one", "recipe %q is listed twice; the first is on line %d", use.Name.Value, line)
			continue
		}
		if len(use.When) == 0 {
			always[use.Name.Value] = use.Name.Pos.Line
		}
		out = append(out, use)
	}
	return out
}

func (r *reader) recipe(n *yaml.Node) (out RecipeUse) {
	if n.Kind != yaml.MappingNode {
		out.Name = r.text(n, "a recipe")
		return out
	}
	before := len(r.bad)
	got := r.fields(n, "this recipe entry", map[string]func(*yaml.Node){
		"name": func(n *yaml.Node) { out.Name = r.text(n, "name") },
		"when": func(n *yaml.Node) { out.When = r.values(n, "when") },
	})
	if !got["name"] && len(r.bad) == before {
		r.fail(n, "such as {name: devel, when: {cuda: \"12.1\"}}", "this recipe entry has no name")
	}
	return out
}
