package matrix

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/imgforge/imgforge/internal/version"
)

// Selector picks cells, as --only does: every part must match.
type Selector struct {
	parts []part
}

type part struct{ axis, want string }

// axisPart is "name=": a part without it continues the one before, so that
// ranges may hold commas.
var axisPart = regexp.MustCompile(`^\s*([a-z][a-z0-9_-]*)=(.*)$`)

// ParseSelector reads "axis=value,axis=range". A torch, cuda or python may be a
// range (~2.3 or >=2.1,<2.5), a driver an exact floor or its major number, and
// tag a shell pattern.
func ParseSelector(s string) (Selector, error) {
	var out Selector
	for piece := range strings.SplitSeq(s, ",") {
		if m := axisPart.FindStringSubmatch(piece); m != nil {
			out.parts = append(out.parts, part{m[1], strings.TrimSpace(m[2])})
			continue
		}
		if len(out.parts) == 0 {
			return out, fmt.Errorf("%q does not begin with an axis; write axis=value, such as cuda=12.1,torch=~2.3", piece)
		}
		out.parts[len(out.parts)-1].want += "," + strings.TrimSpace(piece)
	}
	for _, p := range out.parts {
		if err := p.check(); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (p part) check() error {
	if p.want == "" {
		return fmt.Errorf("%s= has no value", p.axis)
	}
	switch p.axis {
	case "tag":
		if _, err := path.Match(p.want, ""); err != nil {
			return fmt.Errorf("tag pattern %q: %w", p.want, err)
		}
	case "cuda", "torch", "python":
		if _, err := version.InRange("1.0.0", p.want); err != nil {
			return fmt.Errorf("%s=%s: %w", p.axis, p.want, err)
		}
	}
	return nil
}

// Match tells whether a cell has all that the selector asks.
func (s Selector) Match(c Cell) bool {
	vars := c.Vars()
	for _, p := range s.parts {
		value, known := vars[p.axis]
		switch p.axis {
		case "tag":
			if ok, _ := path.Match(p.want, c.Tag); !ok {
				return false
			}
		case "driver":
			want := strings.TrimPrefix(p.want, ">=")
			if want != value && want != majorOf(value) {
				return false
			}
		case "cuda", "torch", "python":
			if ok, _ := version.InRange(value, p.want); !ok {
				return false
			}
		default:
			if !known || value != p.want {
				return false
			}
		}
	}
	return true
}
