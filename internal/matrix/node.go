package matrix

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/imgforge/imgforge/internal/diag"
)

// reader walks yaml nodes and notes what is wrong with them.
type reader struct {
	file string
	bad  diag.List
	uses []use
}

// use is a word that must name an axis, and what it stands in.
type use struct {
	word diag.Str
	in   string
}

func (r *reader) pos(n *yaml.Node) diag.Pos {
	return diag.Pos{File: r.file, Line: n.Line, Col: n.Column}
}

func (r *reader) fail(n *yaml.Node, help, format string, args ...any) {
	r.bad.Add(r.pos(n), help, format, args...)
}

var plain = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)

// start is where a problem of the whole file is shown.
func (r *reader) start() diag.Pos { return diag.Pos{File: r.file, Line: 1, Col: 1} }

// document parses YAML into its top node, or notes why there is none.
func (r *reader) document(data []byte) *yaml.Node {
	var doc, second yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	err := dec.Decode(&doc)
	if err == io.EOF || err == nil && len(doc.Content) == 0 {
		r.bad.Add(r.start(), example, "the file is empty")
		return nil
	}
	if err == nil {
		if err = dec.Decode(&second); err == nil {
			r.fail(&second, "one file holds one matrix; move it to a file of its own", "a second YAML document begins here")
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		at, text := r.syntax(err, data)
		r.bad.Add(at, "", "not YAML: %s", text)
		return nil
	}
	if size(doc.Content[0], map[*yaml.Node]int{}) > maxNodes {
		r.bad.Add(r.start(), "write the values out", "its aliases expand to more than %d values", maxNodes)
		return nil
	}
	return doc.Content[0]
}

var (
	errLine   = regexp.MustCompile(`^line (\d+): `)
	errAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
	// parserErr are the errors whose line yaml.v3 counts from 0; others it counts from 1.
	parserErr = regexp.MustCompile(`^(did not find expected (<|node content|'-' indicator|key|',' or)|found (undefined|duplicate|incompatible) )`)
)

// syntax tells where and what an error of the yaml library is about.
func (r *reader) syntax(err error, data []byte) (diag.Pos, string) {
	at, text := diag.Pos{File: r.file, Line: 1}, strings.TrimPrefix(err.Error(), "yaml: ")
	if m := errLine.FindStringSubmatch(text); m != nil {
		at.Line, _ = strconv.Atoi(m[1])
		if text = text[len(m[0]):]; parserErr.MatchString(text) {
			at.Line++
		}
	}
	if m := errAnchor.FindStringSubmatch(text); m != nil {
		if before, _, found := strings.Cut(string(data), "*"+m[1]); found {
			line := before[strings.LastIndexByte(before, '\n')+1:]
			at.Line, at.Col = strings.Count(before, "\n")+1, utf8.RuneCountInString(line)+1
		}
	}
	return at, text
}

// maxNodes bounds what aliases may expand to.
const maxNodes = 1 << 20

// size counts nodes as if every alias were written out, stopping past maxNodes.
// A node that holds itself counts as too many.
func size(n *yaml.Node, done map[*yaml.Node]int) int {
	n = deref(n)
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
	value *yaml.Node
}

// mapping lists a mapping's entries: its own, then those that << merges and it
// does not set itself. Duplicate keys are noted with the first's place.
func (r *reader) mapping(n *yaml.Node, what string) []entry {
	n = deref(n)
	if n.Kind != yaml.MappingNode {
		r.fail(n, "write `key: value` lines", "%s must be a mapping, not %s", what, kindOf(n))
		return nil
	}
	var out, merged []entry
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], deref(n.Content[i+1])
		key := deref(k)
		if key.Kind != yaml.ScalarNode {
			r.fail(k, "", "a key of %s must be a plain word, not %s", what, kindOf(key))
			continue
		}
		if first, dup := seen[key.Value]; dup {
			r.fail(k, "keep one", "duplicate key %q in %s; the first is on line %d", key.Value, what, first)
			continue
		}
		seen[key.Value] = k.Line
		if k.Tag == "!!merge" {
			merged = r.merge(v, what)
			continue
		}
		out = append(out, entry{diag.Str{Pos: r.pos(k), Value: key.Value}, v})
	}
	for _, e := range merged {
		if _, set := seen[e.key.Value]; !set {
			seen[e.key.Value] = e.key.Pos.Line
			out = append(out, e)
		}
	}
	return out
}

// merge reads the value of a << key: a mapping, or a list of them, of which the
// earlier ones win.
func (r *reader) merge(v *yaml.Node, what string) []entry {
	what = "what << adds to " + what
	if v.Kind != yaml.SequenceNode {
		return r.mapping(v, what)
	}
	var out []entry
	for _, item := range v.Content {
		out = append(out, r.mapping(item, what)...)
	}
	return out
}

// fields hands each known key's value to its reader and notes unknown keys. It
// tells which keys there were, counting a misspelt one as what it was meant for.
func (r *reader) fields(n *yaml.Node, what string, known map[string]func(*yaml.Node)) map[string]bool {
	got := map[string]bool{}
	for _, e := range r.mapping(n, what) {
		read, ok := known[e.key.Value]
		if !ok {
			names := keys(known)
			r.bad.Add(e.key.Pos, allowed(e.key.Value, names), "unknown key %q in %s", e.key.Value, what)
			got[diag.Nearest(e.key.Value, names)] = true
			continue
		}
		got[e.key.Value] = true
		read(e.value)
	}
	return got
}

// text reads a scalar as its text: 12.1 and 2.10 stay what was typed.
func (r *reader) text(n *yaml.Node, what string) diag.Str {
	n = deref(n)
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		r.fail(n, "", "%s must be a single value, not %s", what, kindOf(n))
		return diag.Str{Pos: r.pos(n)}
	}
	if strings.TrimSpace(n.Value) == "" {
		r.fail(n, "", "%s is empty", what)
		return diag.Str{Pos: r.pos(n)}
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
