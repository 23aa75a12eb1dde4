// Package diag holds positions in files that a person wrote, problems that have
// one, lists of them, and how to print one beside the line it is about.
package diag

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Pos is a place in a file. Line and Col count from 1; a zero Line means the
// file as a whole, and the zero Pos means no place at all.
type Pos struct {
	File string
	Line int
	Col  int
}

// String prints file:line:col, leaving out what is not known.
func (p Pos) String() string {
	switch {
	case p.File == "" && p.Line == 0:
		return ""
	case p.Line == 0:
		return p.File
	case p.Col == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// Str is a string that remembers where it was written.
type Str struct {
	Pos   Pos
	Value string
}

// String returns the bare value.
func (s Str) String() string { return s.Value }

// Problem is one mistake: what is wrong, where, and what to do about it.
type Problem struct {
	Pos  Pos
	What string // what is wrong, naming the value
	Help string // what is allowed or what to do; may be empty
}

// Error prints "file:line:col: what; help".
func (p *Problem) Error() string {
	var b strings.Builder
	if at := p.Pos.String(); at != "" {
		b.WriteString(at + ": ")
	}
	b.WriteString(p.What)
	if p.Help != "" {
		b.WriteString("; " + p.Help)
	}
	return b.String()
}

// List gathers problems so that one run reports them all.
type List []*Problem

// Add appends a problem at pos. Help may be empty.
func (l *List) Add(pos Pos, help, format string, args ...any) {
	*l = append(*l, &Problem{Pos: pos, What: fmt.Sprintf(format, args...), Help: help})
}

// AddErr appends err: its problems when it holds any, else its text at pos.
func (l *List) AddErr(pos Pos, err error) {
	if err == nil {
		return
	}
	var list List
	var one *Problem
	switch {
	case errors.As(err, &list):
		*l = append(*l, list...)
	case errors.As(err, &one):
		*l = append(*l, one)
	default:
		l.Add(pos, "", "%s", err)
	}
}

// Sorted returns the problems in reading order, without repeats.
func (l List) Sorted() List {
	out := slices.Clone(l)
	slices.SortStableFunc(out, func(a, b *Problem) int {
		return cmp.Or(cmp.Compare(a.Pos.File, b.Pos.File), cmp.Compare(a.Pos.Line, b.Pos.Line),
			cmp.Compare(a.Pos.Col, b.Pos.Col), cmp.Compare(a.What, b.What), cmp.Compare(a.Help, b.Help))
	})
	return slices.CompactFunc(out, func(a, b *Problem) bool { return *a == *b })
}

// Err returns the sorted list as an error, or nil when it is empty.
func (l List) Err() error {
	if len(l) == 0 {
		return nil
	}
	return l.Sorted()
}

// Error prints one problem a line.
func (l List) Error() string {
	lines := make([]string, len(l))
	for i, p := range l {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Print writes err for a person: each problem, and under it the line it is
// about with a caret. read returns a file's content; where it cannot, the
// excerpt is left out.
func Print(w io.Writer, err error, read func(file string) ([]byte, error)) {
	var list List
	var one *Problem
	switch {
	case errors.As(err, &list):
	case errors.As(err, &one):
		list = List{one}
	default:
		fmt.Fprintln(w, err)
		return
	}
	for _, p := range list {
		fmt.Fprintln(w, p.Error())
		if read != nil {
			excerpt(w, p.Pos, read)
		}
	}
}

func excerpt(w io.Writer, pos Pos, read func(string) ([]byte, error)) {
	if pos.Line == 0 {
		return
	}
	data, err := read(pos.File)
	if err != nil {
		return
	}
	lines := strings.Split(string(data), "\n")
	if pos.Line > len(lines) {
		return
	}
	line := strings.TrimRight(strings.ReplaceAll(lines[pos.Line-1], "\t", " "), "\r")
	fmt.Fprintf(w, "%5d | %s\n", pos.Line, line)
	if pos.Col > 0 && pos.Col <= utf8.RuneCountInString(line)+1 { // columns count characters
		fmt.Fprintf(w, "      | %s^\n", strings.Repeat(" ", pos.Col-1))
	}
}

// Nearest returns the candidate closest to got in spelling, or "" when none is
// close enough to be a likely typo.
func Nearest(got string, candidates []string) string {
	best, bestDist := "", min(max(2, len(got)/3)+1, len(got)) // never all letters
	for _, c := range candidates {
		if d := distance(got, c); d < bestDist {
			best, bestDist = c, d
		}
	}
	return best
}

// Allowed is the help for a word that is not among names: the one it was likely
// meant to be, and all that are allowed.
func Allowed(got string, names []string) string {
	help := "allowed: " + strings.Join(names, ", ")
	if near := Nearest(got, names); near != "" {
		return fmt.Sprintf("did you mean %q? %s", near, help)
	}
	return help
}

// distance is the Levenshtein distance between a and b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		prev := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			prev, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, prev+cost)
		}
	}
	return row[len(b)]
}
