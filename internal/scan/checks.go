package scan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/imgforge/imgforge/internal/check"
)

// findings are what one check found wrong.
type findings struct {
	tree     *Tree
	allow    []string // paths that are excused
	problems []check.Problem
	more     int
	facts    map[string]any
	summary  string // of a pass
}

// listed is how many problems are told one by one.
const listed = 20

func (f *findings) add(do, format string, args ...any) {
	if len(f.problems) == listed {
		f.more++
		return
	}
	p := check.Problem{Problem: fmt.Sprintf(format, args...)}
	if do != "" {
		p.Do = []string{do}
	}
	f.problems = append(f.problems, p)
}

// excused tells whether a path, or a directory above it, may be as it is.
func (f *findings) excused(p string) bool {
	return slices.ContainsFunc(f.allow, func(a string) bool {
		a = strings.Trim(a, "/")
		return a != "" && (p == a || strings.HasPrefix(p, a+"/"))
	})
}

// table is the static checks by name.
var table = map[string]func(*findings){
	"two-cuda": twoCUDA, "cuda-compat": cudaCompat, "one-opencv": oneOpenCV, "writable": writable, "setuid": setuid,
	"leftovers": leftovers, "stale-pyc": stalePyc, "record": records,
}

// Check runs a static built-in on the tree.
func (t *Tree) Check(c check.Check) (check.Result, error) {
	do, ok := table[c.Use]
	if !ok {
		return check.Result{}, fmt.Errorf("%s is no static check", c.Use)
	}
	f := &findings{tree: t, allow: strings.Split(c.With["allow"], ","), facts: map[string]any{}}
	if len(t.order) == 0 && len(t.secrets) == 0 {
		f.add("", "the image has no files")
	} else {
		do(f)
	}
	out := check.Result{OK: len(f.problems) == 0, Summary: f.summary, Problems: f.problems, Facts: f.facts}
	if out.OK {
		return out, nil
	}
	out.Summary = f.problems[0].Problem
	if n := len(f.problems) - 1 + f.more; n > 0 {
		out.Summary += fmt.Sprintf(" (and %d more)", n)
	}
	if f.more > 0 {
		out.Problems = append(out.Problems, check.Problem{Problem: fmt.Sprintf("and %d more", f.more)})
	}
	return out, nil
}

// at says where a file is and which layer brought it.
func at(f *file) string { return fmt.Sprintf("/%s (layer %d)", f.path, f.layer) }
