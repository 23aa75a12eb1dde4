package matrix

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/imgforge/imgforge/internal/diag"
)

// reader walks yaml nodes and notes what is wrong with them.
type reader struct {
	file  string
	bad   diag.List
	names map[diag.Str]string // words used as axis names outside axes, and where
}

func (r *reader) pos(n *yaml.Node) diag.Pos {
	return diag.Pos{File: r.file, Line: n.Line, Col: n.Column}
}

func (r *reader) fail(n *yaml.Node, help, format string, args ...any) {
	r.bad.Add(r.pos(n), help, format, args...)
}

var (
	errLine = regexp.MustCompile(`line (\d+): `)
	plain   = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)
)

// document parses YAML into its top mapping, or notes why there is none.
func (r *reader) document(data []byte) *yaml.Node {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		text := strings.TrimPrefix(err.Error(), "yaml: ")
		at := diag.Pos{File: r.file, Line: 1}
		if m := errLine.FindStringSubmatch(text); m != nil {
			at.Line, _ = strconv.Atoi(m[1])
			text = strings.Replace(text, m[0], "", 1)
		}
		r.bad.Add(at, "", "not YAML: %s", text)
		return nil
	}
	if len(doc.Content) == 0 {
		r.bad.Add(diag.Pos{File: r.file, Line: 1, Col: 1}, "see docs/matrix.md for an example", "the file is empty")
		return nil
	}
	if n := size(doc.Content[0], map[*yaml.Node]int{}); n > maxNodes {
		r.bad.Add(diag.Pos{File: r.file, Line: 1, Col: 1}, "", "its aliases expand to more than %d values", maxNodes)
		return nil
	}
	return doc.Content[0]
}

// maxNodes bounds what aliases may expand to.
const maxNodes = 1 << 20

// size counts nodes as if every alias were written out, stopping past maxNodes.
// A node that holds itself counts as too many.
func size(n *yaml.Node, done map[*yaml.Node]int) int {
	if n.Kind == yaml.AliasNode {
		return size(n.Alias, done)
	}
	if got, ok := done[n]; ok {
		return got
	}
	done[n] = maxNodes + 1 // while inside: a cycle
	total := 1
	for _, c := range n.Content {
		if total += size(c, done); total > maxNodes {
			total = maxNodes + 1
			break
		}
	}
	done[n] = total
	return total
}

// deref follows an alias.
func deref(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// entry is one key of a mapping with its value.
type entry struct {
	key   diag.Str
	node  *yaml.Node // of the key
	value *yaml.Node
}

// mapping lists a mapping's entries, merge keys resolved, explicit keys first in
// precedence. Duplicate keys are noted with the first's place.
func (r *reader) mapping(n *yaml.Node, what string) []entry {
	n = deref(n)
	if n.Kind != yaml.MappingNode {
		r.fail(n, "write `key: value` lines", "%s must be a mapping, not %s", what, kindOf(n))
		return nil
	}
	var out, merged []entry
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], deref(n.Content[i+1])
		if k.Tag == "!!merge" {
			merged = append(merged, r.merge(v, what)...)
			continue
		}
		key := deref(k)
		if key.Kind != yaml.ScalarNode {
			r.fail(k, "", "a key of %s must be a plain word, not %s", what, kindOf(key))
			continue
		}
		if first := seen[key.Value]; first != nil {
			r.fail(k, "keep one", "duplicate key %q in %s; the first is on line %d", key.Value, what, first.Line)
			continue
		}
		seen[key.Value] = k
		out = append(out, entry{diag.Str{Pos: r.pos(k), Value: key.Value}, k, v})
	}
	for _, e := range merged {
		if seen[e.key.Value] == nil {
			seen[e.key.Value] = e.node
			out = append(out, e)
		}
	}
	return out
}

// merge reads the value of a << key: a mapping, or a list of them.
func (r *reader) merge(v *yaml.Node, what string) []entry {
	if v.Kind != yaml.SequenceNode {
		return r.mapping(v, what)
	}
	var out []entry
	for _, item := range v.Content {
		out = append(out, r.mapping(item, what)...)
	}
	return out
}

// fields hands each known key's value to its reader and notes unknown keys.
func (r *reader) fields(n *yaml.Node, what string, known map[string]func(*yaml.Node)) map[string]bool {
	got := map[string]bool{}
	for _, e := range r.mapping(n, what) {
		read, ok := known[e.key.Value]
		if !ok {
			r.bad.Add(e.key.Pos, allowed(e.key.Value, keys(known)), "unknown key %q in %s", e.key.Value, what)
			continue
		}
		got[e.key.Value] = true
		read(e.value)
	}
	return got
}

// text reads a scalar as its text.
func (r *reader) text(n *yaml.Node, what string) diag.Str {
	n = deref(n)
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		r.fail(n, "", "%s must be a single value, not %s", what, kindOf(n))
		return diag.Str{Pos: r.pos(n)}
	}
	if strings.TrimSpace(n.Value) == "" {
		r.fail(n, "", "%s is empty", what)
	}
	return diag.Str{Pos: r.pos(n), Value: n.Value}
}

// list reads a sequence of scalars without repeats.
func (r *reader) list(n *yaml.Node, what string) []diag.Str {
	n = deref(n)
	if n.Kind != yaml.SequenceNode {
		r.fail(n, "write it as [a, b] or as lines that begin with -", "%s must be a list, not %s", what, kindOf(n))
		return nil
	}
	var out []diag.Str
	seen := map[string]int{}
	for _, item := range n.Content {
		s := r.text(item, "a value of "+what)
		if line, dup := seen[s.Value]; dup && s.Value != "" {
			r.fail(item, "keep one", "%q stands twice in %s; the first is on line %d", s.Value, what, line)
			continue
		}
		seen[s.Value] = s.Pos.Line
		if s.Value != "" {
			out = append(out, s)
		}
	}
	return out
}

func kindOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "nothing"
	}
	return fmt.Sprintf("the value %q", n.Value)
}

// allowed is the help for an unknown word.
func allowed(got string, names []string) string {
	help := "allowed: " + strings.Join(names, ", ")
	if near := diag.Nearest(got, names); near != "" {
		return fmt.Sprintf("did you mean %q? %s", near, help)
	}
	return help
}

func keys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
