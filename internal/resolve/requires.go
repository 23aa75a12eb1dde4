package resolve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/version"
)

// requiresOfDebs records which of some .debs needs which others of them. An
// alternative counts when it is there, under its own name or a provided one.
func requiresOfDebs(debs []*deb) []lock.Entry {
	providers := map[string][]string{}
	for _, d := range debs {
		providers[d.name] = append(providers[d.name], d.name)
		provides, _ := names(d.provides) // newUniverse has read it already
		for _, p := range provides {
			providers[p[0]] = append(providers[p[0]], d.name)
		}
	}
	var out []lock.Entry
	for _, d := range debs {
		relations, err := names(d.depends)
		if err != nil {
			continue // it explains less; apt has read it its own way
		}
		var needs []string
		for _, alternatives := range relations {
			for _, name := range alternatives {
				needs = append(needs, providers[name]...)
			}
		}
		needs = slices.DeleteFunc(needs, func(name string) bool { return name == d.name })
		if e, any := lock.RequiresOf(d.key(), needs); any {
			out = append(out, e)
		}
	}
	return out
}

// requiresOfWheels records the same of wheels, from uv's comments.
func requiresOfWheels(wheels []lock.Entry, via string) []lock.Entry {
	needs := map[string][]string{}
	for _, w := range wheels {
		name, _ := w.Package()
		for _, who := range wanters(via, name) {
			who, _, _ = strings.Cut(who, "[") // an extra of it
			needs[version.NormalizeName(who)] = append(needs[version.NormalizeName(who)], name)
		}
	}
	var out []lock.Entry
	for _, w := range wheels {
		name, _ := w.Package()
		if e, any := lock.RequiresOf(w.Key, needs[name]); any {
			out = append(out, e)
		}
	}
	return out
}

// pins are wheels as requirements of their very versions.
func pins(keep []lock.Entry) []string {
	var out []string
	for _, e := range keep {
		if e.Kind == lock.Wheel {
			name, version := e.Package()
			out = append(out, name+"=="+version)
		}
	}
	return out
}

// preferencesOf tells apt to choose these versions where it has them: above the
// 500 of any other, below the 1000 from which it would also go back to an older
// one than is installed.
func preferencesOf(keep []lock.Entry) string {
	var b strings.Builder
	for _, e := range keep {
		if e.Kind == lock.Deb {
			name, version := e.Package()
			fmt.Fprintf(&b, "Package: %s\nPin: version %s\nPin-Priority: 990\n\n", name, version)
		}
	}
	return b.String()
}
