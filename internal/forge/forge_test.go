package forge_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/imgforge/imgforge/internal/forge"
	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/record"
)

var (
	errMirror = errors.New("no mirror has it")
	errBuild  = errors.New("a step failed")
)

func classify(err error) record.Class {
	switch {
	case errors.Is(err, errMirror):
		return record.ClassMirror
	case errors.Is(err, errBuild):
		return record.ClassBuild
	}
	return record.ClassEngine
}

// fetcher downloads ten bytes a blob, but none that is dead.
type fetcher struct{ dead map[string]bool }

func (f fetcher) Fetch(_ context.Context, blobs []plan.Blob) (int64, error) {
	for _, b := range blobs {
		if f.dead[b.SHA256] {
			return 0, fmt.Errorf("%s: %w", b.SHA256, errMirror)
		}
	}
	return int64(10 * len(blobs)), nil
}

// builder runs a function a cell.
type builder func(ctx context.Context, tag string) (forge.Image, error)

func (b builder) Build(ctx context.Context, p *plan.Plan) (forge.Image, error) { return b(ctx, p.Tag) }

// fine makes an image of a part of its own and one that all share.
func fine(_ context.Context, tag string) (forge.Image, error) {
	return forge.Image{Digest: "sha256:" + tag, Layers: 2, Parts: []forge.Part{{"shared", 100}, {tag, 1}}}, nil
}

func blobs(names string) []plan.Blob {
	var out []plan.Blob
	for _, name := range strings.Fields(names) {
		out = append(out, plan.Blob{Name: name, SHA256: name})
	}
	return out
}

func cell(tag, needs string) forge.Cell {
	return forge.Cell{Tag: tag, Plan: &plan.Plan{Tag: tag, Base: blobs(needs)}}
}

// do runs the cells and gathers what was emitted.
func do(ctx context.Context, r forge.Run, cells ...forge.Cell) []record.Event {
	var events []record.Event
	r.Emit = func(ev record.Event) { events = append(events, ev) }
	if r.Classify == nil {
		r.Classify = classify
	}
	if r.Fetcher == nil {
		r.Fetcher = fetcher{}
	}
	r.Do(ctx, cells)
	return events
}

// show prints events in a line each, without times.
func show(events []record.Event) string {
	var out strings.Builder
	for _, ev := range events {
		switch {
		case ev.Planned != nil:
			fmt.Fprintf(&out, "%s planned %v\n", ev.Cell, ev.Planned.Warnings)
		case ev.Fetched != nil:
			fmt.Fprintf(&out, "%s fetched %d files, %d bytes\n", ev.Cell, ev.Fetched.Files, ev.Fetched.Downloaded)
		case ev.Built != nil:
			fmt.Fprintf(&out, "%s built %s size %d new %d layers %d %s\n", ev.Cell, ev.Built.Digest, ev.Built.Size, ev.Built.New, ev.Built.Layers, ev.Built.Pushed)
		case ev.Smoked != nil:
			fmt.Fprintf(&out, "%s smoked %s: %s\n", ev.Cell, ev.Smoked.Image, ev.Smoked.Verdict())
		case ev.Failed != nil:
			fmt.Fprintf(&out, "%s failed %s: %s\n", ev.Cell, ev.Failed.Class, ev.Failed.Reason)
		}
	}
	return out.String()
}

