package lock

import (
	"fmt"
	"maps"
	"slices"
)

// Compare holds the lock against what is needed, as two sets: what is missing
// (with the place it was asked for) and what nothing asks for any more.
func (f *File) Compare(needs []Need, recipes map[string]string) (missing, surplus []string) {
	sets := map[string]bool{}
	for _, n := range needs {
		sets[n.Set] = true
		if _, ok, err := f.Answer(n.Set, n.Request); !ok {
			missing = append(missing, fmt.Sprintf("%s: %s, needed by %s", n.Pos, n.Set, n.Cells[0]))
		} else if err != nil {
			missing = append(missing, fmt.Sprintf("%s: %s", n.Pos, err))
		}
	}
	if f.Epoch() == 0 {
		missing = append(missing, EpochKey)
	}
	for _, name := range slices.Sorted(maps.Keys(recipes)) {
		switch f.RecipeHash(name) {
		case recipes[name]:
		case "":
			missing = append(missing, "recipe "+name)
		default:
			missing = append(missing, "recipe "+name+", which has changed since it was locked")
		}
	}
	kept := &File{Entries: slices.Clone(f.Entries)}
	kept.Keep(sets, keysOf(recipes))
	still := map[Entry]bool{}
	for _, e := range kept.Entries {
		still[e] = true
	}
	for _, e := range f.Entries {
		if !still[e] {
			surplus = append(surplus, fmt.Sprintf("%s %s %s", e.Kind, e.Key, e.Value))
		}
	}
	return missing, surplus
}

// Change is what resolving brought.
type Change struct {
	Archives []Entry
	Sets     map[string][]Entry // blobs and facts that answer a set; replaces an earlier answer
	Requires []Entry            // what blobs need; added to what is known of them
	Unsolved []string           // sets that must be asked again: their earlier answer no longer fits
	Epoch    string             // seconds; it and the archives are taken in with new .debs, or when the lock has none
}

// brings tells whether any answer has a .deb that the lock has not.
func (c Change) brings(f *File) bool {
	old := f.Blobs()
	for _, entries := range c.Sets {
		if slices.ContainsFunc(entries, func(e Entry) bool { return e.Kind == Deb && old[e.Key].Hash != e.Hash }) {
			return true
		}
	}
	return false
}

// With returns a copy of the lock with the change taken in. Answers of sets
// outside the change stay.
func (f *File) With(c Change) *File {
	next := &File{Entries: slices.Clone(f.Entries)}
	for _, set := range c.Unsolved {
		next.Drop(set)
	}
	var answers []Entry
	for _, set := range slices.Sorted(maps.Keys(c.Sets)) {
		next.Drop(set)
		if len(c.Sets[set]) == 0 {
			next.Put(Entry{Kind: Pick, Key: set}) // answered, with nothing to add
		}
		for _, e := range c.Sets[set] {
			if answers = append(answers, e); e.Kind != Fact {
				answers = append(answers, Entry{Kind: Pick, Key: set, Value: e.Key})
			}
		}
	}
	next.Put(answers...)
	next.learn(c.Requires)
	// They date the .debs: byte code goes stale where a file is younger than the epoch.
	if c.Epoch != "" && (c.brings(f) || next.Epoch() == 0) {
		next.Put(append(slices.Clone(c.Archives), Entry{Kind: Epoch, Key: EpochKey, Value: c.Epoch})...)
	}
	return next
}

// Updated is With, and drops everything that no need asks for.
func (f *File) Updated(needs []Need, recipes map[string]string, c Change) *File {
	next := f.With(c)
	for name, hash := range recipes {
		next.Put(Entry{Kind: Recipe, Key: name, Hash: hash})
	}
	sets := map[string]bool{}
	for _, n := range needs {
		sets[n.Set] = true
	}
	next.Keep(sets, keysOf(recipes))
	next.prune(f, c)
	return next
}

func keysOf(m map[string]string) map[string]bool {
	out := map[string]bool{}
	for k := range m {
		out[k] = true
	}
	return out
}
