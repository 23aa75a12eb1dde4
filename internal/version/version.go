// Package version parses and compares the versions imgforge meets: drivers and
// CUDA (dotted numbers), Python packages (PEP 440), Debian packages, and ranges
// of torch or CUDA as a matrix writes them. The rules of each ecosystem come
// from an existing library; only dotted driver numbers, which no library takes
// with their leading zeros, are compared here.
package version

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"
	pep440 "github.com/aquasecurity/go-pep440-version"
	debian "pault.ag/go/debian/version"
)

// ComparePEP440 orders two Python package versions: negative when a is older,
// 0 when they are equal, positive when a is newer. A local part (+cu118) sorts
// after the same version without one. The error names the version that is not
// PEP 440.
func ComparePEP440(a, b string) (int, error) {
	x, err := parsePEP440(a)
	if err != nil {
		return 0, err
	}
	y, err := parsePEP440(b)
	if err != nil {
		return 0, err
	}
	return x.Compare(y), nil
}

func parsePEP440(s string) (pep440.Version, error) {
	v, err := pep440.Parse(s)
	if err != nil {
		return v, fmt.Errorf("%q is not a Python package version; write one such as 2.4.1, 2.4.1+cu118 or 2.5.0rc1", s)
	}
	return v, nil
}

// CompareDebian orders two Debian package versions as dpkg does: negative when
// a is older, 0 when they are equal, positive when a is newer. The error names
// the version that is malformed and why.
func CompareDebian(a, b string) (int, error) {
	x, err := parseDebian(a)
	if err != nil {
		return 0, err
	}
	y, err := parseDebian(b)
	if err != nil {
		return 0, err
	}
	return debian.Compare(x, y), nil
}

func parseDebian(s string) (debian.Version, error) {
	var v debian.Version
	if err := v.UnmarshalControl(s); err != nil {
		return v, fmt.Errorf("%q is not a Debian version (%w); write [epoch:]upstream[-revision], such as 1:2.36-9+deb12u4", s, err)
	}
	return v, nil
}

// InRange tells whether v (2.4.1, 12.1) satisfies constraint: an exact version,
// or a range such as ~2.3, ">=2.1,<2.6" or "2.3.x". A constraint with fewer
// numbers than v covers every v that begins with them. The error says which of
// the two is malformed and what is allowed.
func InRange(v, constraint string) (bool, error) {
	c, err := semver.NewConstraint(constraint)
	if err != nil {
		return false, fmt.Errorf("%q is not a version or range; write an exact version (2.4.1) or a range such as ~2.3 or >=2.1,<2.6", constraint)
	}
	parsed, err := semver.NewVersion(v)
	if err != nil {
		return false, fmt.Errorf("%q is not a version that can be held against a range; write one such as 2.4.1 or 12.1", v)
	}
	return c.Check(parsed), nil
}

var separators = regexp.MustCompile(`[-_.]+`)

// NormalizeName is the name of a Python distribution as PEP 503 compares it:
// lower case, with each run of "-", "_" and "." made one "-".
func NormalizeName(s string) string {
	return separators.ReplaceAllString(strings.ToLower(s), "-")
}
