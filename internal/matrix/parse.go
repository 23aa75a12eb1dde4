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

// platforms that can be built for now.
var platforms = []string{"linux/amd64"}

// Parse reads a matrix file. The error is a diag.List with every problem of the
// file's form; what its cells make impossible is Expand's to say.
func Parse(file string, data []byte) (*Matrix, error) {
	r := &reader{file: file, names: map[diag.Str]string{}}
	m := &Matrix{File: file, Bases: map[string]Base{}, Platform: diag.Str{Value: platforms[0], Pos: diag.Pos{File: file, Line: 1}}}
	top := r.document(data)
	if top != nil && top.Kind != yaml.MappingNode {
		r.fail(top, "see docs/matrix.md for an example", "a matrix must be a mapping, not %s", kindOf(top))
	}
	if len(r.bad) > 0 {
		return nil, r.bad.Err()
	}
	got := r.fields(top, "the matrix", map[string]func(*yaml.Node){
		"version":  r.version,
		"name":     func(n *yaml.Node) { m.Name = r.text(n, "name") },
		"platform": func(n *yaml.Node) { m.Platform = r.oneOf(n, "platform", platforms) },
		"bases":    func(n *yaml.Node) { r.bases(n, m) },
		"axes":     func(n *yaml.Node) { m.Axes = r.axes(n) },
		"defaults": func(n *yaml.Node) { m.Defaults = r.values(n, "defaults") },
		"include":  func(n *yaml.Node) { m.Include = r.rules(n, "include") },
		"exclude":  func(n *yaml.Node) { m.Exclude = r.rules(n, "exclude") },
		"recipes":  func(n *yaml.Node) { m.Recipes = r.recipes(n) },
		"tag":      func(n *yaml.Node) { m.Tag = r.text(n, "tag") },
		"mirrors":  func(n *yaml.Node) { m.Mirrors = r.list(n, "mirrors") },
	})
	for _, key := range []string{"version", "name", "bases", "axes", "recipes", "tag"} {
		if !got[key] {
			r.fail(top, "see docs/matrix.md for an example", "the matrix has no %q", key)
		}
	}
	if got["axes"] {
		r.checkAxes(top, m)
	}
	if len(m.Mirrors) == 0 {
		m.Mirrors = []diag.Str{{Value: "host", Pos: diag.Pos{File: file, Line: 1}}}
	}
	return m, r.bad.Err()
}

func (r *reader) version(n *yaml.Node) {
	if s := r.text(n, "version"); s.Value != "" && s.Value != "1" {
		r.fail(n, "this imgforge reads version 1", "unknown matrix version %q", s.Value)
	}
}

func (r *reader) oneOf(n *yaml.Node, what string, names []string) diag.Str {
	s := r.text(n, what)
	if s.Value != "" && !slices.Contains(names, s.Value) {
		r.fail(n, allowed(s.Value, names), "unknown %s %q", what, s.Value)
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
		r.bad.Add(d.Suite.Pos, "known suites: "+strings.Join(compat.Suites(), ", "), "unknown Debian suite %q", d.Suite.Value)
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

// axes reads the axes in the file's order. An axis is a list, or a mapping from
// "other value" to the list that holds where that axis has that value.
func (r *reader) axes(n *yaml.Node) []Axis {
	var out []Axis
	for _, e := range r.mapping(n, "axes") {
		axis := Axis{Name: e.key}
		if !plain.MatchString(e.key.Value) {
			r.bad.Add(e.key.Pos, "use lower-case letters, digits, - and _", "axis name %q is not usable", e.key.Value)
		}
		what := "axis " + e.key.Value
		before := len(r.bad)
		if e.value.Kind != yaml.MappingNode {
			axis.Groups = []Group{{Pos: r.pos(e.value), Values: r.list(e.value, what)}}
		} else {
			for _, g := range r.mapping(e.value, what) {
				on, value, ok := strings.Cut(g.key.Value, " ")
				if !ok || on == e.key.Value {
					r.bad.Add(g.key.Pos, "write the other axis and its value, such as `cuda 12.1`", "%q is no condition for %s", g.key.Value, what)
					continue
				}
				axis.Groups = append(axis.Groups, Group{WhenAxis: on, WhenValue: strings.TrimSpace(value), Pos: g.key.Pos, Values: r.list(g.value, what)})
			}
		}
		if len(axis.Groups) == 0 && len(r.bad) == before {
			r.fail(e.value, "list at least one value", "%s is empty", what)
		}
		for _, g := range axis.Groups {
			if len(g.Values) == 0 && len(r.bad) == before {
				r.bad.Add(g.Pos, "list at least one value", "%s is empty", what)
			}
		}
		out = append(out, axis)
	}
	return out
}

// values reads a mapping from axes to values.
func (r *reader) values(n *yaml.Node, what string) map[string]diag.Str {
	out := map[string]diag.Str{}
	for _, e := range r.mapping(n, what) {
		out[e.key.Value] = r.text(e.value, e.key.Value+" of "+what)
		r.names[e.key] = what
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
		rule := Rule{Pos: r.pos(item), Values: r.values(item, what)}
		if why, ok := rule.Values["why"]; ok {
			rule.Why = why
			delete(rule.Values, "why")
		} else if what == "exclude" {
			r.fail(item, "add why: \"...\", so that the next reader knows", "an exclude entry has no why")
		}
		if len(rule.Values) == 0 {
			r.fail(item, "name at least one axis", "%s entry is empty", article(what))
			continue
		}
		out = append(out, rule)
	}
	return out
}

func article(what string) string {
	if strings.IndexByte("aeiou", what[0]) >= 0 {
		return "an " + what
	}
	return "a " + what
}

// recipes reads the recipe list: names, or mappings with a name and a condition.
func (r *reader) recipes(n *yaml.Node) []RecipeUse {
	n = deref(n)
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		r.fail(n, "such as recipes: [torch, zsh]", "recipes must be a list with at least one name, not %s", kindOf(n))
		return nil
	}
	var out []RecipeUse
	seen := map[string]int{}
	for _, item := range n.Content {
		item = deref(item)
		use := RecipeUse{}
		if item.Kind == yaml.MappingNode {
			r.fields(item, "a recipe entry", map[string]func(*yaml.Node){
				"name": func(n *yaml.Node) { use.Name = r.text(n, "name") },
				"when": func(n *yaml.Node) { use.When = r.values(n, "when") },
			})
		} else {
			use.Name = r.text(item, "a recipe")
		}
		if use.Name.Value == "" {
			continue
		}
		if line, dup := seen[use.Name.Value]; dup && use.When == nil {
			r.fail(item, "keep one", "recipe %q is listed twice; the first is on line %d", use.Name.Value, line)
			continue
		}
		seen[use.Name.Value] = item.Line
		out = append(out, use)
	}
	return out
}
