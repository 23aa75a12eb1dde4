package compat

import (
	"embed"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/version"
)

//go:embed data/*.csv
var files embed.FS

// dir is where the tables are in the source, for errors that say what to extend.
const dir = "internal/compat/"

// tables is every table, parsed.
type tables struct {
	floors        []Floor
	updates       []toolkit
	images        []BaseImage
	branches      []Branch
	releases      []release
	builds        []build
	archs         []arch
	gpus          []GPU
	limits        []limit
	rules         []rule
	conflicts     []clash
	wheels        []Wheel
	requires      []requires
	distributions []Distribution
}

// load parses the tables once. The tables are never nil: with an error, the
// faulty rows are missing.
var load = sync.OnceValues(parse)

// known is the tables, for answers that have no error to give; a test holds
// every embedded row to being well formed.
func known() *tables {
	t, _ := load()
	return t
}

func parse() (*tables, error) {
	var bad diag.List
	t := &tables{
		floors:        rows(&bad, "data/floors.csv", (*row).floor),
		updates:       rows(&bad, "data/updates.csv", (*row).toolkit),
		images:        rows(&bad, "data/images.csv", (*row).baseImage),
		branches:      rows(&bad, "data/branches.csv", (*row).branch),
		releases:      rows(&bad, "data/releases.csv", (*row).release),
		builds:        rows(&bad, "data/builds.csv", (*row).build),
		archs:         rows(&bad, "data/archs.csv", (*row).arch),
		gpus:          rows(&bad, "data/gpus.csv", (*row).gpu),
		limits:        rows(&bad, "data/limits.csv", (*row).limit),
		rules:         rows(&bad, "data/rules.csv", (*row).rule),
		conflicts:     rows(&bad, "data/conflicts.csv", (*row).clash),
		wheels:        rows(&bad, "data/wheels.csv", (*row).wheel),
		requires:      rows(&bad, "data/requires.csv", (*row).requires),
		distributions: rows(&bad, "data/distributions.csv", (*row).distribution),
	}
	slices.SortStableFunc(t.releases, func(a, b release) int { return compareReleases(a.torch, b.torch) })
	return t, bad.Err()
}

// row is one line of a table, read field by field; what is wrong in it is added
// to bad with its position.
type row struct {
	pos    diag.Pos
	fields map[string]string
	bad    *diag.List
}

// rows parses the table in file, a row at a time.
func rows[T any](bad *diag.List, file string, parse func(*row) T) []T {
	data, err := files.ReadFile(file)
	if err != nil {
		bad.Add(diag.Pos{File: dir + file}, "", "%v", err)
		return nil
	}
	return parseRows(bad, dir+file, string(data), parse)
}

func parseRows[T any](bad *diag.List, file, text string, parse func(*row) T) []T {
	r := csv.NewReader(strings.NewReader(text))
	r.Comment = '#'
	header, err := r.Read()
	if err != nil {
		bad.Add(diag.Pos{File: file}, "a table begins with the names of its columns", "%v", err)
		return nil
	}
	var out []T
	for {
		fields, err := r.Read()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			bad.Add(diag.Pos{File: file}, "", "%v", err)
			return out
		}
		line, _ := r.FieldPos(0)
		this := row{pos: diag.Pos{File: file, Line: line}, fields: map[string]string{}, bad: bad}
		for i, name := range header {
			this.fields[name] = fields[i]
		}
		before := len(*bad)
		if parsed := parse(&this); len(*bad) == before {
			out = append(out, parsed)
		}
	}
}

// opt is a field that may be empty.
func (r *row) opt(column string) string {
	s, ok := r.fields[column]
	if !ok {
		r.bad.Add(r.pos, "", "the table has no column %q", column)
	}
	return s
}

// get is a field that may not be empty.
func (r *row) get(column string) string {
	s := r.opt(column)
	if s == "" {
		r.bad.Add(r.pos, "", "column %q is empty", column)
	}
	return s
}

// list is a field of values separated by "|".
func (r *row) list(column string) []string {
	return strings.Split(r.get(column), "|")
}

// cuda is a CUDA version; empty is allowed and means any.
func (r *row) cuda(column string) string {
	s := r.opt(column)
	if s != "" {
		_, err := version.ParseCUDA(s)
		r.bad.AddErr(r.pos, err)
	}
	return s
}

// updateOf is an update of a CUDA version: 12.1.1.
func (r *row) updateOf(column string) string {
	s := r.get(column)
	cuda, update, _ := cutLast(s, ".")
	_, err := version.ParseCUDA(cuda)
	r.bad.AddErr(r.pos, err)
	if _, err := strconv.Atoi(update); err != nil {
		r.bad.Add(r.pos, "write major.minor.update", "%q is not an update of a CUDA", s)
	}
	return s
}

// cutLast is strings.Cut around the last sep.
func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// driver is a driver version; empty is allowed and means unknown, or any.
func (r *row) driver(column string) string {
	s := r.opt(column)
	if s != "" {
		_, err := version.ParseDriver(s)
		r.bad.AddErr(r.pos, err)
	}
	return s
}

// torches is a range of torch releases; empty is allowed and means any.
func (r *row) torches(column string) string {
	s := r.opt(column)
	if s != "" {
		_, err := version.InRange("2.0.0", s)
		r.bad.AddErr(r.pos, err)
	}
	return s
}

// oneOf is a field that holds one of the values allowed.
func (r *row) oneOf(column string, allowed ...string) string {
	s := r.opt(column)
	if !slices.Contains(allowed, s) {
		r.bad.Add(r.pos, "allowed: "+strings.Join(allowed, ", "), "column %q holds %q", column, s)
	}
	return s
}

// inRanges keeps which known releases are in which ranges of the tables: ranges
// are slow to read and there are few.
var inRanges sync.Map

// applies tells whether torch is in a range of a table; an empty range holds
// for every torch, and no range for a torch that is not a version.
func applies(torch, constraint string) bool {
	if constraint == "" {
		return true
	}
	key := [2]string{torch, constraint}
	if in, ok := inRanges.Load(key); ok {
		return in.(bool)
	}
	in, err := version.InRange(torch, constraint)
	in = in && err == nil
	if _, released := known().release(torch); released {
		inRanges.Store(key, in)
	}
	return in
}

// same tells whether a field of a table, empty for any, speaks of value.
func same(field, value string) bool { return field == "" || field == value }
