package lock

import (
	"slices"
	"strings"
)

// RequiresOf is the line that records what a blob needs; false when that is
// nothing. Names are normalized distributions or Debian packages.
func RequiresOf(blob string, names []string) (Entry, bool) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	return Entry{Kind: Requires, Key: blob, Value: strings.Join(names, ",")}, len(names) > 0
}

// learn adds to what is known of blobs. One wheel may need more in one set than
// in another, where an extra of it is asked for; what it needs without is the
// same wherever it is, so lines only ever grow together.
func (f *File) learn(requires []Entry) {
	known := map[string]string{}
	for _, e := range f.Entries {
		if e.Kind == Requires {
			known[e.Key] = e.Value
		}
	}
	var grown []Entry
	for _, e := range requires {
		if was, ok := known[e.Key]; ok {
			e.Value = union(was, e.Value)
		}
		known[e.Key] = e.Value
		grown = append(grown, e)
	}
	f.Put(grown...)
}

// union joins two lists of names.
func union(a, b string) string {
	e, _ := RequiresOf("", append(strings.Split(a, ","), strings.Split(b, ",")...))
	return e.Value
}

// needsOf lists what each of some packages needs among them, by name.
func (f *File) needsOf(picked []Entry) map[string][]string {
	nameOf, present := map[string]string{}, map[string]bool{}
	for _, e := range picked {
		name, _ := e.Package()
		nameOf[e.Key], present[name] = name, true
	}
	out := map[string][]string{}
	for _, e := range f.Entries {
		name, ok := nameOf[e.Key]
		if e.Kind != Requires || !ok {
			continue
		}
		for child := range strings.SplitSeq(e.Value, ",") {
			if present[child] && child != name {
				out[name] = append(out[name], child)
			}
		}
	}
	return out
}

// lost is a package that one of some files needs and of which the lock has no
// file at all, or "". So lines of packages fail by it that nobody names.
func (f *File) lost(picked []Entry) string {
	have, kinds := f.files(), map[string]Kind{}
	for _, e := range picked {
		kinds[e.Key] = e.Kind
	}
	for _, e := range f.Entries {
		kind, ok := kinds[e.Key]
		if e.Kind != Requires || !ok {
			continue
		}
		for name := range strings.SplitSeq(e.Value, ",") {
			if !have[file{kind, name}] {
				return name + ", which " + e.Key + " needs"
			}
		}
	}
	return ""
}

// file is a package that a lock has a file of.
type file struct {
	kind Kind
	name string
}

func (f *File) files() map[file]bool {
	out := map[file]bool{}
	for _, e := range f.Entries {
		if isBlob(e.Kind) {
			name, _ := e.Package()
			out[file{e.Kind, name}] = true
		}
	}
	return out
}

// prune takes out of requires lines what went with a change, such as what an extra
// brought that nobody asks for now. What was lost before stays, unless the file
// that needs it was just chosen anew: a lock that could not be mended stays broken.
func (f *File) prune(before *File, c Change) {
	had, have, kinds, chosen := before.files(), f.files(), map[string]Kind{}, map[string]bool{}
	for _, e := range f.Entries {
		if isBlob(e.Kind) {
			kinds[e.Key] = e.Kind
		}
	}
	for _, entries := range c.Sets {
		for _, e := range entries {
			chosen[e.Key] = true
		}
	}
	var left []Entry
	for _, e := range f.Entries {
		if e.Kind == Requires {
			names := slices.DeleteFunc(strings.Split(e.Value, ","), func(name string) bool {
				of := file{kinds[e.Key], name}
				return !have[of] && (had[of] || chosen[e.Key])
			})
			var some bool
			if e, some = RequiresOf(e.Key, names); !some {
				continue
			}
		}
		left = append(left, e)
	}
	f.Entries = left
}
