package builder

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/containerd/containerd/v2/core/content"
)

// Compressions are what layers may be stored as; the first is used unless told
// otherwise.
var Compressions = []string{"zstd", "gzip", "estargz"}

// PushError is an image that was built and that its registry did not take.
type PushError struct {
	Repository string
	Err        error // what the engine said
}

// Error names the repository and the reason.
func (e *PushError) Error() string {
	return fmt.Sprintf("cannot push to %s: %s", e.Repository, e.Err)
}

// Unwrap gives the engine's error.
func (e *PushError) Unwrap() error { return e.Err }

// export is what becomes of one image once its steps have run.
type export struct {
	content.Store
	built  atomic.Bool           // the steps have run
	failed atomic.Pointer[error] // why the layout could not be written
}

// Writer notes why the layout cannot be written: the engine hands on a text only.
func (e *export) Writer(ctx context.Context, opts ...content.WriterOpt) (content.Writer, error) {
	w, err := e.Store.Writer(ctx, opts...)
	return &exportWriter{w, e}, err
}

type exportWriter struct {
	content.Writer
	export *export
}

func (w *exportWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if err != nil {
		w.export.failed.CompareAndSwap(nil, &err)
	}
	return n, err
}

// explain tells apart what fails once an image is built: the layout, the registry,
// or else the engine. None is a step that the plan names.
func (e *export) explain(job Job, err error) error {
	switch failed := e.failed.Load(); {
	case !e.built.Load():
		return err
	case failed != nil:
		return fmt.Errorf("cannot write the image to %s: %w", job.Layout, *failed)
	case job.Push != "":
		return &PushError{Repository: job.Push, Err: err}
	}
	return fmt.Errorf("cannot export the image: %w", err)
}
