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
