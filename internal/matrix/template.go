package matrix

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/imgforge/imgforge/internal/version"
)

// Vars are the cell's values as templates name them.
func (c Cell) Vars() map[string]string {
	vars := map[string]string{
		"cuda": c.CUDA, "torch": c.Torch, "python": c.Python, "driver": c.Driver, "base": c.BaseName, "platform": c.Platform,
	}
	part := func(name, value string, n int) {
		if fields := strings.Split(value, "."); n < len(fields) {
			vars[name] = fields[n]
		}
	}
	part("cuda.major", c.CUDA, 0)
	part("cuda.minor", c.CUDA, 1)
	part("torch.major", c.Torch, 0)
	part("torch.minor", c.Torch, 1)
	part("driver.major", c.Driver, 0)
	maps.Copy(vars, c.Free)
	return vars
}

// checkTemplate holds the tag template to the names there are.
func (r *reader) checkTemplate(m *Matrix) {
	sample := Cell{CUDA: "12.1", Torch: "2.4.1", Driver: "525.60.13", Free: map[string]string{}}
	for _, a := range m.Axes {
		if !slices.Contains(required, a.Name.Value) {
			sample.Free[a.Name.Value] = ""
		}
	}
	names := sample.Vars()
	used, err := placeholders(m.Tag.Value)
	if err != nil {
		r.bad.Add(m.Tag.Pos, "write names as ${torch}", "tag: %s", err)
	}
	for _, name := range used {
		if _, ok := names[name]; !ok {
			r.bad.Add(m.Tag.Pos, allowed(name, keys(names)), "the tag names %q, which no cell has", name)
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
		if !closed {
			return out, fmt.Errorf("unclosed ${ in %q", template)
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

// majorOf is a driver's branch, or "" when it is no driver.
func majorOf(driver string) string {
	d, err := version.ParseDriver(driver)
	if err != nil {
		return ""
	}
	return fmt.Sprint(d.Major())
}
