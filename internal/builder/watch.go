package builder

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/moby/buildkit/client"
	"github.com/moby/buildkit/exporter/containerimage/exptypes"
	gatewaypb "github.com/moby/buildkit/frontend/gateway/pb"
	"github.com/moby/buildkit/solver/errdefs"
	"github.com/opencontainers/go-digest"
	ocispecs "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/imgforge/imgforge/internal/diag"
)

// logKept is how much of a step's output is kept to explain its failure.
const logKept = 8 << 10

// StepError is a build step that failed.
type StepError struct {
	Step string   // its name
	Pos  diag.Pos // the recipe line it comes from; zero for the program's own steps
	Log  string   // the end of what it printed
	Err  error    // what the engine said
}

// Error says which step failed, where it was written and what it printed last.
func (e *StepError) Error() string {
	var b strings.Builder
	if at := e.Pos.String(); at != "" {
		b.WriteString(at + ": ")
	}
	fmt.Fprintf(&b, "step %q failed: %s", e.Step, reason(e.Err))
	for line := range strings.Lines(e.Log) {
		b.WriteString("\n    | " + strings.TrimRight(line, "\r\n"))
	}
	return b.String()
}

// Unwrap gives the engine's error.
func (e *StepError) Unwrap() error { return e.Err }

// reason is the engine's error without the command line it repeats.
func reason(err error) string {
	var exit *gatewaypb.ExitError
	if errors.As(err, &exit) && exit.ExitCode != gatewaypb.UnknownExitStatus {
		return fmt.Sprintf("exit code: %d", exit.ExitCode)
	}
	return err.Error()
}

// ErrDamaged is wrapped when the engine could not use a file of the store. It
// checks every byte, so most often one is wrong.
var ErrDamaged = errors.New("the engine cannot use a file of the store")

// DiskError is a step that the engine had no room for.
type DiskError struct{ Err error }

// Error says what to do.
func (e *DiskError) Error() string {
	return fmt.Sprintf("the engine's disk is full; make room, for example with `imgforge builder prune --all`, and run the same command again, "+
		"or use a larger disk with --state: %s", e.Err)
}

// Unwrap gives the step that failed.
func (e *DiskError) Unwrap() error { return e.Err }

// diskFull is how the system, not BuildKit, says it, in a step's output too. What
// BuildKit itself could not write has a code, but a quota has the same.
var diskFull = strings.ToLower(syscall.ENOSPC.Error())

// watch remembers the steps of one solve and the end of their output.
type watch struct {
	names    map[digest.Digest]string
	logs     map[digest.Digest]*bytes.Buffer
	cleaners map[digest.Digest]*cleaner
}

func newWatch() *watch {
	return &watch{names: map[digest.Digest]string{}, logs: map[digest.Digest]*bytes.Buffer{}, cleaners: map[digest.Digest]*cleaner{}}
}

// see takes in what the engine tells, and cleans output in place.
func (w *watch) see(ev *client.SolveStatus) {
	for _, v := range ev.Vertexes {
		w.names[v.Digest] = v.Name
	}
	for _, l := range ev.Logs {
		buf := w.logs[l.Vertex]
		if buf == nil {
			buf = &bytes.Buffer{}
			w.logs[l.Vertex], w.cleaners[l.Vertex] = buf, &cleaner{}
		}
		l.Data = w.cleaners[l.Vertex].clean(l.Data)
		buf.Write(l.Data)
		if extra := buf.Len() - logKept; extra > 0 {
			buf.Next(extra)
		}
	}
}

// explain names the step behind a failed solve, when there is one.
func (w *watch) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	var failed *errdefs.VertexError
	if !errors.As(err, &failed) {
		return noRoom(err, "")
	}
	id := digest.Digest(failed.Vertex.Digest)
	step := &StepError{Step: w.names[id], Err: err}
	if buf := w.logs[id]; buf != nil {
		step.Log = buf.String()
	}
	var solve *errdefs.SolveError
	if full := noRoom(step, step.Log); full != error(step) {
		return full
	}
	if errors.As(err, &solve) && solve.Op.GetSource() != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, step)
	}
	for _, src := range errdefs.Sources(err) {
		if src.Info != nil && len(src.Ranges) > 0 {
			step.Pos = diag.Pos{File: src.Info.Filename, Line: int(src.Ranges[0].Start.Line)}
		}
	}
	return step
}

// noRoom makes a DiskError of an error that is one.
func noRoom(err error, log string) error {
	if err != nil && strings.Contains(strings.ToLower(err.Error()+log), diskFull) {
		return &DiskError{err}
	}
	return err
}

// decodeDescriptor finds the manifest in what the exporter answered.
func decodeDescriptor(resp map[string]string) (ocispecs.Descriptor, error) {
	var d ocispecs.Descriptor
	data, err := base64.StdEncoding.DecodeString(resp[exptypes.ExporterImageDescriptorKey])
	if err == nil {
		err = json.Unmarshal(data, &d)
	}
	if err != nil || d.Digest == "" {
		return d, errors.Join(errors.New("the engine did not say what it exported"), err)
	}
	return d, nil
}

// isLoopback tells whether a repository is on this machine's own loopback, where
// plain http is fine.
func isLoopback(repository string) bool {
	host, _, _ := strings.Cut(repository, "/")
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return ip != nil && ip.IsLoopback()
}
