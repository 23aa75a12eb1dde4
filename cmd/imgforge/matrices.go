package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/matrix"
	"github.com/imgforge/imgforge/internal/store"
)

// loadAll is load for every --matrix, each with the lock beside it. The problems
// of all are reported together; a tag may stand in one of them only. Matrices of
// which --only selects no cell are left out.
func (f *inputFlags) loadAll(env store.Environment) ([]*inputs, error) {
	if len(f.matrices) < 2 {
		in, err := f.load(env)
		return []*inputs{in}, err
	}
	if f.lock != "" {
		return nil, fmt.Errorf("--lock goes with one --matrix; of several, each has its lock beside it")
	}
	var all []*inputs
	var bad diag.List
	for _, name := range f.matrices {
		one := *f
		one.matrix, one.only = name, nil
		in, err := one.load(env)
		if err != nil {
			bad.AddErr(diag.Pos{}, err)
			continue
		}
		all = append(all, in)
	}
	checkApart(all, &bad)
	if err := bad.Err(); err != nil {
		return nil, err
	}
	return f.chooseAll(all)
}

// checkApart refuses two matrices that share a lock or a tag.
func checkApart(all []*inputs, bad *diag.List) {
	locks := map[string]*inputs{}
	tags := map[string]*inputs{}
	for _, in := range all {
		path := filepath.Clean(in.lockPath)
		if other := locks[path]; other != nil {
			bad.Add(diag.Pos{File: in.matrix.File}, "give each matrix once, under a name of its own", "matrices %s and %s have one lock, %s", other.matrix.File, in.matrix.File, path)
			continue
		}
		locks[path] = in
		first, shared := "", 0
		var with *inputs
		for _, c := range in.all {
			if other := tags[c.Tag]; other != nil {
				if shared++; shared == 1 {
					first, with = c.Tag, other
				}
				continue
			}
			tags[c.Tag] = in
		}
		if shared > 0 {
			more := ""
			if shared > 1 {
				more = fmt.Sprintf(" and %d more", shared-1)
			}
			bad.Add(in.matrix.Tag.Pos, "put what they differ in into one of the templates", "another matrix has the tag %q too%s (%s)",
				first, more, with.matrix.Tag.Pos)
		}
	}
}

// chooseAll keeps what --only selects of any matrix.
func (f *inputFlags) chooseAll(all []*inputs) ([]*inputs, error) {
	if len(f.only) == 0 {
		return all, nil
	}
	var cells []matrix.Cell
	for _, in := range all {
		cells = append(cells, in.all...)
	}
	chosen, err := f.choose(cells)
	if err != nil {
		return nil, err
	}
	selected := map[string]bool{}
	for _, c := range chosen {
		selected[c.Tag] = true
	}
	var out []*inputs
	for _, in := range all {
		in.cells = nil
		for _, c := range in.all {
			if selected[c.Tag] {
				in.cells = append(in.cells, c)
			}
		}
		if len(in.cells) > 0 {
			out = append(out, in)
		}
	}
	return out, nil
}

// single is the one matrix of a command that takes no more.
func (f *inputFlags) single() error {
	if f.matrix == "" && len(f.matrices) != 1 {
		return fmt.Errorf("this takes one --matrix, not %d: %s", len(f.matrices), strings.Join(f.matrices, " "))
	}
	if f.matrix == "" {
		f.matrix = f.matrices[0]
	}
	return nil
}

// joinExits makes one error of what the matrices ended with, with the worst exit
// code of theirs.
func joinExits(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	var bad diag.List
	code := exitDone
	for _, err := range errs {
		code = max(code, codeOf(err))
		if err != nil && err.Error() != "" {
			bad.AddErr(diag.Pos{}, err)
		}
	}
	if code == exitDone {
		return nil
	}
	return &exitError{code, bad.Err()}
}
