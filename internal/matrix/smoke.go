package matrix

import (
	"maps"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/imgforge/imgforge/internal/check"
	"github.com/imgforge/imgforge/internal/diag"
)

// smoke reads how images are tested.
func (r *reader) smoke(n *yaml.Node) Smoke {
	out := Smoke{GPU: Policies[0]}
	f := r.Fields(n, "smoke", smokeKeys)
	if s := r.Scalar(f["gpu"], "gpu"); s.Value != "" {
		if out.GPU = s.Value; !slices.Contains(Policies, s.Value) {
			r.Bad.Add(s.Pos, diag.Allowed(s.Value, Policies), "unknown gpu policy %q", s.Value)
		}
	}
	out.Checks = check.Reader{
		Reader: &r.Reader,
		When:   func(n *yaml.Node) map[string]diag.Str { return r.values(n, "when") },
	}.Checks(f["checks"])
	return out
}

// Meets tells whether the cell has all of some values, or values inside their ranges.
// An axis that no cell has is an error.
func (c Cell) Meets(when map[string]diag.Str) (bool, error) {
	for _, axis := range slices.Sorted(maps.Keys(when)) {
		want := when[axis]
		have, ok := c.Var(axis)
		if !ok {
			var bad diag.List
			bad.Add(want.Pos, diag.Allowed(axis, slices.Sorted(maps.Keys(c.Vars()))), "unknown axis %q in when", axis)
			return false, bad.Err()
		}
		if axis == "driver" {
			have = ">=" + have
		}
		if isRange(axis, want.Value) {
			if _, err := inRange(axis, have, want.Value); err != nil {
				var bad diag.List
				bad.Add(want.Pos, "", "%s: %s", axis, err)
				return false, bad.Err()
			}
		}
		if len(covered(axis, want.Value, []string{have})) == 0 {
			return false, nil
		}
	}
	return true, nil
}
