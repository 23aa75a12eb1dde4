package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/report"
	"github.com/imgforge/imgforge/internal/resolve"
)

// lockReport is what a run of `imgforge lock` did.
type lockReport struct {
	Lock     string       `json:"lock"`
	Written  bool         `json:"written"`
	Moved    []lock.Move  `json:"moved"`
	Resolved int          `json:"resolved"` // sets
	Failed   []lockFailed `json:"failed"`
	Added    int          `json:"added"` // files
	Gone     int          `json:"gone"`
	volume
}

type lockFailed struct {
	Set    string   `json:"set"`
	Cells  []string `json:"cells"`
	Reason string   `json:"reason"`
}

// showLocked says what moved and how much there is to download.
func (a *app) showLocked(f *lockFlags, in *inputs, next *lock.File, q *question, result *resolve.Result) error {
	r := lockReport{Lock: in.lockPath, Written: !f.dryRun, Moved: lock.Diff(in.lock, next, q.all), Resolved: len(result.Answers), Failed: []lockFailed{}}
	for _, fail := range result.Failures {
		r.Failed = append(r.Failed, lockFailed{fail.Need.Set, fail.Need.Cells, fail.Err.Error()})
	}
	old, now, has := in.lock.Blobs(), next.Blobs(), a.stored()
	for key, e := range now {
		r.add(plan.Blob{SHA256: strings.TrimPrefix(e.Hash, "sha256:"), Size: e.Size}, has(plan.Blob{SHA256: strings.TrimPrefix(e.Hash, "sha256:")}))
		if was, ok := old[key]; !ok || was.Hash != e.Hash {
			r.Added++
		}
	}
	for key := range old {
		if _, ok := now[key]; !ok {
			r.Gone++
		}
	}
	if f.json {
		return writeJSON(a.stdout, r)
	}
	if len(old) == 0 {
		r.Moved = nil // a new lock is its own list
	}
	return a.printLocked(r, q)
}

func (a *app) printLocked(r lockReport, q *question) error {
	t := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, m := range r.Moved {
		fmt.Fprintln(t, moveLine(m, len(q.cells())))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "%s: %d files (%s), %d new, %d gone; %d sets resolved, %d failed\n",
		r.Lock, r.Files, report.Bytes(r.Bytes), r.Added, r.Gone, r.Resolved, len(r.Failed))
	fmt.Fprintf(a.stdout, "to download: %s; %s is in the store\n", r.download(), report.Bytes(r.Stored))
	if q.upgrade && len(r.Moved) == 0 && len(r.Failed) == 0 {
		fmt.Fprintln(a.stdout, "nothing moved: what is locked is what would be chosen today")
	}
	if !r.Written {
		fmt.Fprintln(a.stdout, "nothing is written: --dry-run")
	}
	return nil
}

// moveLine is one package of a diff: its sign as in a diff of text, versions,
// where, and the size of the new file.
func moveLine(m lock.Move, cells int) string {
	sign, versions := "~", m.Old+" -> "+m.New
	switch {
	case m.Old == "":
		sign, versions = "+", m.New
	case m.New == "":
		sign, versions = "-", m.Old
	case m.Rebuilt:
		versions = m.New + " (another file)"
	}
	size := ""
	if m.Size > 0 {
		size = report.Bytes(m.Size)
	}
	return fmt.Sprintf("%s %s\t%s\t%s\t%s\t%s", sign, m.Package, versions, m.Kind, someCells(m.Cells, cells), size)
}

// someCells names few cells and counts many.
func someCells(tags []string, all int) string {
	switch {
	case len(tags) == all && all > 1:
		return fmt.Sprintf("all %d cells", all)
	case len(tags) <= 2:
		return strings.Join(tags, " ")
	}
	return fmt.Sprintf("%d cells", len(tags))
}

// cells are the tags of all cells the needs are for.
func (q *question) cells() map[string]bool {
	out := map[string]bool{}
	for _, n := range q.all {
		for _, tag := range n.Cells {
			out[tag] = true
		}
	}
	return out
}
