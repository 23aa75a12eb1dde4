package matrix

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/version"
)

// Selector picks cells, as --only does: every part must match.
type Selector struct {
	parts []part
}

type part struct{ axis, want string }

// axisPart is "name=": a part without it continues the one before, so that
// ranges may hold commas.
var axisPart = regexp.MustCompile(`^\s*([a-z][a-z0-9_.-]*)\s*=(.*)$`)

// ParseSelector reads "cuda=12.1,torch=~2.3". A cuda, torch or python may be a
// range (torch=>=2.1,<2.5); driver is an exact floor or its branch (525); tag is
// a shell pattern; anything else, such as a free axis or torch.minor, is exact.
func ParseSelector(s string) (Selector, error) {
	var out Selector
	for piece := range strings.SplitSeq(s, ",") {
		m := axisPart.FindStringSubmatch(piece)
		switch {
		case m != nil:
			out.parts = append(out.parts, part{m[1], strings.TrimSpace(m[2])})
		case strings.TrimSpace(piece) == "":
			return Selector{}, fmt.Errorf("nothing stands between or beside its commas; write axis=value, such as cuda=12.1,torch=~2.3")
		case len(out.parts) == 0:
			return Selector{}, fmt.Errorf("%q does not begin with an axis; write axis=value, such as cuda=12.1,torch=~2.3", piece)
		default:
			out.parts[len(out.parts)-1].want += "," + strings.TrimSpace(piece)
		}
	}
	seen := map[string]bool{}
	for _, p := range out.parts {
		if seen[p.axis] {
			return Selector{}, fmt.Errorf("%s is given twice, and every part must match; write a range, or select twice for either", p.axis)
		}
		seen[p.axis] = true
		if err := p.check(); err != nil {
			return Selector{}, err
		}
	}
	return out, nil
}

func (p part) check() error {
	if p.want == "" {
		return fmt.Errorf("%s= has no value", p.axis)
	}
	var err error
	switch p.axis {
	case "tag":
		_, err = path.Match(p.want, "")
	case "cuda", "torch", "python":
		_, err = version.InRange("1.0.0", p.want)
	case "driver":
		_, err = version.ParseFloor(p.want)
	}
	if err != nil {
		return fmt.Errorf("%s=%s: %w", p.axis, p.want, err)
	}
	return nil
}

// Check refuses a selector that names an axis which the cells do not have; the
// error says which they have.
func (s Selector) Check(cells []Cell) error {
	if len(cells) == 0 {
		return nil
	}
	names := append(slices.Clone(ofCell), "tag")
	for _, c := range cells {
		for name := range c.Free {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	for _, p := range s.parts {
		if !slices.Contains(names, p.axis) {
			return fmt.Errorf("no cell has an axis %q; %s", p.axis, diag.Allowed(p.axis, names))
		}
	}
	return nil
}

// Match tells whether a cell has all that the selector asks.
func (s Selector) Match(c Cell) bool {
	vars := c.Vars()
	for _, p := range s.parts {
		if !p.match(c.Tag, vars) {
			return false
		}
	}
	return true
}

func (p part) match(tag string, vars map[string]string) bool {
	value, known := vars[p.axis]
	switch p.axis {
	case "tag":
		ok, err := path.Match(p.want, tag)
		return err == nil && ok
	case "cuda", "torch", "python":
		ok, err := version.InRange(value, p.want)
		return err == nil && ok
	case "driver":
		return matchDriver(value, p.want)
	}
	return known && value == p.want
}

// matchDriver compares floors; a want without a dot is a branch.
func matchDriver(value, want string) bool {
	have, err := version.ParseDriver(value)
	wanted, wrong := version.ParseFloor(want)
	if err != nil || wrong != nil {
		return false
	}
	if !strings.Contains(want, ".") {
		return have.Major() == wanted.Major()
	}
	return have.Compare(wanted) == 0
}
