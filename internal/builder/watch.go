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

	"github.com/moby/buildkit/client"
	"github.com/moby/buildkit/exporter/containerimage/exptypes"
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
	text := err.Error()
	if i := strings.LastIndex(text, "did not complete successfully: "); i >= 0 {
		return text[i+len("did not complete successfully: "):]
	}
	return text
}

// ErrDamaged is wrapped when the engine refused bytes of the store because they
// have another digest than the plan says.
var ErrDamaged = errors.New("a file of the store is damaged")

// watch remembers the steps of one solve and the end of their output.
type watch struct {
	names  map[digest.Digest]string
	logs   map[digest.Digest]*bytes.Buffer
	failed digest.Digest
}

func newWatch() *watch {
	return &watch{names: map[digest.Digest]string{}, logs: map[digest.Digest]*bytes.Buffer{}}
}

func (w *watch) see(ev *client.SolveStatus) {
	for _, v := range ev.Vertexes {
		w.names[v.Digest] = v.Name
		if v.Error != "" && w.failed == "" && !strings.Contains(v.Error, context.Canceled.Error()) {
			w.failed = v.Digest
		}
	}
	for _, l := range ev.Logs {
		buf := w.logs[l.Vertex]
		if buf == nil {
			buf = &bytes.Buffer{}
			w.logs[l.Vertex] = buf
		}
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
	if w.failed == "" {
		return err
	}
	step := &StepError{Step: w.names[w.failed], Err: err}
	if buf := w.logs[w.failed]; buf != nil {
		step.Log = buf.String()
	}
	if text := err.Error(); strings.Contains(text, "digest mismatch") || strings.Contains(text, "unexpected commit digest") {
		return fmt.Errorf("%w: %w", ErrDamaged, step)
	}
	for _, src := range errdefs.Sources(err) {
		if src.Info != nil && len(src.Ranges) > 0 {
			step.Pos = diag.Pos{File: src.Info.Filename, Line: int(src.Ranges[0].Start.Line)}
		}
	}
	return step
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
