package compat

import (
	"slices"

	"github.com/imgforge/imgforge/internal/version"
)

// Pythons lists the Python versions that some torch has wheels for, oldest first.
func Pythons() []string {
	var out []string
	for _, r := range known().releases {
		out = append(out, r.pythons...)
	}
	return ordered(out, compareReleases)
}

// Drivers lists the drivers that are the compat or the strict floor of some CUDA,
// oldest first.
func Drivers() []string {
	var out []string
	for _, f := range known().floors {
		for _, d := range []string{f.Compat, f.Strict} {
			if d != "" {
				out = append(out, d)
			}
		}
	}
	return ordered(out, func(a, b string) int {
		x, _ := version.ParseDriver(a)
		y, _ := version.ParseDriver(b)
		return x.Compare(y)
	})
}

func ordered(values []string, compare func(a, b string) int) []string {
	slices.SortFunc(values, compare)
	return slices.Compact(values)
}
