package recipe

import (
	"maps"
	"slices"
	"strings"

	"github.com/imgforge/imgforge/internal/diag"
)

// Vars are the values templates may name.
type Vars map[string]string

// Expand replaces each ${name} in s by its value. $$ stands for one $; a $ before
// anything else is itself. A name that vars lacks, or a ${ that nothing closes,
// is a problem at the position of s.
func Expand(s diag.Str, vars Vars) (string, error) {
	var bad diag.List
	var out strings.Builder
	for _, part := range split(s, &bad) {
		value, ok := vars[part.name]
		switch {
		case part.name == "":
			out.WriteString(part.text)
		case ok:
			out.WriteString(value)
		default:
			bad.Add(s.Pos, diag.Allowed(part.name, slices.Sorted(maps.Keys(vars)))+"; write $$ for a $ of its own", "unknown name ${%s} in %q", part.name, s.Value)
		}
	}
	return out.String(), bad.Err()
}

// part is a piece of a template: literal text, or a name when that is not empty.
type part struct{ text, name string }

// split cuts a template into its parts and reports bad syntax.
func split(s diag.Str, bad *diag.List) []part {
	var out []part
	rest := s.Value
	for {
		i := strings.IndexByte(rest, '$')
		if i < 0 || i+1 == len(rest) {
			return append(out, part{text: rest})
		}
		out = append(out, part{text: rest[:i]})
		after := rest[i+1:]
		switch after[0] {
		case '$':
			out = append(out, part{text: "$"})
			rest = after[1:]
		case '{':
			name, tail, closed := strings.Cut(after[1:], "}")
			if !closed {
				bad.Add(s.Pos, "close it with }, or write $$ for a $ of its own", "unclosed ${ in %q", s.Value)
				return out
			}
			if name == "" {
				bad.Add(s.Pos, "name a value between the braces", "empty ${} in %q", s.Value)
			}
			out = append(out, part{name: name})
			rest = tail
		default:
			out = append(out, part{text: "$"})
			rest = after
		}
	}
}

// skeleton is a template with "0" for every name: enough to check the form of
// what surrounds them before any value is known.
func skeleton(s diag.Str, bad *diag.List) string {
	var out strings.Builder
	for _, p := range split(s, bad) {
		out.WriteString(p.text)
		if p.name != "" {
			out.WriteByte('0')
		}
	}
	return out.String()
}

// Names lists what a template names, in its order.
func Names(template string) []string {
	var out []string
	for _, p := range split(diag.Str{Value: template}, &diag.List{}) {
		if p.name != "" {
			out = append(out, p.name)
		}
	}
	return out
}

// Names lists what the templates of the recipe's packages and commands name, in
// no order and with repeats.
func (r *Recipe) Names() []string {
	var out []string
	for _, t := range slices.Concat(r.Debs, r.Wheels, r.Limits) {
		out = append(out, Names(t.Value)...)
	}
	for _, run := range r.Run {
		out = append(out, Names(run.Command)...)
	}
	return out
}
