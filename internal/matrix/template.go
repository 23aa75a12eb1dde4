package matrix

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/imgforge/imgforge/internal/diag"
)

// Vars are the cell's values as templates name them: its axes, cuda.major,
// cuda.minor, torch.major, torch.minor, driver.major and platform.
func (c Cell) Vars() map[string]string {
	vars := map[string]string{
		"cuda": c.CUDA, "torch": c.Torch, "python": c.Python, "driver": c.Driver, "base": c.BaseName, "platform": c.Platform,
	}
	vars["cuda.major"], vars["cuda.minor"] = majorMinor(c.CUDA)
	vars["torch.major"], vars["torch.minor"] = majorMinor(c.Torch)
	vars["driver.major"], _ = majorMinor(c.Driver)
	maps.Copy(vars, c.Free) // no free axis can have one of the names above
	return vars
}

// Var is one of Vars; false when there is none of that name.
func (c Cell) Var(name string) (string, bool) {
	v, ok := c.Vars()[name]
	return v, ok
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
		if !slices.Contains(required, a.Name.Value) {
			sample.Free[a.Name.Value] = ""
		}
	}
	names := sample.Vars()
	used, err := placeholders(m.Tag.Value)
	if err != nil {
		r.Bad.Add(m.Tag.Pos, "write names as ${torch}", "tag: %s", err)
	}
	for _, name := range used {
		if _, ok := names[name]; !ok {
			r.Bad.Add(m.Tag.Pos, diag.Allowed(name, slices.Sorted(maps.Keys(names))), "the tag names %q, which no cell has", name)
		}
	}
}

// placeholders lists the names in a template's ${...}.
func placeholders(template string) ([]string, error) {
	var out []string
	for rest := template; ; {
		_, after, found := strings.Cut(rest, "${")
		if !found {
			return out, nil
		}
		name, tail, closed := strings.Cut(after, "}")
		if !closed || strings.Contains(name, "${") {
			return out, fmt.Errorf("unclosed ${ before %q", after)
		}
		out = append(out, name)
		rest = tail
	}
}

// render fills a template whose names are known to exist.
func render(template string, vars map[string]string) string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		pairs = append(pairs, "${"+name+"}", vars[name])
	}
	return strings.NewReplacer(pairs...).Replace(template)
}
