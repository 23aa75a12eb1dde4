package builder

import (
	"context"
	"fmt"
	"time"

	"github.com/containerd/containerd/v2/core/content"
	contentlocal "github.com/containerd/containerd/v2/plugins/content/local"
	"github.com/containerd/errdefs"
)

// layout opens an OCI layout for writing, once a directory: cells that are built
// at the same time write the same blobs, and the locks that keep them apart live
// in the object.
func (b *Builder) layout(dir string) (content.Store, error) {
	b.layoutsMu.Lock()
	defer b.layoutsMu.Unlock()
	if out := b.layouts[dir]; out != nil {
		return out, nil
	}
	out, err := contentlocal.NewStore(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot write the OCI layout: %w", err)
	}
	b.layouts[dir] = patient{out}
	return b.layouts[dir], nil
}

// patient is a content store that waits for whoever writes a blob just now, where
// the store itself would refuse, and the engine would ask again and again.
type patient struct{ content.Store }

func (p patient) Writer(ctx context.Context, opts ...content.WriterOpt) (content.Writer, error) {
	for {
		w, err := p.Store.Writer(ctx, opts...)
		if !errdefs.IsUnavailable(err) {
			return w, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
