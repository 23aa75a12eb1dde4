package lock

import (
	"fmt"
	"slices"
	"strings"

	"github.com/imgforge/imgforge/internal/version"
)

// Answer returns the blobs that answer a request, whose Set is set, and false
// when the lock has no answer. The error says what makes an answer none: a pick
// without its blob, something that was asked for by name and is not there, or
// two versions of one package, as a merge may bring together.
func (f *File) Answer(set string, r Request) ([]Entry, bool, error) {
	picked, ok, err := f.Picked(set)
	if err == nil && ok {
		err = f.judge(set, r, picked)
	}
	return picked, ok, err
}

func (f *File) judge(set string, r Request, picked []Entry) error {
	have := map[string]string{}
	for _, e := range picked {
		name, v := e.Package()
		if was, twice := have[name]; twice {
			return fmt.Errorf("the lock has %s twice for %s: %s and %s", name, set, was, v)
		}
		have[name] = v
	}
	var lacks []string
	for _, name := range r.asked() {
		if _, ok := have[name]; !ok {
			lacks = append(lacks, name)
		}
	}
	if len(lacks) > 0 && r.Kind == "debs" && r.On != "" {
		return nil // the base may have them; what it has is not in the lock
	}
	if len(lacks) > 0 && r.Kind == "debs" {
		below, _, err := f.Picked(r.OfBase().Set())
		if err != nil {
			return err
		}
		lacks = slices.DeleteFunc(lacks, func(name string) bool {
			return slices.ContainsFunc(below, func(e Entry) bool { n, _ := e.Package(); return n == name })
		})
	}
	if len(lacks) == 0 {
		if name := f.lost(picked); name != "" {
			lacks = []string{name}
		}
	}
	if len(lacks) > 0 {
		return fmt.Errorf("the lock's answer to %s lacks %s", set, strings.Join(lacks, ", "))
	}
	return nil
}

// asked are the packages a request names, which its answer must hold. A wheel
// with a marker may be for another Python.
func (r Request) asked() []string {
	switch r.Kind {
	case "base":
		if r.Suite != "" {
			return []string{"python3"} // else it is no Debian that was asked for
		}
	case "debs":
		return r.Packages
	case "wheels":
		var out []string
		for _, req := range r.Requirements {
			if !strings.Contains(req, ";") {
				out = append(out, NameOf(req))
			}
		}
		return out
	}
	return nil
}

// OfBase is the request for the base that a request goes on.
func (r Request) OfBase() Request {
	return Request{Kind: "base", Base: r.Base, Suite: r.Suite, Components: r.Components, Arch: r.Arch}
}

// NameOf is the normalized name of the distribution a PEP 508 requirement is for.
func NameOf(requirement string) string {
	if end := strings.IndexAny(requirement, " <>=!~;[("); end >= 0 {
		requirement = requirement[:end]
	}
	return version.NormalizeName(requirement)
}

// Package is the name and version of what an entry's file holds: a Debian
// package, or a distribution by its normalized name. Of a base that was made
// elsewhere it is the key, and for a version the beginning of its hash.
func (e Entry) Package() (name, version string) {
	switch e.Kind {
	case Deb:
		parts := strings.Split(e.Key, "_")
		if len(parts) > 1 {
			version = parts[1]
		}
		return parts[0], version
	case Wheel:
		_, pin, _ := strings.Cut(e.Value, ":")
		name, version, _ = strings.Cut(pin, "==")
		return NameOf(name), version
	case Image, Rootfs:
		return e.Key, fmt.Sprintf("%.12s", strings.TrimPrefix(e.Hash, "sha256:"))
	}
	return e.Key, ""
}
