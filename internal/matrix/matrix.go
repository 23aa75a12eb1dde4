// Package matrix turns matrix YAML into cells, and refuses impossible ones with
// the reason. Every scalar keeps its position; every problem is reported in one run.
package matrix

import (
	"github.com/imgforge/imgforge/internal/check"
	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/lock"
)

// Matrix is a parsed matrix file, before expansion.
type Matrix struct {
	File     string
	Name     diag.Str
	Platform diag.Str        // of every cell, unless platform is an axis: linux/amd64
	Bases    map[string]Base // by the name that the base axis uses
	Axes     []Axis          // in the file's order
	Include  []Rule
	Exclude  []Rule
	Defaults map[string]diag.Str // by axis
	Recipes  []RecipeUse
	Skip     bool       // holes: skip: drop a cell that cannot work, with its reason
	Tag      diag.Str   // template, such as ${torch}-cuda${cuda}
	Mirrors  []diag.Str // build mirror profiles, best first
	Smoke    Smoke
}

// Smoke is how images are tested before they may be promoted.
type Smoke struct {
	GPU    string // what becomes of checks that need a GPU: one of Policies
	Checks []check.Check
}

// Policies are what a matrix may say of checks that need a GPU: run them where there
// is one, fail without one, or leave them out. What was left out is not promoted.
var Policies = []string{"auto", "require", "skip"}

// Base is a one-of: exactly one of Debian, Rootfs and Image is set.
type Base struct {
	Pos    diag.Pos
	Debian *Debian
	Rootfs *Rootfs
	Image  *Image
	Facts  *lock.Facts // what locking found in a rootfs or image; nil before
}

// Rootfs is a base that is a tarball of a root file system.
type Rootfs struct {
	URL        diag.Str   // http(s), or a path; relative to the matrix file
	SHA256     diag.Str   // of the tarball, in hex
	Components []diag.Str // of its distribution's archive; empty: the usual ones
}

// Image is a base that is an image of a registry, locked to a digest.
type Image struct {
	Ref        diag.Str // canonical: docker.io/library/debian:12
	Components []diag.Str
}

// Debian is a base bootstrapped from locked .debs alone.
type Debian struct {
	Suite      diag.Str
	Components []diag.Str
}

// Axis is one dimension. Values hold for every cell, or only for cells in which
// another axis has the value When.Value.
type Axis struct {
	Name   diag.Str
	Groups []Group
}

// Group is values of an axis and the condition under which they apply.
type Group struct {
	WhenAxis  string // empty: always
	WhenValue string // a value, or a range of them
	Pos       diag.Pos
	Values    []diag.Str
}

// Rule is an include or exclude entry.
type Rule struct {
	Pos    diag.Pos
	Values map[string]diag.Str // by axis; exclude may have ranges
	Why    diag.Str
}

// RecipeUse is a recipe in the list, for the cells that match When.
type RecipeUse struct {
	Name diag.Str
	When map[string]diag.Str // by axis, a value or a range; empty: every cell
}

// Cell is one image to make.
type Cell struct {
	Tag      string
	CUDA     string // 12.1
	Torch    string // 2.4.1
	Python   string // 3.11
	Driver   string // the floor, bare: 525.60.13
	BaseName string
	Base     Base
	Platform string            // linux/amd64
	Free     map[string]string // free axes
	Recipes  []diag.Str        // in the order they are layered
	Pos      diag.Pos          // what in the file asked for it
	Warnings []string          // judgements that do not refuse it
}

// Expansion is what a matrix comes to.
type Expansion struct {
	Cells []Cell
	Holes []Hole // in the order their cells would have had
}

// Hole is a cell that cannot work and was dropped, as `holes: skip` allows.
type Hole struct {
	Cell    string   `json:"cell"` // its values: cuda=12.1,torch=2.6.0,...
	Reasons []string `json:"reasons"`
	Pos     diag.Pos `json:"-"` // the value at fault
}
