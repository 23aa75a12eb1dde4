package lock

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Move is what became of one package from one lock to the next.
type Move struct {
	Package string   `json:"package"`
	Kind    Kind     `json:"kind"`
	Old     string   `json:"old"`   // version; empty: added
	New     string   `json:"new"`   // version; empty: removed
	Cells   []string `json:"cells"` // in which it moved
	Size    int64    `json:"size"`  // bytes of the new file; 0: removed, or not known
	Rebuilt bool     `json:"rebuilt,omitempty"`
}

// Diff lists what moved between two locks in the needs' answers, by package. A
// set that is asked otherwise now is held against the one it stands for.
func Diff(old, next *File, needs []Need) []Move {
	type move struct {
		name, old, new string
		kind           Kind
		rebuilt        bool
	}
	cells, size := map[move]map[string]bool{}, map[move]int64{}
	for _, n := range needs {
		now, ok, _ := next.Picked(n.Set)
		if !ok {
			continue // it could not be resolved, which is said elsewhere
		}
		was, is := byName(old.Previous(n, needs)), byName(now)
		for name := range merged(was, is) {
			a, b := was[name], is[name]
			_, oldVersion := a.Package()
			_, newVersion := b.Package()
			if a.Hash == b.Hash {
				continue
			}
			m := move{name, oldVersion, newVersion, cmp.Or(b.Kind, a.Kind), oldVersion == newVersion}
			if cells[m] == nil {
				cells[m] = map[string]bool{}
			}
			for _, c := range n.Cells {
				cells[m][c] = true
			}
			size[m] = b.Size
		}
	}
	out := []Move{}
	for m, tags := range cells {
		out = append(out, Move{m.name, m.kind, m.old, m.new, slices.Sorted(maps.Keys(tags)), size[m], m.rebuilt})
	}
	slices.SortFunc(out, func(a, b Move) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Package, b.Package), cmp.Compare(a.Old, b.Old), cmp.Compare(a.New, b.New))
	})
	return out
}

// Previous is the answer that a need had: that of its own set, else of a set of
// the same readable name that none of the needs asks for any more. Of several,
// the one that holds most of what is asked now.
func (f *File) Previous(n Need, needs []Need) []Entry {
	if picked, ok, _ := f.Picked(n.Set); ok {
		return picked
	}
	asked := map[string]bool{}
	for _, other := range needs {
		asked[other.Set] = true
	}
	var best []Entry
	most, last := -1, ""
	for _, e := range f.Entries { // sorted, so equal ones are settled by name
		if e.Kind != Pick || e.Key == last || stem(e.Key) != stem(n.Set) || asked[e.Key] {
			continue
		}
		last = e.Key
		picked, _, _ := f.Picked(e.Key)
		if score := n.Request.held(picked); score > most {
			best, most = picked, score
		}
	}
	return best
}

// held counts how much of what a request names some files hold, and at the very
// version it names.
func (r Request) held(picked []Entry) int {
	have, count := byName(picked), 0
	for _, name := range r.Packages {
		if _, ok := have[name]; ok {
			count++
		}
	}
	for _, asked := range r.Requirements {
		e, ok := have[NameOf(asked)]
		if !ok {
			continue
		}
		count++
		_, version := e.Package()
		if _, pin, pinned := strings.Cut(asked, "=="); pinned && pin == version {
			count++
		}
	}
	return count
}

// stem is a set's name without the hash of its question.
func stem(set string) string {
	i := strings.LastIndexByte(set, '-')
	if i < 0 {
		return set
	}
	return set[:i]
}

func byName(entries []Entry) map[string]Entry {
	out := map[string]Entry{}
	for _, e := range entries {
		name, _ := e.Package()
		out[name] = e
	}
	return out
}

func merged(a, b map[string]Entry) map[string]Entry {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}
