package resolve

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"pault.ag/go/debian/dependency"

	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/version"
)

// deb is one package of a Packages file.
type deb struct {
	name, version, arch string
	origin              string // archive/pool path
	sha256              string
	size                int64
	essential           bool
	required            bool
	depends, provides   string // as written; Pre-Depends come first
	stanza              string // whole, as dpkg's status wants it
}

// key is how the lock names it.
func (d *deb) key() string { return d.name + "_" + d.version + "_" + d.arch }

func (d *deb) entry() lock.Entry {
	return lock.Entry{Kind: lock.Deb, Key: d.key(), Value: d.origin, Size: d.size, Hash: "sha256:" + d.sha256}
}

func (d *deb) blob() plan.Blob {
	return plan.Blob{Name: path.Base(d.origin), Origin: d.origin, SHA256: d.sha256, Size: d.size}
}

// parsePackages reads a Packages file of the archive. Stanzas are kept as they
// are, because apt and dpkg are given them again.
func parsePackages(text, archive string) ([]*deb, error) {
	var out []*deb
	for stanza := range strings.SplitSeq(text, "\n\n") {
		stanza = strings.Trim(stanza, "\n")
		if stanza == "" {
			continue
		}
		d, err := parseStanza(stanza, archive)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

func parseStanza(stanza, archive string) (*deb, error) {
	d := &deb{stanza: stanza}
	var file, size, pre, dep string
	for line := range strings.SplitSeq(stanza, "\n") {
		name, value, ok := strings.Cut(line, ":")
		if !ok || strings.HasPrefix(line, " ") {
			continue
		}
		value = strings.TrimSpace(value)
		switch name {
		case "Package":
			d.name = value
		case "Version":
			d.version = value
		case "Architecture":
			d.arch = value
		case "Filename":
			file = strings.TrimPrefix(value, "./")
		case "Size":
			size = value
		case "SHA256":
			d.sha256 = value
		case "Essential":
			d.essential = value == "yes"
		case "Priority":
			d.required = value == "required"
		case "Pre-Depends":
			pre = value
		case "Depends":
			dep = value
		case "Provides":
			d.provides = value
		}
	}
	d.depends = strings.Trim(pre+", "+dep, ", ")
	d.origin = archive + "/" + file
	n, err := strconv.ParseInt(size, 10, 64)
	d.size = n
	switch {
	case d.name == "" || d.version == "" || d.arch == "" || strings.ContainsAny(d.key(), " \t/"):
		return nil, fmt.Errorf("a stanza has no usable Package, Version and Architecture: %.80q", stanza)
	case err != nil || n <= 0:
		return nil, fmt.Errorf("%s: bad Size %q", d.key(), size)
	case !sha256Hex.MatchString(d.sha256):
		return nil, fmt.Errorf("%s: bad SHA256 %q", d.key(), d.sha256)
	case path.Clean(file) != file || file == "." || path.IsAbs(file) || strings.HasPrefix(file, "../") || strings.ContainsAny(file, " \t"):
		return nil, fmt.Errorf("%s: bad Filename %q", d.key(), file)
	}
	return d, nil
}

// universe is the packages of a suite with its updates and security fixes.
type universe struct {
	newest    map[string]*deb     // by name
	byKey     map[string]*deb     // by name_version_arch
	providers map[string][]string // names of who provides a name, sorted
}

// newUniverse joins packages. Of the same version in two archives the first
// stands: the main archive keeps files that the security archive drops.
func newUniverse(debs []*deb) (*universe, error) {
	u := &universe{newest: map[string]*deb{}, byKey: map[string]*deb{}, providers: map[string][]string{}}
	for _, d := range debs {
		if u.byKey[d.key()] != nil {
			continue
		}
		u.byKey[d.key()] = d
		order := 1
		if best := u.newest[d.name]; best != nil {
			var err error
			if order, err = version.CompareDebian(d.version, best.version); err != nil {
				return nil, fmt.Errorf("%s: %w", d.key(), err)
			}
		}
		if order > 0 {
			u.newest[d.name] = d
		}
	}
	for _, name := range slices.Sorted(maps.Keys(u.newest)) {
		provides, err := names(u.newest[name].provides)
		if err != nil {
			return nil, fmt.Errorf("%s: Provides: %w", u.newest[name].key(), err)
		}
		for _, alternatives := range provides {
			u.providers[alternatives[0]] = append(u.providers[alternatives[0]], name)
		}
	}
	return u, nil
}

// names reads a relation field: for each comma, the names between its bars.
func names(field string) ([][]string, error) {
	if field == "" {
		return nil, nil
	}
	dep, err := dependency.Parse(field)
	if err != nil {
		return nil, err
	}
	var out [][]string
	for _, rel := range dep.Relations {
		var alternatives []string
		for _, p := range rel.Possibilities {
			alternatives = append(alternatives, p.Name)
		}
		if len(alternatives) > 0 {
			out = append(out, alternatives)
		}
	}
	return out, nil
}

// minimal lists what no Debian system is without, and apt: what mmdebstrap
// calls minbase.
func (u *universe) minimal() []string {
	out := []string{"apt"}
	for name, d := range u.newest {
		if d.essential || d.required {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// closure adds to the seeds what they depend on, taking the first alternative
// that exists and not looking at versions. It is no solver: it makes a root in
// which the real one can run.
func (u *universe) closure(seeds []string) ([]*deb, error) {
	chosen := map[string]*deb{}
	var queue []*deb
	take := func(name, why string) error {
		d := u.newest[name]
		if d == nil {
			return fmt.Errorf("no package %s%s in the archive", name, why)
		}
		if chosen[name] == nil {
			chosen[name] = d
			queue = append(queue, d)
		}
		return nil
	}
	for _, name := range seeds {
		if err := take(name, ""); err != nil {
			return nil, err
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		relations, err := names(queue[0].depends)
		if err != nil {
			return nil, fmt.Errorf("%s: Depends: %w", queue[0].key(), err)
		}
		for _, alternatives := range relations {
			if err := take(u.pick(alternatives, chosen), ", needed by "+queue[0].name+","); err != nil {
				return nil, err
			}
		}
	}
	return slices.SortedFunc(maps.Values(chosen), func(a, b *deb) int { return cmp.Compare(a.name, b.name) }), nil
}

// pick settles one dependency: what is chosen already, else the first that
// exists, else the first that is provided.
func (u *universe) pick(alternatives []string, chosen map[string]*deb) string {
	for _, name := range alternatives {
		if chosen[name] != nil {
			return name
		}
		for _, p := range u.providers[name] {
			if chosen[p] != nil {
				return p
			}
		}
	}
	for _, name := range alternatives {
		if u.newest[name] != nil {
			return name
		}
	}
	for _, name := range alternatives {
		if len(u.providers[name]) > 0 {
			return u.providers[name][0]
		}
	}
	return alternatives[0]
}