func check(t *testing.T, events []record.Event, want string) {
	t.Helper()
	if got := show(events); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// What the engine cannot build is not even fetched, and stops nobody else.
func TestRefused(t *testing.T) {
	refuse := func(_ context.Context, p *plan.Plan) error {
		if p.Tag == "foreign" {
			return errors.New("no engine for linux/arm64")
		}
		return nil
	}
	events := do(context.Background(), forge.Run{Builder: builder(fine), Fetcher: fetcher{dead: map[string]bool{"y": true}}, Refuse: refuse, Jobs: 1},
		cell("foreign", "y"), cell("a", "x"))
	check(t, events, `foreign planned []
foreign failed engine: no engine for linux/arm64
a planned []
a fetched 1 files, 10 bytes
a built sha256:a size 101 new 101 layers 2 
`)
}

// Each way to fail is told with its class, and stops nobody else.
// docker/buildx#3428: one flake ended hundreds of builds.
func TestOneFailureStopsNoOther(t *testing.T) {
	build := builder(func(ctx context.Context, tag string) (forge.Image, error) {
		switch tag {
		case "broken":
			return forge.Image{}, errBuild
		case "lost":
			return forge.Image{}, errors.New("the engine is gone")
		}
		return fine(ctx, tag)
	})
	warned := cell("a", "x y")
	warned.Warnings = []string{"careful"}
	events := do(t.Context(), forge.Run{Builder: build, Fetcher: fetcher{dead: map[string]bool{"dead": true}}},
		forge.Cell{Tag: "stale", Err: errors.New("the lock is stale")}, warned, cell("dark", "x dead"), cell("broken", "x"), cell("lost", "x"), cell("b", "x"))
	check(t, events, `stale failed plan: the lock is stale
a planned [careful]
a fetched 2 files, 20 bytes
a built sha256:a size 101 new 101 layers 2 
dark planned []
dark failed mirror: dead: no mirror has it
broken planned []
broken fetched 1 files, 10 bytes
broken failed build: a step failed
lost planned []
lost fetched 1 files, 10 bytes
lost failed engine: the engine is gone
b planned []
b fetched 1 files, 10 bytes
b built sha256:b size 101 new 1 layers 2 
`)
}

func TestPlannedNamesThePlan(t *testing.T) {
	c := cell("a", "x")
	events := do(t.Context(), forge.Run{Builder: builder(fine)}, c)
	if got := events[0].Planned.Plan; got != c.Plan.Digest() {
		t.Errorf("planned %s, the plan is %s", got, c.Plan.Digest())
	}
}

// New is counted in the order of the cells, whichever is ready first, and a cell
// without an image counts for nothing.
func TestNewBytes(t *testing.T) {
	parts := map[string][]forge.Part{
		"a": {{"base", 100}, {"torch", 50}},
		"b": {{"base", 100}, {"torch", 50}, {"b", 7}},
		"c": {{"base", 100}, {"c", 3}, {"gone", 9}},
	}
	synctest.Test(t, func(t *testing.T) {
		build := builder(func(_ context.Context, tag string) (forge.Image, error) {
			time.Sleep(map[string]time.Duration{"a": 3 * time.Second, "b": 2 * time.Second}[tag])
			if tag == "failed" {
				return forge.Image{Parts: []forge.Part{{"gone", 9}}}, errBuild
			}
			return forge.Image{Digest: tag, Parts: parts[tag], Layers: len(parts[tag]), Pushed: "repo@" + tag}, nil
		})
		events := do(t.Context(), forge.Run{Builder: build, Jobs: 4}, cell("a", ""), cell("failed", ""), cell("b", ""), cell("c", ""))
		var got []string
		for _, ev := range events {
			if b := ev.Built; b != nil {
				got = append(got, fmt.Sprintf("%s %d %d %d %s %gs", ev.Cell, b.Size, b.New, b.Layers, b.Pushed, b.Seconds))
			}
		}
		want := []string{"a 150 150 2 repo@a 3s", "b 157 7 3 repo@b 2s", "c 112 12 3 repo@c 0s"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestJobsBound(t *testing.T) {
	for jobs, want := range map[int]int64{-1: 1, 0: 1, 1: 1, 3: 3, 50: 10} {
		synctest.Test(t, func(t *testing.T) {
			var now, most atomic.Int64
			var mu sync.Mutex
			build := builder(func(ctx context.Context, tag string) (forge.Image, error) {
				mu.Lock()
				most.Store(max(most.Load(), now.Add(1)))
				mu.Unlock()
				time.Sleep(time.Second)
				now.Add(-1)
				return fine(ctx, tag)
			})
			var cells []forge.Cell
			for i := range 10 {
				cells = append(cells, cell(fmt.Sprint("cell", i), "x"))
			}
			do(t.Context(), forge.Run{Builder: build, Jobs: jobs}, cells...)
			if most.Load() != want {
				t.Errorf("with %d jobs, %d cells were built at once, want %d", jobs, most.Load(), want)
			}
		})
	}
}

func TestCellsBeginInOrder(t *testing.T) {
	var order, want []string
	build := builder(func(ctx context.Context, tag string) (forge.Image, error) {
		order = append(order, tag)
		return fine(ctx, tag)
	})
	var cells []forge.Cell
	for i := range 20 {
		want = append(want, fmt.Sprint("cell", i))
		cells = append(cells, cell(want[i], "x"))
	}
	do(t.Context(), forge.Run{Builder: build}, cells...)
	if !slices.Equal(order, want) {
		t.Errorf("one at a time, the cells are built in the order %v", order)
	}
}

// The first failure in time stops the run, also when an earlier cell is busy.
func TestFailFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		build := builder(func(ctx context.Context, tag string) (forge.Image, error) {
			if tag == "broken" {
				time.Sleep(time.Second)
				return forge.Image{}, errBuild
			}
			select {
			case <-ctx.Done():
				return forge.Image{}, errors.New("the engine's own words")
			case <-time.After(time.Hour):
				return fine(ctx, tag)
			}
		})
		start := time.Now()
		events := do(t.Context(), forge.Run{Builder: build, Jobs: 3, FailFast: true}, cell("slow", "x"), cell("broken", "x"), cell("other", "x"))
		check(t, events, `slow planned []
slow fetched 1 files, 10 bytes
slow failed cancel: stopped: another cell failed first
broken planned []
broken fetched 1 files, 10 bytes
broken failed build: a step failed
other planned []
other fetched 1 files, 10 bytes
other failed cancel: stopped: another cell failed first
`)
		if took := time.Since(start); took != time.Second {
			t.Errorf("the run stopped after %s", took)
		}
	})
}

// A stopped run tells every cell; those not begun fetch and build nothing.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	began := 0
	build := builder(func(ctx context.Context, _ string) (forge.Image, error) {
		began++
		cancel(errors.New("interrupted"))
		return forge.Image{}, fmt.Errorf("solve: %w", ctx.Err())
	})
	events := do(ctx, forge.Run{Builder: build}, cell("a", "x"), cell("b", "x"), forge.Cell{Tag: "c", Err: errors.New("impossible")})
	if began != 1 {
		t.Errorf("%d cells were built", began)
	}
	got := show(events)
	for _, want := range []string{"a failed cancel: interrupted\n", "b failed cancel: interrupted\n", "c failed plan: impossible\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if n := strings.Count(got, "fetched"); n != 1 {
		t.Errorf("%d cells were fetched:\n%s", n, got)
	}
}

func TestNoCells(t *testing.T) {
	if events := do(t.Context(), forge.Run{}); len(events) != 0 {
		t.Errorf("no cells make %d events", len(events))
	}
}
