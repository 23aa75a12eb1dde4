// Package check says what a check of an image is: where it runs, what it runs, what
// is expected, and what came of it. Recipes and matrices declare checks in YAML; the
// built-in ones are a table. It runs nothing.
package check

import (
	"time"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/record"
)

// Kind is where a check runs.
type Kind string

// The kinds, in the order they run.
const (
	Static Kind = "static" // on the layers' files; nothing is started
	CPU    Kind = "cpu"    // in a container without a GPU
	GPU    Kind = "gpu"    // in a container with the GPUs
)

// Severity is what a check that fails means for its image.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // the image is not promoted
	Warning Severity = "warning" // it is told
)

// Check is one thing to be shown of an image. It has exactly one of Use and Run.
type Check struct {
	Pos      diag.Pos          `json:"-"`
	Name     string            `json:"name"` // unique in an image
	Kind     Kind              `json:"kind"`
	Use      string            `json:"use,omitempty"`  // name of a built-in
	With     map[string]string `json:"with,omitempty"` // the built-in's options
	Run      string            `json:"run,omitempty"`  // given to sh -euc
	User     string            `json:"user,omitempty"` // uid:gid; empty for the image's own user
	Expect   Expect            `json:"expect,omitzero"`
	Timeout  time.Duration     `json:"timeout"`
	Severity Severity          `json:"severity"`

	When map[string]diag.Str `json:"-"` // axes and their values or ranges; the cells it applies to
}

// Expect is what a command must do. All that is set must hold.
type Expect struct {
	Exit    int               `json:"exit,omitempty"`    // code it ends with
	Stdout  *string           `json:"stdout,omitempty"`  // all of it, without white space around it
	Match   string            `json:"match,omitempty"`   // regular expression that standard output matches somewhere
	JSON    map[string]string `json:"json,omitempty"`    // values of standard output as JSON, by path: a.b.0
	Version string            `json:"version,omitempty"` // range that the first version in standard output lies in
}

// Exec is one program to run in an image, as the image's configuration says but for
// what stands here.
type Exec struct {
	Name    string   // of the check, for people
	Args    []string // program and arguments
	Env     []string // NAME=value, beside the image's own
	User    string   // uid:gid; empty for the image's own user
	GPU     bool     // with the GPUs
	Timeout time.Duration
}

// OutputLimit is how many bytes of each stream a runner keeps: the first of them,
// and the last, which say how it ended.
const OutputLimit = 256 << 10

// Output is how a program ended. A runner that could not start it, or lost it, gives
// an error instead.
type Output struct {
	Exit           int
	Stdout, Stderr []byte
	Cut            bool // more was printed than is kept
	TimedOut       bool // killed at its time-out; Exit says nothing then
	Seconds        float64
}

// Problem is one thing that is wrong, what it means and what to do.
type Problem = record.Problem

// Result is what a built-in's program prints as its last line, in JSON, and what
// every check comes to.
type Result struct {
	OK       bool           `json:"ok"`
	Summary  string         `json:"summary"` // one line
	Problems []Problem      `json:"problems,omitempty"`
	Facts    map[string]any `json:"facts,omitempty"` // what was found, such as the driver
}
