package compat

import (
	"fmt"
	"slices"
	"strings"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/version"
)

// Question asks which builds of torch there are, and which of them a machine runs.
type Question struct {
	Torch, CUDA string // a version or a range (~2.3, ">=12.1"); empty: any
	Python      string // 3.11; empty: any
	Host        Host
}

// Answer is a build and what is known of it on the machine that was asked for.
type Answer struct {
	Build    Torch
	Findings []Judgement
}

// Check tells what of the question no table can answer: a range that is
// malformed, a torch, CUDA or Python that is not known. All problems, each with
// what is known instead.
func (q Question) Check() error {
	var bad diag.List
	_, err := q.torches()
	bad.AddErr(diag.Pos{}, err)
	_, err = q.cudas()
	bad.AddErr(diag.Pos{}, err)
	if q.Python != "" && !slices.Contains(Pythons(), q.Python) {
		bad.Add(diag.Pos{}, "known: "+strings.Join(Pythons(), ", "), "no torch has a wheel for Python %q", q.Python)
	}
	return bad.Err()
}

// Answers lists every build that the question is about, oldest CUDA and then
// oldest torch first. A torch and a CUDA that are known but do not go together
// are one answer, with the reason.
func (q Question) Answers() ([]Answer, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	torches, _ := q.torches()
	cudas, _ := q.cudas()
	var out []Answer
	for _, cuda := range cudas {
		for _, torch := range torches {
			build, err := Lookup(torch, cuda)
			if err != nil && (len(torches) > 1 || len(cudas) > 1) {
				continue
			}
			if err != nil {
				build = Torch{Version: torch, CUDA: cuda}
			}
			out = append(out, Answer{Build: build, Findings: Fit(Subject{CUDA: cuda, Torch: torch, Python: q.Python}, q.Host)})
		}
	}
	return out, nil
}

// torches lists the releases that the question names.
func (q Question) torches() ([]string, error) {
	return choose("torch", q.Torch, "such as 2.3.1, ~2.3 or \">=2.1,<2.5\"", Torches())
}

// cudas lists the CUDA releases that the question names; one that exists but has
// no torch counts as known.
func (q Question) cudas() ([]string, error) {
	all := CUDAs()
	if _, ok := FloorOf(q.CUDA); ok {
		all = []string{q.CUDA}
	}
	return choose("CUDA", q.CUDA, "such as 12.1 or \">=12.1\"", all)
}

// choose lists what of all is in a range.
func choose(what, constraint, form string, all []string) ([]string, error) {
	if constraint == "" {
		return all, nil
	}
	if bare, local, marked := strings.Cut(constraint, "+"); marked {
		return nil, fmt.Errorf("%s %q names a build, not a release: write %s, and the CUDA of %s apart", what, constraint, bare, local)
	}
	var out []string
	for _, v := range all {
		in, err := version.InRange(v, constraint)
		if err != nil {
			return nil, fmt.Errorf("%s %q is neither a version nor a range: write one %s", what, constraint, form)
		}
		if in {
			out = append(out, v)
		}
	}
	if out == nil {
		return nil, fmt.Errorf("no %s is known that is %q; known: %s", what, constraint, strings.Join(all, ", "))
	}
	return out, nil
}

// Experimental is the Python that torch has wheels for and upstream does not
// stand behind; empty when there is none.
func Experimental(torch string) string {
	r, _ := known().release(torch)
	return r.experimental
}
