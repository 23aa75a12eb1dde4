package builder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/containerd/containerd/v2/core/content"
	contentlocal "github.com/containerd/containerd/v2/plugins/content/local"
	"github.com/containerd/errdefs"
	"github.com/gofrs/flock"
	"github.com/opencontainers/go-digest"
	ocispecs "github.com/opencontainers/image-spec/specs-go/v1"
)

// LockLayout makes the directory of an OCI layout and takes it for this program
// alone until unlock is called: two that write one layout at once would mix their
// blobs. The lock is on the directory itself, so nothing is left in it.
func LockLayout(dir string) (unlock func() error, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot write the OCI layout: %w", err)
	}
	lock := flock.New(dir, flock.SetFlag(os.O_RDONLY))
	got, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("cannot lock %s: %w", dir, err)
	}
	if !got {
		return nil, fmt.Errorf("another imgforge is writing to %s; wait for it, or give this run another --output", dir)
	}
	return lock.Unlock, nil
}

// layout opens an OCI layout for writing, once a directory: cells that are built
// at the same time write the same blobs, and the locks that keep them apart live
// in the object.
func (b *Builder) layout(dir string) (*layout, error) {
	b.layoutsMu.Lock()
	defer b.layoutsMu.Unlock()
	if out := b.layouts[dir]; out != nil {
		return out, nil
	}
	out, err := contentlocal.NewStore(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot write the OCI layout: %w", err)
	}
	b.layouts[dir] = &layout{Store: b.beside(out)}
	return b.layouts[dir], nil
}

// layout is a content store that waits for whoever writes a blob just now, where
// the store itself would refuse, and the engine would ask again and again. It
// takes no earlier run's word for a blob: each is hashed once, and one that is
// damaged is written anew.
type layout struct {
	content.Store
	blobs sync.Map // digest to func() error that checks it, once
}

// Info is asked before a blob is written that may be there.
func (l *layout) Info(ctx context.Context, d digest.Digest) (content.Info, error) {
	if err := l.check(ctx, d); err != nil {
		return content.Info{}, err
	}
	return l.Store.Info(ctx, d)
}

func (l *layout) Writer(ctx context.Context, opts ...content.WriterOpt) (content.Writer, error) {
	var o content.WriterOpts
	for _, opt := range opts {
		if err := opt(&o); err != nil {
			return nil, err
		}
	}
	if o.Desc.Digest != "" {
		if err := l.check(ctx, o.Desc.Digest); err != nil {
			return nil, err
		}
	}
	for {
		w, err := l.Store.Writer(ctx, opts...)
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

// check removes a blob that is not what it is called. What is not there yet will
// be checked by the store as it is written.
func (l *layout) check(ctx context.Context, d digest.Digest) error {
	once, _ := l.blobs.LoadOrStore(d, sync.OnceValue(func() error {
		r, err := l.Store.ReaderAt(ctx, ocispecs.Descriptor{Digest: d})
		if err != nil {
			return nil
		}
		verifier := d.Verifier()
		_, err = io.Copy(verifier, content.NewReader(r))
		if err = errors.Join(err, r.Close()); err != nil || verifier.Verified() {
			return err
		}
		return l.Store.Delete(ctx, d)
	}))
	return once.(func() error)()
}
