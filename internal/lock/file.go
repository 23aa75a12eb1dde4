package lock

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// header is the first line; its number changes when old programs must not read on.
const header = "# imgforge lock 1"

// EpochKey is the key of the one epoch entry.
const EpochKey = "source-date-epoch"

// The epoch must be a time that a zip and a gzip header can hold.
const (
	firstEpoch = 315532800 // 1980-01-01
	lastEpoch  = 1<<32 - 1 // 2106-02-07
)

// File is a lock in memory: sorted, each entry once.
type File struct {
	Entries []Entry
}

var kinds = []Kind{Archive, Deb, Epoch, Fact, Image, Pick, Recipe, Requires, Rootfs, Wheel}

var (
	sha256Form = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	treeForm   = regexp.MustCompile(`^h1:[A-Za-z0-9+/]{43}=$`)
	debForm    = regexp.MustCompile(`^[a-z][a-z0-9-]*(/[^/]+)+$`) // no dot: no host
	namesForm  = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]*(,[a-z0-9][a-z0-9+.-]*)*$`)
	wheelForm  = regexp.MustCompile(`^[a-z][a-z0-9-]*(/[a-z0-9]+)?:[A-Za-z0-9]([A-Za-z0-9._-]*)==[^/]+$`) // likewise
	mediaForm  = regexp.MustCompile(`^application/vnd\.[a-z0-9.+-]+$`)
	nameForm   = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)
)

// check holds an entry to its kind.
func (e Entry) check() error {
	if strings.Contains(e.Key+" "+e.Value, "://") {
		return in(e.field("://"), "%s %s names a host; locks hold none", e.Kind, e.Key)
	}
	if strings.ContainsFunc(e.Key+e.Value, unicode.IsSpace) {
		return in(1, "%s %q holds white space", e.Kind, e.Key)
	}
	switch e.Kind {
	case Deb, Wheel, Image, Rootfs:
		return e.checkBlob()
	case Fact:
		if err := checkFact(e.Value); err != nil {
			return in(2, "%s", err)
		}
		if e.Hash != "" {
			return in(4, "fact %s has no hash", e.Key)
		}
	case Archive:
		if _, err := time.Parse(time.RFC3339, e.Value); err != nil || !sha256Form.MatchString(e.Hash) {
			return in(2, "archive %s must be `archive SUITE DATE - sha256:<64 hex digits>`, the date as 2006-01-02T15:04:05Z", e.Key)
		}
	case Recipe:
		if !treeForm.MatchString(e.Hash) || e.Value != "" {
			return in(2, "recipe %s must be `recipe NAME - - h1:<base64>`, not %q", e.Key, e.Hash)
		}
	case Requires:
		if !namesForm.MatchString(e.Value) || e.Hash != "" {
			return in(2, "requires %s must be `requires BLOB NAME,NAME... - -`", e.Key)
		}
	case Pick:
		if e.Value == "" && !strings.HasPrefix(e.Key, "debs/") || e.Hash != "" { // a base may have all that is asked
			return in(2, "pick %s must be `pick SET BLOB - -`", e.Key)
		}
	case Epoch:
		if s, err := strconv.ParseInt(e.Value, 10, 64); err != nil || e.Key != EpochKey || e.Hash != "" {
			return in(1, "epoch must be `epoch %s SECONDS - -`", EpochKey)
		} else if s < firstEpoch || s > lastEpoch {
			return in(2, "epoch %s is out of range: from %d (1980) to %d (2106), the years that wheels and gzip can write", e.Value, firstEpoch, lastEpoch)
		}
	}
	if e.Size != 0 {
		return in(3, "%s %s has no size", e.Kind, e.Key)
	}
	return nil
}

// field is the number of the field that holds text.
func (e Entry) field(text string) int {
	if strings.Contains(e.Key, text) {
		return 1
	}
	return 2
}

func (e Entry) checkBlob() error {
	if !sha256Form.MatchString(e.Hash) {
		return in(4, "%s %s needs a hash of the form sha256:<64 hex digits>, not %q", e.Kind, e.Key, e.Hash)
	}
	if strings.ContainsAny(e.Key, "/\\") {
		return in(1, "%s %q holds a separator", e.Kind, e.Key)
	}
	form, help := debForm, "archive/path"
	switch e.Kind {
	case Wheel:
		form, help = wheelForm, "index:name==version"
	case Image:
		form, help = mediaForm, "media type"
	case Rootfs:
		form, help = nameForm, "name of a base"
	}
	if !form.MatchString(e.Value) || path.Clean(e.Value) != e.Value {
		return in(2, "%s %s needs an origin of the form %s, without a host, not %q", e.Kind, e.Key, help, e.Value)
	}
	return nil
}

// Format writes the lock as it stands on disk.
func (f *File) Format() []byte {
	f.sort()
	var b bytes.Buffer
	b.WriteString(header + "\n")
	for _, e := range f.Entries {
		size := "-"
		if e.Size > 0 {
			size = strconv.FormatInt(e.Size, 10)
		}
		fmt.Fprintf(&b, "%s %s %s %s %s\n", e.Kind, e.Key, dash(e.Value), size, dash(e.Hash))
	}
	return b.Bytes()
}

// Digest identifies the lock's content: "sha256:...".
func (f *File) Digest() string {
	sum := sha256.Sum256(f.Format())
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Epoch is SOURCE_DATE_EPOCH in seconds; zero when the lock has none.
func (f *File) Epoch() int64 {
	for _, e := range f.Entries {
		if e.Kind == Epoch {
			s, _ := strconv.ParseInt(e.Value, 10, 64)
			return s
		}
	}
	return 0
}

// Picked returns the blobs that answer a set, in the lock's order, and false
// when the lock has no answer. A pick of "-" answers with nothing. A pick without its blob is an error.
func (f *File) Picked(set string) ([]Entry, bool, error) {
	blobs := f.Blobs()
	var out []Entry
	answered := false
	for _, e := range f.Entries {
		if e.Kind != Pick || e.Key != set {
			continue
		}
		answered = true
		if e.Value == "" {
			continue
		}
		blob, ok := blobs[e.Value]
		if !ok {
			return nil, true, fmt.Errorf("the lock picks %s for %s but has no line for it", e.Value, set)
		}
		out = append(out, blob)
	}
	return out, answered, nil
}

// RecipeHash returns the locked hash of a recipe's tree, or "".
func (f *File) RecipeHash(name string) string {
	for _, e := range f.Entries {
		if e.Kind == Recipe && e.Key == name {
			return e.Hash
		}
	}
	return ""
}

// Put adds entries, replacing those of the same identity.
func (f *File) Put(entries ...Entry) {
	at := map[string]int{}
	for i, e := range f.Entries {
		at[e.id()] = i
	}
	for _, e := range entries {
		if i, ok := at[e.id()]; ok {
			f.Entries[i] = e
			continue
		}
		at[e.id()] = len(f.Entries)
		f.Entries = append(f.Entries, e)
	}
	f.sort()
}

// Keep drops the picks of every set not wanted, the blobs no pick names, and
// the recipes not listed.
func (f *File) Keep(sets, recipes map[string]bool) {
	named := map[string]bool{}
	for _, e := range f.Entries {
		if e.Kind == Pick && sets[e.Key] {
			named[e.Value] = true
		}
	}
	f.Entries = slices.DeleteFunc(f.Entries, func(e Entry) bool {
		switch e.Kind {
		case Pick, Fact:
			return !sets[e.Key]
		case Deb, Wheel, Image, Rootfs, Requires:
			return !named[e.Key]
		case Recipe:
			return !recipes[e.Key]
		}
		return false
	})
}

// Drop removes a set's picks and facts; blobs stay until Keep.
func (f *File) Drop(set string) {
	f.Entries = slices.DeleteFunc(f.Entries, func(e Entry) bool { return (e.Kind == Pick || e.Kind == Fact) && e.Key == set })
}

func (f *File) sort() {
	slices.SortFunc(f.Entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value))
	})
}

// id is what may stand once. A set has many picks, so its values count.
func (e Entry) id() string {
	if e.Kind == Pick || e.Kind == Fact {
		return string(e.Kind) + " " + e.Key + " " + e.Value
	}
	return string(e.Kind) + " " + e.Key
}

func blank(s string) string {
	if s == "-" {
		return ""
	}
	return s
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Blobs returns the entries that are files, by key.
func (f *File) Blobs() map[string]Entry {
	out := map[string]Entry{}
	for _, e := range f.Entries {
		if isBlob(e.Kind) {
			out[e.Key] = e
		}
	}
	return out
}

func isBlob(k Kind) bool { return k == Deb || k == Wheel || k == Image || k == Rootfs }
