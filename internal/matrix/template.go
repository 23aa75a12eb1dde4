package matrix

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/imgforge/imgforge/internal/diag"
)

// ofCell are the names of a cell's values that templates may use, besides the
// free axes.
var ofCell = []string{"arch", "base", "cuda", "cuda.major", "cuda.minor", "driver", "driver.major", "platform",
	"python", "torch", "torch.major", "torch.minor"}

// Vars are the cell's values as templates name them: its axes, cuda.major,
// cuda.minor, torch.major, torch.minor, driver.major, platform and arch.
func (c Cell) Vars() map[string]string {
	vars := make(map[string]string, len(ofCell)+len(c.Free))
	for _, name := range ofCell {
		vars[name], _ = c.Var(name)
	}
	maps.Copy(vars, c.Free) // no free axis can have one of the names above
	return vars
}

// Var is one of Vars; false when there is none of that name.
func (c Cell) Var(name string) (value string, ok bool) {
	switch name {
	case "cuda":
		return c.CUDA, true
	case "torch":
		return c.Torch, true
	case "python":
		return c.Python, true
	case "driver":
		return c.Driver, true
	case "base":
		return c.BaseName, true
	case "platform":
		return c.Platform, true
	case "arch":
		_, value, _ = strings.Cut(c.Platform, "/")
		return value, true
	case "cuda.major", "torch.major", "driver.major":
		of, _ := c.Var(strings.TrimSuffix(name, ".major"))
		value, _ = majorMinor(of)
		return value, true
	case "cuda.minor", "torch.minor":
		of, _ := c.Var(strings.TrimSuffix(name, ".minor"))
		_, value = majorMinor(of)
		return value, true
	}
	value, ok = c.Free[name]
	return value, ok
}

func majorMinor(v string) (major, minor string) {
	major, rest, _ := strings.Cut(v, ".")
	minor, _, _ = strings.Cut(rest, ".")
	return major, minor
}

// checkTemplate holds the tag template to the names there are.
func (r *reader) checkTemplate(m *Matrix) {
	sample := Cell{Free: map[string]string{}}
	for _, a := range m.Axes {
		if a.Name.Value != platformAxis && !slices.Contains(required, a.Name.Value) {
			sample.Free[a.Name.Value] = ""
		}
	}
	names := sample.Vars()
	template, err := split(m.Tag.Value)
	if err != nil {
		r.Bad.Add(m.Tag.Pos, "write names as ${torch}", "tag: %s", err)
	}
	for _, p := range template {
		if p.name == platformAxis {
			r.Bad.Add(m.Tag.Pos, "write ${arch}, which is amd64 or arm64", "the tag names the platform, and a tag cannot hold its /")
		}
		if _, ok := names[p.name]; p.named && !ok {
			r.Bad.Add(m.Tag.Pos, diag.Allowed(p.name, slices.Sorted(maps.Keys(names))), "the tag names %q, which no cell has", p.name)
		}
	}
}

// piece is literal text of a template, and the name in the ${...} behind it.
type piece struct {
	text, name string
	named      bool // false only for what stands behind the last ${...}
}

// split cuts a template at its ${...}.
func split(template string) ([]piece, error) {
	var out []piece
	for rest := template; ; {
		text, after, found := strings.Cut(rest, "${")
		if !found {
			return append(out, piece{text: rest}), nil
		}
		name, tail, closed := strings.Cut(after, "}")
		if !closed || strings.Contains(name, "${") {
			return out, fmt.Errorf("unclosed ${ before %q", after)
		}
		out = append(out, piece{text, name, true})
		rest = tail
	}
}

// render fills a template whose names are known to exist.
func (c Cell) render(template []piece) string {
	var out strings.Builder
	for _, p := range template {
		out.WriteString(p.text)
		if p.named {
			value, _ := c.Var(p.name)
			out.WriteString(value)
		}
	}
	return out.String()
}
