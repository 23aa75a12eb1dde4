// Package forge is the order of the stages: plan, fetch, build, smoke. It owns the
// interfaces it consumes and what cells run beside each other; every arrow emits
// one event.
package forge

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/imgforge/imgforge/internal/check"
	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/record"
)

// Fetcher fills the store with a plan's blobs and says how many bytes it downloaded.
type Fetcher interface {
	Fetch(ctx context.Context, blobs []plan.Blob) (downloaded int64, err error)
}

// Builder builds a plan whose blobs are in the store.
type Builder interface {
	Build(ctx context.Context, p *plan.Plan) (Image, error)
}

// Smoker runs a cell's checks on the image that was built of it. A check that fails is
// in the record; an error is a check that could not be run.
type Smoker interface {
	Smoke(ctx context.Context, cell Cell, image Image) (*record.Smoked, error)
}

// Image is what a build left behind: each part by digest, with its size.
type Image struct {
	Digest string
	Parts  []Part // manifest, config, then layers, base first
	Layers int
	Pushed string // repository@digest, when pushed
}

// Part is one blob of an image.
type Part struct {
	Digest string
	Size   int64
}

// Cell is one cell of a run: planned, or failed before it could be.
type Cell struct {
	Tag      string
	Plan     *plan.Plan
	Warnings []string
	Floor    string        // oldest driver it supports
	Checks   []check.Check // what its image must pass
	Err      error         // why there is no plan
}

// Run is one run over cells.
type Run struct {
	Fetcher  Fetcher
	Builder  Builder
	Smoker   Smoker                                  // nil: images are built and not tested
	Refuse   func(context.Context, *plan.Plan) error // why a plan cannot be built here, before anything is fetched; may be nil
	Jobs     int                                     // cells built at once; at least 1
	FailFast bool                                    // stop at the first failure
	Emit     func(record.Event)
	Classify func(error) record.Class // the class of a fetch or build error
}

// errFirstFailure cancels what is left of a run that stops at the first failure.
var errFirstFailure = errors.New("stopped: another cell failed first")

// Do takes every cell as far as it goes. One cell's failure does not stop the
// others. Events of one cell come in order; the Built events come in the order
// of the cells, since each counts the bytes that no earlier cell has.
func (r *Run) Do(ctx context.Context, cells []Cell) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results := make([]chan outcome, len(cells))
	for i := range results {
		results[i] = make(chan outcome, 1)
	}
	go func() { // cells begin in their order
		slots := make(chan struct{}, max(1, r.Jobs))
		for i, cell := range cells {
			slots <- struct{}{}
			go func() {
				defer func() { <-slots }()
				out := r.cell(ctx, cell)
				if out.failed != nil && r.FailFast {
					cancel(errFirstFailure)
				}
				results[i] <- out
			}()
		}
	}()
	seen := map[string]bool{}
	for i, cell := range cells {
		out := <-results[i]
		for _, ev := range out.events(cell.Tag, seen) {
			r.Emit(ev)
		}
	}
}

// outcome is how far one cell came.
type outcome struct {
	planned *record.Planned
	fetched *record.Fetched
	image   *Image
	seconds float64
	smoked  *record.Smoked
	failed  *record.Failed
}

func (r *Run) cell(ctx context.Context, cell Cell) outcome {
	var out outcome
	if cell.Err != nil {
		out.failed = &record.Failed{Class: record.ClassPlan, Reason: cell.Err.Error()}
		return out
	}
	out.planned = &record.Planned{Plan: cell.Plan.Digest(), Warnings: cell.Warnings}
	fail := func(err error) outcome {
		out.failed = r.failed(ctx, err)
		return out
	}
	if err := ctx.Err(); err != nil {
		return fail(err)
	}
	if r.Refuse != nil {
		if err := r.Refuse(ctx, cell.Plan); err != nil {
			return fail(err)
		}
	}
	blobs := cell.Plan.Blobs()
	downloaded, err := r.Fetcher.Fetch(ctx, blobs)
	if err != nil {
		return fail(err)
	}
	out.fetched = &record.Fetched{Files: len(blobs), Downloaded: downloaded}
	start := time.Now()
	image, err := r.Builder.Build(ctx, cell.Plan)
	if err != nil {
		return fail(err)
	}
	out.image, out.seconds = &image, time.Since(start).Seconds()
	if r.Smoker == nil {
		return out
	}
	if out.smoked, err = r.Smoker.Smoke(ctx, cell, image); err != nil {
		return fail(err)
	}
	if out.smoked.Verdict() == record.Broken {
		out.failed = &record.Failed{Class: record.ClassSmoke, Reason: "checks failed: " + strings.Join(out.smoked.Failures(), ", ")}
	}
	return out
}

// failed says why a cell ended. Once the run is stopped that is the reason,
// whatever the engine or a mirror made of it.
func (r *Run) failed(ctx context.Context, err error) *record.Failed {
	if ctx.Err() != nil {
		return &record.Failed{Class: record.ClassCancel, Reason: context.Cause(ctx).Error()}
	}
	return &record.Failed{Class: r.Classify(err), Reason: err.Error()}
}

// events tells the outcome, counting against what earlier cells already brought.
func (o outcome) events(tag string, seen map[string]bool) []record.Event {
	var evs []record.Event
	if o.planned != nil {
		evs = append(evs, record.Event{Cell: tag, Planned: o.planned})
	}
	if o.fetched != nil {
		evs = append(evs, record.Event{Cell: tag, Fetched: o.fetched})
	}
	if o.image != nil {
		evs = append(evs, record.Event{Cell: tag, Built: o.built(seen)})
	}
	if o.smoked != nil {
		evs = append(evs, record.Event{Cell: tag, Smoked: o.smoked})
	}
	if o.failed != nil {
		evs = append(evs, record.Event{Cell: tag, Failed: o.failed})
	}
	return evs
}

func (o outcome) built(seen map[string]bool) *record.Built {
	built := record.Built{Digest: o.image.Digest, Layers: o.image.Layers, Seconds: o.seconds, Pushed: o.image.Pushed}
	for _, part := range o.image.Parts {
		built.Size += part.Size
		if !seen[part.Digest] {
			seen[part.Digest] = true
			built.New += part.Size
		}
	}
	return &built
}
