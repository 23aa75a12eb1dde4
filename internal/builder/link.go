package builder

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
)

// beside makes a layout take what an engine on this machine has made as a link to
// the engine's own file. Sent through the session, the same bytes are copied five
// times, which takes longer than compressing them.
func (b *Builder) beside(out content.Store, dir string) content.Store {
	if b.blobs == "" {
		return out
	}
	return linked{Store: out, from: b.blobs, to: filepath.Join(dir, "blobs")}
}

// linked is a content store that first looks whether it can have a blob as a link.
type linked struct {
	content.Store
	from, to string // laid out as blobs/ of an OCI layout
}

// Writer answers that the blob is there once it has linked it, and else hands on:
// the directories may be on different file systems.
func (l linked) Writer(ctx context.Context, opts ...content.WriterOpt) (content.Writer, error) {
	var o content.WriterOpts
	for _, opt := range opts {
		if err := opt(&o); err != nil {
			return nil, err
		}
	}
	if d := o.Desc.Digest; d.Validate() == nil && l.link(d) == nil {
		return nil, fmt.Errorf("blob %s: %w", d, errdefs.ErrAlreadyExists)
	}
	return l.Store.Writer(ctx, opts...)
}

// link takes no one's word for what a file holds, as the store itself would not.
func (l linked) link(d digest.Digest) error {
	name := filepath.Join(d.Algorithm().String(), d.Encoded())
	from, to := filepath.Join(l.from, name), filepath.Join(l.to, name)
	if _, err := os.Lstat(to); err == nil {
		return os.ErrExist // the store itself says so
	}
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	verifier := d.Verifier()
	if _, err := io.Copy(verifier, f); err != nil {
		return err
	}
	if !verifier.Verified() {
		return fmt.Errorf("%s holds something else", from)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.Link(from, to)
}
