// Package record is the wire schema of a run: what happened to each cell, as
// one-of events that every report folds.
package record

// Class says at which stage a cell ended.
type Class string

// The stages a cell can fail in.
const (
	ClassPlan   Class = "plan"   // bad input, an impossible cell, a stale lock
	ClassMirror Class = "mirror" // a byte no mirror could serve
	ClassBuild  Class = "build"  // a step failed
	ClassEngine Class = "engine" // the engine was lost, or this machine failed, such as a full disk
	ClassSmoke  Class = "smoke"  // a check failed
	ClassPush   Class = "push"   // the registry refused
	ClassCancel Class = "cancel" // interrupted before it ended
)

// Event is one thing that happened to one cell; exactly one pointer is set.
type Event struct {
	Cell    string   `json:"cell"`
	Planned *Planned `json:"planned,omitempty"`
	Fetched *Fetched `json:"fetched,omitempty"`
	Built   *Built   `json:"built,omitempty"`
	Smoked  *Smoked  `json:"smoked,omitempty"`
	Failed  *Failed  `json:"failed,omitempty"`
}

// Planned: the cell is known to the last byte.
type Planned struct {
	Plan     string   `json:"plan"`               // digest of the plan
	Warnings []string `json:"warnings,omitempty"` // judgements that do not stop it
}

// Fetched: every byte the cell needs is in the store.
type Fetched struct {
	Files      int   `json:"files"`
	Downloaded int64 `json:"downloaded"` // bytes that came over the network for this cell
}

// Built: the image exists under its digest.
type Built struct {
	Digest  string  `json:"digest"`
	Size    int64   `json:"size"` // compressed bytes of all layers and config
	New     int64   `json:"new"`  // of these, bytes no earlier cell of the run has
	Layers  int     `json:"layers"`
	Seconds float64 `json:"seconds"`          // wall time of the solve and export
	Pushed  string  `json:"pushed,omitempty"` // repository@digest, when pushed
}

// Failed: the cell has ended without an image.
type Failed struct {
	Class  Class  `json:"class"`
	Reason string `json:"reason"`
}
