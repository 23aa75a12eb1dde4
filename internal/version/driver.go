package version

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Driver is the version of an NVIDIA driver. The zero Driver is older than any.
type Driver struct {
	text  string
	parts []int
}

// ParseDriver reads a bare driver version: up to four dotted numbers, leading
// zeros allowed (450.80.02, 525.60.13, 570.26), or the branch alone (535). The
// error says what is allowed.
func ParseDriver(s string) (Driver, error) {
	parts, ok := dotted(s)
	if !ok || len(parts) > 4 || parts[0] == 0 {
		return Driver{}, fmt.Errorf("%q is not a driver version; write one such as 525.60.13 or 570.26", s)
	}
	return Driver{text: s, parts: parts}, nil
}

// ParseFloor reads the oldest driver allowed: ">=450.80.02", or the bare
// version. Any other operator is refused, and the error says so.
func ParseFloor(s string) (Driver, error) {
	bare := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s), ">="))
	d, err := ParseDriver(bare)
	if err != nil {
		return Driver{}, fmt.Errorf("%q is not a driver floor; write >=525.60.13 or the bare version 525.60.13 (no other operator is allowed)", s)
	}
	return d, nil
}

// String is the version as it was written.
func (d Driver) String() string { return d.text }

// Major is the driver's branch: 525 for 525.60.13, 0 for the zero Driver.
func (d Driver) Major() int {
	if len(d.parts) == 0 {
		return 0
	}
	return d.parts[0]
}

// Compare is negative when d is older than other, 0 when they are the same
// version (455.32 and 455.32.00 are), positive when d is newer.
func (d Driver) Compare(other Driver) int {
	return slices.Compare(trimZeros(d.parts), trimZeros(other.parts))
}

func trimZeros(parts []int) []int {
	for len(parts) > 0 && parts[len(parts)-1] == 0 {
		parts = parts[:len(parts)-1]
	}
	return parts
}

// CUDA is a CUDA release, without its update: 12.1.
type CUDA struct {
	Major, Minor int
}

// ParseCUDA reads major.minor, such as 12.1 or 11.8. The error says what is
// allowed; an update (12.1.1) has to be left out.
func ParseCUDA(s string) (CUDA, error) {
	parts, ok := dotted(s)
	if ok && len(parts) == 2 && parts[0] > 0 {
		if c := (CUDA{parts[0], parts[1]}); c.String() == s {
			return c, nil
		}
	}
	hint := "write major.minor, such as 12.1"
	if ok && len(parts) == 3 {
		hint = fmt.Sprintf("leave the update out: %d.%d", parts[0], parts[1])
	}
	return CUDA{}, fmt.Errorf("%q is not a CUDA version; %s", s, hint)
}

// String is major.minor.
func (c CUDA) String() string { return fmt.Sprintf("%d.%d", c.Major, c.Minor) }

// Local is the local part that a torch wheel's version carries: cu121.
func (c CUDA) Local() string { return fmt.Sprintf("cu%d%d", c.Major, c.Minor) }

// Compare is negative when c is older than other, 0 when equal, positive when newer.
func (c CUDA) Compare(other CUDA) int {
	return cmp.Or(cmp.Compare(c.Major, other.Major), cmp.Compare(c.Minor, other.Minor))
}

// dotted splits dotted decimal numbers of at most five digits each.
func dotted(s string) ([]int, bool) {
	var parts []int
	for field := range strings.SplitSeq(s, ".") {
		if len(field) == 0 || len(field) > 5 || strings.Trim(field, "0123456789") != "" {
			return nil, false
		}
		n, err := strconv.Atoi(field)
		if err != nil {
			return nil, false
		}
		parts = append(parts, n)
	}
	return parts, true
}
