package compat

import "slices"

// Distribution is a release of Debian or Ubuntu that an image may be made on.
type Distribution struct {
	Suite     string // bookworm
	Name      string // for tags: debian12
	ID        string // as os-release has it: debian
	VersionID string // 12
	Python    string // its own Python: 3.11
	Glibc     string // 2.36
	source    string
}

func (r *row) distribution() Distribution {
	return Distribution{
		Suite: r.get("suite"), Name: r.get("name"), ID: r.get("id"), VersionID: r.get("version_id"),
		Python: r.get("python"), Glibc: r.get("glibc"), source: r.get("source"),
	}
}

// DistributionOf finds a suite by its code name; false when it is not known.
func DistributionOf(suite string) (Distribution, bool) {
	for _, d := range known().distributions {
		if d.Suite == suite {
			return d, true
		}
	}
	return Distribution{}, false
}

// Suites lists the suites that are known, in the table's order: those of the
// distributions named (debian, ubuntu), or of all.
func Suites(ids ...string) []string {
	var out []string
	for _, d := range known().distributions {
		if len(ids) == 0 || slices.Contains(ids, d.ID) {
			out = append(out, d.Suite)
		}
	}
	return out
}
