package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/moby/buildkit/client"
	"github.com/moby/buildkit/util/progress/progressui"
	"github.com/opencontainers/go-digest"
	"github.com/spf13/pflag"
)

// display shows the progress of a whole run as one list of steps: BuildKit's
// own, and tasks of ours. It may be fed from many goroutines until close.
type display struct {
	status chan *client.SolveStatus
	done   chan struct{}
	once   sync.Once
}

// progressFlag registers --progress.
func progressFlag(flags *pflag.FlagSet, mode *string) {
	flags.StringVar(mode, "progress", "auto", "auto, tty, plain, json or quiet")
}

// checkProgress refuses a --progress that does not exist.
func checkProgress(mode string) error {
	if _, ok := progressModes[mode]; !ok {
		return fmt.Errorf("--progress %q: use auto, tty, plain, json or quiet", mode)
	}
	return nil
}

var progressModes = map[string]progressui.DisplayMode{
	"auto": progressui.AutoMode, "tty": progressui.TtyMode, "plain": progressui.PlainMode,
	"json": progressui.RawJSONMode, "quiet": progressui.QuietMode,
}

// newDisplay starts showing progress on w.
func newDisplay(w io.Writer, mode string) (*display, error) {
	if err := checkProgress(mode); err != nil {
		return nil, err
	}
	ui, err := progressui.NewDisplay(w, progressModes[mode])
	if err != nil {
		return nil, fmt.Errorf("--progress %s: %w", mode, err)
	}
	d := &display{status: make(chan *client.SolveStatus, 64), done: make(chan struct{})}
	go func() {
		defer close(d.done)
		// Not the run's context: what happened is shown even after Ctrl-C.
		_, _ = ui.UpdateFrom(context.Background(), d.status)
		for range d.status { // if the display gave up, the solves must not block
		}
	}()
	return d, nil
}

// close ends the display after what it was given is shown.
func (d *display) close() {
	d.once.Do(func() {
		close(d.status)
		<-d.done
	})
}

// task is one step of our own.
type task struct {
	display *display
	vertex  client.Vertex
}

// begin shows a new step.
func (d *display) begin(name string) *task {
	now := time.Now()
	t := &task{display: d, vertex: client.Vertex{
		Digest: digest.FromString(fmt.Sprint(name, now.UnixNano())), Name: name, Started: &now,
	}}
	t.send()
	return t
}

func (t *task) send() {
	v := t.vertex
	t.display.status <- &client.SolveStatus{Vertexes: []*client.Vertex{&v}}
}

// progress shows how far a part of the step is; equal numbers mean it is done.
func (t *task) progress(part string, current, total int64) {
	now := time.Now()
	s := &client.VertexStatus{ID: part, Vertex: t.vertex.Digest, Current: current, Total: total, Timestamp: now, Started: t.vertex.Started}
	if current == total {
		s.Completed = &now
	}
	t.display.status <- &client.SolveStatus{Statuses: []*client.VertexStatus{s}}
}

// say adds a line to the step's output.
func (t *task) say(format string, args ...any) {
	t.display.status <- &client.SolveStatus{Logs: []*client.VertexLog{{
		Vertex: t.vertex.Digest, Stream: 1, Data: fmt.Appendf(nil, format+"\n", args...), Timestamp: time.Now(),
	}}}
}

// counter says now and then how many of total are done, in the words of what.
func (t *task) counter(what string) func(done, total int) {
	told := time.Now()
	return func(done, total int) {
		if time.Since(told) > 2*time.Second {
			t.say("%d of %d %s", done, total, what)
			told = time.Now()
		}
	}
}

// end closes the step.
func (t *task) end(err error) {
	now := time.Now()
	t.vertex.Completed = &now
	if err != nil {
		t.vertex.Error = err.Error()
	}
	t.send()
}
