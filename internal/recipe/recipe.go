// Package recipe turns recipe YAML into typed steps: the .debs and wheels to
// lock, the files to write, the environment to set, the offline commands to run
// and the checks that prove it. It knows nothing of cells; templates are expanded by the planner.
package recipe

import (
	"io/fs"
	"maps"
	"slices"

	"github.com/imgforge/imgforge/internal/check"
	"github.com/imgforge/imgforge/internal/diag"
)

// Recipe is one thing to layer into an image. Debs, wheels, limits, environment
// values and commands may hold templates such as ${cuda}; Expand fills them.
type Recipe struct {
	Name      string
	Summary   string // one line, for help and labels
	Pos       diag.Pos
	Requires  []diag.Str // recipes that must be listed too
	Conflicts []diag.Str // recipes that must not be
	Debs      []diag.Str // Debian package names
	Wheels    []diag.Str // PEP 508 requirements
	Limits    []diag.Str // PEP 508 constraints: bound a version, pull in nothing
	Env       []Var      // image environment
	Files     []File
	Run       []Run
	Cmd       []string // default command; the last recipe that sets one wins
	Ports     []string // such as "8888/tcp"
	Checks    []check.Check
	Hash      string // "h1:..." over the YAML and every file the recipe ships
}

// Var is one environment variable.
type Var struct {
	Pos   diag.Pos
	Name  string
	Value string
}

// File is a file, directory or symbolic link that a recipe places in the image.
// Owner is always root.
type File struct {
	Pos     diag.Pos
	Path    string      // absolute, clean
	Mode    fs.FileMode // permission bits; 0 for a link
	Content []byte      // of a regular file, taken as it is: no templates
	Link    string      // target, when a symbolic link
	Dir     bool
}

// Run is a shell command run in the image, as root, with no network, after
// every file is in place.
type Run struct {
	Pos     diag.Pos
	Name    string // short, for progress output
	Command string // given to sh -euc
}

// Set is the recipes that are known, by name.
type Set struct {
	byName map[string]*Recipe
}

// Get returns the recipe called name.
func (s *Set) Get(name string) (*Recipe, bool) {
	r, ok := s.byName[name]
	return r, ok
}

// Names lists the known recipes in order.
func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.byName)) }
