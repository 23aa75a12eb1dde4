package recipe

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/imgforge/imgforge/internal/diag"
)

// reader walks the YAML nodes of one file and gathers what is wrong with them.
type reader struct {
	file string
	bad  *diag.List
}

func (r *reader) pos(n *yaml.Node) diag.Pos {
	return diag.Pos{File: r.file, Line: n.Line, Col: n.Column}
}

func (r *reader) problem(n *yaml.Node, help, format string, args ...any) {
	r.bad.Add(r.pos(n), help, format, args...)
}

// yamlLine finds the line in an error of the YAML library, which has no column.
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// document parses a file that must hold exactly one YAML document.
func (r *reader) document(data []byte) *yaml.Node {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF):
		r.bad.Add(diag.Pos{File: r.file}, "write at least name and summary", "the file is empty")
		return nil
	case err != nil:
		m := yamlLine.FindStringSubmatch(err.Error())
		if m == nil {
			m = []string{"", ""}
		}
		line, _ := strconv.Atoi(m[1])
		r.bad.Add(diag.Pos{File: r.file, Line: line}, "", "not valid YAML: %s", strings.TrimPrefix(err.Error(), m[0]))
		return nil
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		r.bad.Add(diag.Pos{File: r.file, Line: more.Line}, "keep one recipe a file", "the file holds more than one YAML document")
	}
	return doc.Content[0]
}

// fields returns the values of a mapping by key. Only the allowed keys may occur.
func (r *reader) fields(n *yaml.Node, what string, allowed ...string) map[string]*yaml.Node {
	out := map[string]*yaml.Node{}
	for _, kv := range r.pairs(n, what) {
		key := kv[0].Value
		if !slices.Contains(allowed, key) {
			r.problem(kv[0], nearest(key, allowed), "unknown key %q in %s", key, what)
			continue
		}
		out[key] = kv[1]
	}
	return out
}

// pairs returns the keys and values of a mapping in the file's order, each key once.
func (r *reader) pairs(n *yaml.Node, what string) [][2]*yaml.Node {
	if n.Kind != yaml.MappingNode {
		r.problem(n, "write it as `key: value` lines", "%s must be a mapping, not %s", what, kindOf(n))
		return nil
	}
	var out [][2]*yaml.Node
	first := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			r.problem(key, "", "a key must be a plain word, not %s", kindOf(key))
			continue
		}
		if before := first[key.Value]; before != nil {
			r.problem(key, "keep one", "%q is given twice; first on line %d", key.Value, before.Line)
			continue
		}
		first[key.Value] = key
		out = append(out, [2]*yaml.Node{key, value})
	}
	return out
}

// items returns the elements of a list; an absent list is empty.
func (r *reader) items(n *yaml.Node, what string) []*yaml.Node {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		r.problem(n, "write it as `- item` lines", "%s must be a list, not %s", what, kindOf(n))
		return nil
	}
	return n.Content
}

// str returns a string that is not blank. YAML turns unquoted 0644, yes or 1.10
// into something else, so those must be quoted.
func (r *reader) str(n *yaml.Node, what string) (diag.Str, bool) {
	s, ok := r.text(n, what)
	if ok && strings.TrimSpace(s.Value) == "" {
		r.problem(n, "", "%s is empty", what)
		return s, false
	}
	return s, ok
}

// text is str for what may be blank.
func (r *reader) text(n *yaml.Node, what string) (diag.Str, bool) {
	s := diag.Str{Pos: r.pos(n), Value: n.Value}
	switch {
	case n.Kind != yaml.ScalarNode:
		r.problem(n, "", "%s must be a string, not %s", what, kindOf(n))
	case n.Tag == "!!null":
		r.problem(n, "", "%s has no value", what)
	case n.Tag != "!!str":
		r.problem(n, "put it in quotes", "%s must be a string, and YAML reads %s as something else", what, n.Value)
	case strings.ContainsRune(n.Value, 0):
		r.problem(n, "", "%s holds a NUL byte", what)
	default:
		return s, true
	}
	return s, false
}

// strs returns a list of strings, none blank.
func (r *reader) strs(n *yaml.Node, what string) []diag.Str {
	var out []diag.Str
	for _, item := range r.items(n, what) {
		if s, ok := r.str(item, "an item of "+what); ok {
			out = append(out, s)
		}
	}
	return out
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias (write the value out)"
	}
	if n.Tag == "!!null" {
		return "nothing"
	}
	return "a single value"
}
