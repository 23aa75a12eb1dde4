package lock

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/imgforge/imgforge/internal/diag"
)

// Parse reads a lock; every bad line is reported with its position.
func Parse(file string, data []byte) (*File, error) { return parse(file, data, false) }

// Mend reads a lock as a merge left it: of a conflict both sides are taken, of
// two epochs, archives or recipe hashes one. What then does not fit together, as
// two versions of one package in a set do not, is for Answer to find and for
// resolving to mend. Where both sides give one file another hash, nothing can
// choose, and that is a problem at its line.
func Mend(file string, data []byte) (*File, error) { return parse(file, data, true) }

func parse(file string, data []byte, mend bool) (*File, error) {
	r := reader{name: file, mend: mend, file: &File{}, seen: map[string]int{}}
	if first, _, _ := bytes.Cut(data, []byte("\n")); strings.TrimRight(string(first), "\r") != header {
		r.bad.Add(diag.Pos{File: file, Line: 1, Col: 1}, "the first line must be `"+header+"`; a lock of another version needs another imgforge; to begin anew, remove the file and run `imgforge lock`", "not an imgforge lock of version 1")
		return nil, r.bad.Err()
	}
	for line := range strings.Lines(string(data)) {
		r.line++
		r.read(strings.TrimRight(line, "\r\n"))
	}
	r.fit()
	r.file.sort()
	return r.file, r.bad.Err()
}

// reader reads a lock line by line.
type reader struct {
	name     string
	mend     bool
	line     int
	ancestor bool // inside the third part of a conflict: what both sides left behind
	file     *File
	at       []int          // line of each entry
	seen     map[string]int // which entry, by identity
	bad      diag.List
}

func (r *reader) read(line string) {
	if mark := conflictMark(line); mark != "" {
		r.ancestor = mark == "|||||||"
		if !r.mend {
			r.add(1, "run `imgforge lock`: it takes both sides and resolves what does not fit", "conflict marker %s of a merge", mark)
		}
		return
	}
	if line == "" || strings.HasPrefix(line, "#") || r.ancestor {
		return
	}
	e, err := parseLine(line)
	if err != nil {
		col := 1
		if at, ok := err.(*fieldError); ok {
			col = columnOf(line, at.field)
		}
		r.add(col, "delete the line and run `imgforge lock`, or take the file from version control", "%s", err)
		return
	}
	i, dup := r.seen[e.id()]
	switch {
	case !dup:
		r.seen[e.id()] = len(r.file.Entries)
		r.at = append(r.at, r.line)
		r.file.Entries = append(r.file.Entries, e)
	case !r.mend:
		r.add(1, "run `imgforge lock`: it keeps one", "%s %s is already on line %d", e.Kind, e.Key, r.at[i])
	default:
		r.choose(i, e)
	}
}

// choose settles which of two entries of one identity stays.
func (r *reader) choose(i int, e Entry) {
	was := &r.file.Entries[i]
	switch {
	case e.Kind == Archive || e.Kind == Epoch:
		if len(e.Value) > len(was.Value) || len(e.Value) == len(was.Value) && e.Value > was.Value {
			*was = e // the later
		}
	case isBlob(e.Kind) && e.Hash != was.Hash:
		r.add(1, "delete one of the two and run `imgforge lock`", "%s %s is on line %d with another hash", e.Kind, e.Key, r.at[i])
	case e.Kind == Requires:
		was.Value = union(was.Value, e.Value)
	case was.Size == 0:
		was.Size = e.Size
	}
}

// fit holds picks to the kind of their set.
func (r *reader) fit() {
	blobs := r.file.Blobs()
	for i, e := range r.file.Entries {
		if e.Kind != Pick {
			continue
		}
		at := diag.Pos{File: r.name, Line: r.at[i], Col: len(Pick) + 2}
		kind, _, _ := strings.Cut(e.Key, "/")
		fits, known := holds[kind]
		if !known {
			r.bad.Add(at, "sets begin with base/, debs/, tools/ or wheels/; delete the line and run `imgforge lock`", "pick of an unknown set %q", e.Key)
			continue
		}
		if blob, ok := blobs[e.Value]; ok && !slices.Contains(fits, blob.Kind) {
			at.Col += len([]rune(e.Key)) + 1
			r.bad.Add(at, "delete the line and run `imgforge lock`", "%s cannot hold the %s %s", e.Key, blob.Kind, e.Value)
		}
	}
}

// holds says what the sets of each kind are made of.
var holds = map[string][]Kind{"base": {Deb, Image, Rootfs}, "debs": {Deb}, "tools": {Wheel}, "wheels": {Wheel}}

func (r *reader) add(col int, help, format string, args ...any) {
	r.bad.Add(diag.Pos{File: r.name, Line: r.line, Col: col}, help, format, args...)
}

// conflictMark is the mark with which git begins a line of a conflict, or "".
func conflictMark(line string) string {
	for _, mark := range []string{"<<<<<<<", "|||||||", "=======", ">>>>>>>"} {
		if line == mark || strings.HasPrefix(line, mark+" ") {
			return mark
		}
	}
	return ""
}

// fieldError is a mistake in one field of a line, counted from 0.
type fieldError struct {
	field int
	what  string
}

func (e *fieldError) Error() string { return e.what }

// in is a mistake in a field.
func in(field int, format string, args ...any) error {
	return &fieldError{field, fmt.Sprintf(format, args...)}
}

// columnOf is where a field of a line begins, in characters from 1.
func columnOf(line string, field int) int {
	col := 1
	for i, f := range strings.Split(line, " ") {
		if i == field {
			break
		}
		col += len([]rune(f)) + 1
	}
	return col
}

func parseLine(line string) (Entry, error) {
	fields := strings.Split(line, " ")
	if len(fields) != 5 {
		return Entry{}, fmt.Errorf("a line has five fields (kind key value size hash), this one has %d", len(fields))
	}
	e := Entry{Kind: Kind(fields[0]), Key: fields[1], Value: blank(fields[2]), Hash: blank(fields[4])}
	if !slices.Contains(kinds, e.Kind) {
		return Entry{}, in(0, "unknown kind %q; kinds are %v", fields[0], kinds)
	}
	if e.Key == "" || e.Key == "-" {
		return Entry{}, in(1, "%s without a key", e.Kind)
	}
	if fields[3] != "-" {
		size, err := strconv.ParseInt(fields[3], 10, 64)
		if err != nil || size < 0 {
			return Entry{}, in(3, "size %q is not a number of bytes", fields[3])
		}
		e.Size = size
	}
	return e, e.check()
}
