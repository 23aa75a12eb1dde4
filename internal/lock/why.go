package lock

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Reason is one way in which a package came into a set.
type Reason struct {
	Need    *Need
	Package Entry    // the blob it is about
	Asked   string   // what a recipe asks for, as it stands in the request; empty: the base system
	Chain   []string // packages from what was asked for to this one; empty: not recorded
	Limits  []string // constraints on the package, if any
}

// Why lists, for each set that holds a package of that name, how it came there:
// the shortest way from each thing that was asked for, shortest first. Of a base
// one way is enough.
func (f *File) Why(needs []Need, name string) []Reason {
	var out []Reason
	for i := range needs {
		n := &needs[i]
		picked, _, _ := f.Picked(n.Set) // what is there can be explained, also where something is not
		at := slices.IndexFunc(picked, func(e Entry) bool { return e.Is(name) })
		if at < 0 {
			continue
		}
		target, _ := picked[at].Package()
		found := f.reasons(n, picked, target)
		if len(found) == 0 {
			found = []Reason{{}}
		}
		for _, r := range found {
			r.Need, r.Package, r.Limits = n, picked[at], limitsOn(target, n.Request.Constraints)
			out = append(out, r)
		}
	}
	return out
}

func (f *File) reasons(n *Need, picked []Entry, target string) []Reason {
	edges := f.needsOf(picked)
	var out []Reason
	for _, root := range rootsOf(n.Request, picked, edges) {
		if chain := way(edges, root.name, target); chain != nil {
			out = append(out, Reason{Asked: root.asked, Chain: chain})
		}
	}
	slices.SortStableFunc(out, func(a, b Reason) int { return cmp.Compare(len(a.Chain), len(b.Chain)) })
	if n.Request.Kind == "base" && len(out) > 1 {
		out = out[:1]
	}
	return out
}

// root is where chains begin.
type root struct{ asked, name string }

// rootsOf are what a request asks for; of a base, Python, apt and whatever no
// other package needs; of tools, and of a base made elsewhere, all.
func rootsOf(r Request, picked []Entry, edges map[string][]string) []root {
	var out []root
	switch r.Kind {
	case "debs":
		for _, name := range r.Packages {
			out = append(out, root{name, name})
		}
	case "wheels":
		for _, req := range r.Requirements {
			out = append(out, root{req, NameOf(req)})
		}
	default:
		needed := map[string]bool{}
		for _, children := range edges {
			for _, child := range children {
				needed[child] = true
			}
		}
		for _, e := range picked {
			name, _ := e.Package()
			if e.Kind == Image || e.Kind == Rootfs {
				out = append(out, root{"", name})
			}
			if len(edges) > 0 && (!needed[name] || name == "python3" || name == "apt") || r.Kind == "tools" {
				out = append(out, root{"", name})
			}
		}
	}
	return out
}

// way is a shortest chain from one package to another, both in it; nil when there
// is none. Equal ones are settled by name.
func way(edges map[string][]string, from, to string) []string {
	before := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		if queue[0] == to {
			var chain []string
			for at := to; at != ""; at = before[at] {
				chain = append(chain, at)
			}
			slices.Reverse(chain)
			return chain
		}
		for _, child := range edges[queue[0]] {
			if _, seen := before[child]; !seen {
				before[child] = queue[0]
				queue = append(queue, child)
			}
		}
	}
	return nil
}

func limitsOn(name string, constraints []string) []string {
	var out []string
	for _, c := range constraints {
		if NameOf(c) == name {
			out = append(out, c)
		}
	}
	return out
}

// Is tells whether an entry's file is the package of that name, however a
// distribution's name is written, or belongs to the base of that name.
func (e Entry) Is(name string) bool {
	mine, _ := e.Package()
	switch {
	case e.Kind == Image && strings.HasPrefix(mine, name+"_") && strings.Count(mine, "_") == strings.Count(name, "_")+2: // BASE_ARCH_PART
		return true
	case e.Kind == Rootfs && e.Value == name:
		return true
	}
	return isBlob(e.Kind) && (mine == strings.ToLower(name) || e.Kind == Wheel && mine == NameOf(name))
}

// Names lists the packages that the needs' answers hold, sorted, each once.
func (f *File) Names(needs []Need) []string {
	names := map[string]bool{}
	for _, n := range needs {
		picked, _, _ := f.Picked(n.Set)
		for _, e := range picked {
			name, _ := e.Package()
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
