package builder

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/errdefs"
	ocispecs "github.com/opencontainers/image-spec/specs-go/v1"
)

// beside makes a layout take what an engine on this machine has made from the
// engine's own files. Sent through the session, the same bytes are copied five
// times, which takes as long as compressing them.
func (b *Builder) beside(out content.Store) content.Store {
	if b.blobs == "" {
		return out
	}
	return nearby{Store: out, blobs: b.blobs}
}

// nearby is a content store that first looks whether it finds a blob on this machine.
type nearby struct {
	content.Store
	blobs string // laid out as blobs/ of an OCI layout
}

// Writer answers that the blob is there once it has copied it, and else hands on.
func (n nearby) Writer(ctx context.Context, opts ...content.WriterOpt) (content.Writer, error) {
	var o content.WriterOpts
	for _, opt := range opts {
		if err := opt(&o); err != nil {
			return nil, err
		}
	}
	if o.Desc.Digest.Validate() == nil && n.copy(ctx, o.Desc) == nil {
		return nil, fmt.Errorf("blob %s: %w", o.Desc.Digest, errdefs.ErrAlreadyExists)
	}
	return n.Store.Writer(ctx, opts...)
}

// copy takes no one's word for what a file holds: the store hashes what it writes.
// It is no link, since damage to one file must not be damage to both.
func (n nearby) copy(ctx context.Context, desc ocispecs.Descriptor) error {
	f, err := os.Open(filepath.Join(n.blobs, desc.Digest.Algorithm().String(), desc.Digest.Encoded()))
	if err != nil {
		return err
	}
	defer f.Close()
	ref := "nearby-" + desc.Digest.String()
	err = content.WriteBlob(ctx, n.Store, ref, f, desc)
	if err != nil {
		_ = n.Abort(context.WithoutCancel(ctx), ref)
	}
	return err
}
