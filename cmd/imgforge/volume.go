package main

import (
	"path/filepath"

	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/report"
	"github.com/imgforge/imgforge/internal/store"
)

// volume is how much some files are, each counted once, and how much of that the
// store has already. Sizes are bytes.
type volume struct {
	Files    int   `json:"files"`
	Bytes    int64 `json:"bytes"`
	Stored   int64 `json:"stored"`
	Download int64 `json:"download"`
	Unsized  int   `json:"unsized"` // files to download whose size the lock does not know
}

func (v *volume) add(b plan.Blob, stored bool) {
	v.Files++
	v.Bytes += b.Size
	switch {
	case stored:
		v.Stored += b.Size
	case b.Size == 0:
		v.Unsized++
	default:
		v.Download += b.Size
	}
}

// download is what is to come, for people.
func (v volume) download() string {
	text := report.Bytes(v.Download)
	if v.Unsized > 0 {
		return "over " + text
	}
	return text
}

// stored tells of a file whether this machine's store has it. Nothing is made
// where there is no store yet, nor asked where none could be.
func (a *app) stored() func(plan.Blob) bool {
	dir, err := a.stateDir()
	if err != nil {
		return func(plan.Blob) bool { return false }
	}
	s := store.Look(filepath.Join(dir, "store"))
	return func(b plan.Blob) bool { return s.Has(b.SHA256) }
}
