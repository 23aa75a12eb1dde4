// Package forge is the order of the stages: plan, fetch, build. It owns the
// interfaces it consumes and the only goroutines; every arrow emits one event.
package forge

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

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

// Image is what a build left behind: each part by digest, with its size.
type Image struct {
	Digest string
	Parts  []Part // manifest, config and layers, base last to first does not matter
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
	Err      error // why there is no plan
}

// Run is one run over cells.
type Run struct {
	Fetcher  Fetcher
	Builder  Builder
	Jobs     int  // cells built at once; at least 1
	FailFast bool // stop at the first failure
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
	slots := make(chan struct{}, max(1, r.Jobs))
	for i, cell := range cells {
		results[i] = make(chan outcome, 1)
		go func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			results[i] <- r.cell(ctx, cell)
		}()
	}
	seen := map[string]bool{}
	for i, cell := range cells {
		out := <-results[i]
		for _, ev := range out.events(cell.Tag, seen) {
			r.Emit(ev)
		}
		if out.failed != nil && r.FailFast {
			cancel(errFirstFailure)
		}
	}
}

// outcome is how far one cell came.
type outcome struct {
	planned *record.Planned
	fetched *record.Fetched
	image   *Image
	seconds float64
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
		out.failed = &record.Failed{Class: r.class(ctx, err), Reason: err.Error()}
		return out
	}
	if ctx.Err() != nil {
		return fail(context.Cause(ctx))
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
	return out
}

func (r *Run) class(ctx context.Context, err error) record.Class {
	if ctx.Err() != nil {
		return record.ClassCancel
	}
	return r.Classify(err)
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
	if o.failed != nil {
		return append(evs, record.Event{Cell: tag, Failed: o.failed})
	}
	built := record.Built{Digest: o.image.Digest, Layers: o.image.Layers, Seconds: o.seconds, Pushed: o.image.Pushed}
	for _, part := range o.image.Parts {
		built.Size += part.Size
		if !seen[part.Digest] {
			seen[part.Digest] = true
			built.New += part.Size
		}
	}
	return append(evs, record.Event{Cell: tag, Built: &built})
}

// Once makes a fetcher that asks for each blob once in a run, however many cells
// need it at the same time.
func Once(f Fetcher) Fetcher { return &once{next: f, flights: map[string]*flight{}} }

type once struct {
	next    Fetcher
	mu      sync.Mutex
	flights map[string]*flight
}

// flight is one blob on its way; err is set before done is closed.
type flight struct {
	done chan struct{}
	err  error
}

// Fetch downloads the blobs nobody has asked for yet and waits for the others.
func (o *once) Fetch(ctx context.Context, blobs []plan.Blob) (int64, error) {
	var mine []plan.Blob
	var own, others []*flight
	o.mu.Lock()
	for _, b := range blobs {
		if f := o.flights[b.SHA256]; f != nil {
			others = append(others, f)
			continue
		}
		f := &flight{done: make(chan struct{})}
		o.flights[b.SHA256] = f
		own = append(own, f)
		mine = append(mine, b)
	}
	o.mu.Unlock()
	var downloaded int64
	var err error
	if len(mine) > 0 {
		downloaded, err = o.next.Fetch(ctx, mine)
	}
	for _, f := range own {
		f.err = err
		close(f.done)
	}
	if err != nil {
		return downloaded, err
	}
	for _, f := range others {
		select {
		case <-f.done:
			if f.err != nil {
				return downloaded, fmt.Errorf("fetched for another cell: %w", f.err)
			}
		case <-ctx.Done():
			return downloaded, context.Cause(ctx)
		}
	}
	return downloaded, nil
}
