// Package yamlpos reads YAML by hand, node by node, so that every value keeps its
// position and every mistake is noted in one run. Anchors, aliases and merge keys
// (<<) are followed; aliases that would expand without end are refused.
package yamlpos

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/imgforge/imgforge/internal/diag"
)

// Reader walks the nodes of one file and notes what is wrong with them. Its
// methods take a nil node for a key that was not given, and read nothing from it.
type Reader struct {
	File string
	Bad  diag.List
}

// Pos is where a node stands.
func (r *Reader) Pos(n *yaml.Node) diag.Pos {
	return diag.Pos{File: r.File, Line: n.Line, Col: n.Column}
}

// Start is where a problem of the whole file is shown.
func (r *Reader) Start() diag.Pos { return diag.Pos{File: r.File, Line: 1, Col: 1} }

// Fail notes a problem of a node. Help may be empty.
func (r *Reader) Fail(n *yaml.Node, help, format string, args ...any) {
	r.Bad.Add(r.Pos(n), help, format, args...)
}

// Entry is one key of a mapping with its value.
type Entry struct {
	Key   diag.Str
	Value *yaml.Node // never an alias
}

// Mapping lists a mapping's entries: its own, then those that << merges and it
// does not set itself. Duplicate keys are noted with the first's place.
func (r *Reader) Mapping(n *yaml.Node, what string) []Entry {
	if n = Deref(n); n == nil {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		r.Fail(n, "write `key: value` lines", "%s must be a mapping, not %s", what, KindOf(n))
		return nil
	}
	var out, merged []Entry
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], Deref(n.Content[i+1])
		key := Deref(k)
		if key.Kind != yaml.ScalarNode {
			r.Fail(k, "", "a key of %s must be a plain word, not %s", what, KindOf(key))
			continue
		}
		if first, dup := seen[key.Value]; dup {
			r.Fail(k, "keep one", "duplicate key %q in %s; the first is on line %d", key.Value, what, first)
			continue
		}
		seen[key.Value] = k.Line
		if k.Tag == "!!merge" {
			merged = r.merge(v, what)
			continue
		}
		out = append(out, Entry{diag.Str{Pos: r.Pos(k), Value: key.Value}, v})
	}
	for _, e := range merged {
		if _, set := seen[e.Key.Value]; !set {
			seen[e.Key.Value] = e.Key.Pos.Line
			out = append(out, e)
		}
	}
	return out
}

// merge reads the value of a << key: a mapping, or a list of them, of which the
// earlier ones win.
func (r *Reader) merge(v *yaml.Node, what string) []Entry {
	what = "what << adds to " + what
	if v.Kind != yaml.SequenceNode {
		return r.Mapping(v, what)
	}
	var out []Entry
	for _, item := range v.Content {
		out = append(out, r.Mapping(item, what)...)
	}
	return out
}

// Fields is the values of a mapping whose keys are known, by key. Unknown keys
// are noted; a misspelt one stands, without a value, for what it was meant for.
func (r *Reader) Fields(n *yaml.Node, what string, keys Keys) map[string]*yaml.Node {
	known := keys.names()
	out := map[string]*yaml.Node{}
	for _, e := range r.Mapping(n, what) {
		if slices.Contains(known, e.Key.Value) {
			out[e.Key.Value] = e.Value
			continue
		}
		r.Bad.Add(e.Key.Pos, diag.Allowed(e.Key.Value, known), "unknown key %q in %s", e.Key.Value, what)
		if near := diag.Nearest(e.Key.Value, known); near != "" && out[near] == nil {
			out[near] = nil
		}
	}
	return out
}

// Items is the elements of a list, aliases as they stand. help says how to write
// one.
func (r *Reader) Items(n *yaml.Node, what, help string) []*yaml.Node {
	if n = Deref(n); n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		r.Fail(n, help, "%s must be a list, not %s", what, KindOf(n))
		return nil
	}
	return n.Content
}

// listHelp is how a list of values is written.
const listHelp = "write it as [a, b] or as lines that begin with -"

// Scalars reads a list of scalars without repeats.
func (r *Reader) Scalars(n *yaml.Node, what string) []diag.Str {
	var out []diag.Str
	seen := map[string]int{}
	for _, item := range r.Items(n, what, listHelp) {
		s := r.Scalar(item, "a value of "+what)
		if line, dup := seen[s.Value]; dup && s.Value != "" {
			r.Fail(item, "keep one", "%q stands twice in %s; the first is on line %d", s.Value, what, line)
			continue
		}
		seen[s.Value] = s.Pos.Line
		if s.Value != "" {
			out = append(out, s)
		}
	}
	return out
}

// Strings reads a list of strings, none blank.
func (r *Reader) Strings(n *yaml.Node, what string) []diag.Str {
	var out []diag.Str
	for _, item := range r.Items(n, what, listHelp) {
		if s, ok := r.Filled(item, "an item of "+what); ok {
			out = append(out, s)
		}
	}
	return out
}

// Scalar reads a single value, not blank, as its text: 12.1 and 2.10 stay what
// was typed.
func (r *Reader) Scalar(n *yaml.Node, what string) diag.Str {
	if n = Deref(n); n == nil {
		return diag.Str{}
	}
	switch {
	case n.Kind != yaml.ScalarNode || n.Tag == "!!null":
		r.Fail(n, "", "%s must be a single value, not %s", what, KindOf(n))
	case strings.TrimSpace(n.Value) == "":
		r.Fail(n, "", "%s is empty", what)
	default:
		return diag.Str{Pos: r.Pos(n), Value: n.Value}
	}
	return diag.Str{Pos: r.Pos(n)}
}

// String reads a string, which may be blank; false when there is none. YAML turns
// unquoted 0644, yes or 1.10 into something else, so those must be quoted.
func (r *Reader) String(n *yaml.Node, what string) (diag.Str, bool) {
	if n = Deref(n); n == nil {
		return diag.Str{}, false
	}
	switch {
	case n.Kind != yaml.ScalarNode:
		r.Fail(n, "", "%s must be a string, not %s", what, KindOf(n))
	case n.Tag == "!!null":
		r.Fail(n, "", "%s has no value", what)
	case n.Tag != "!!str":
		r.Fail(n, "put it in quotes", "%s must be a string, and YAML reads %s as something else", what, n.Value)
	case strings.ContainsRune(n.Value, 0):
		r.Fail(n, "", "%s holds a NUL byte", what)
	default:
		return diag.Str{Pos: r.Pos(n), Value: n.Value}, true
	}
	return diag.Str{Pos: r.Pos(n), Value: n.Value}, false
}

// Filled is String for what may not be blank.
func (r *Reader) Filled(n *yaml.Node, what string) (diag.Str, bool) {
	s, ok := r.String(n, what)
	if ok && strings.TrimSpace(s.Value) == "" {
		r.Fail(Deref(n), "", "%s is empty", what)
		return s, false
	}
	return s, ok
}

// KindOf names what a node is, for messages.
func KindOf(n *yaml.Node) string {
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
