package builder

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/containerd/containerd/v2/core/content"
	contentlocal "github.com/containerd/containerd/v2/plugins/content/local"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
	ocispecs "github.com/opencontainers/image-spec/specs-go/v1"
)

// engineBlob leaves data among an engine's blobs under the digest of other data.
func engineBlob(t *testing.T, blobs string, d digest.Digest, data []byte) string {
	t.Helper()
	path := filepath.Join(blobs, "sha256", d.Encoded())
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o444)); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLayoutCopiesWhatTheEngineHas(t *testing.T) {
	ctx, layer := context.Background(), bytes.Repeat([]byte("layer"), 1000)
	desc := ocispecs.Descriptor{Digest: digest.FromBytes(layer), Size: int64(len(layer))}
	tests := map[string]struct {
		held   []byte // what the engine's file of that name holds; nil for none
		copied bool
	}{
		"held": {layer, true}, "not held": {nil, false}, "damaged": {[]byte("other"), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			blobs, dir := t.TempDir(), t.TempDir()
			var path string
			if tt.held != nil {
				path = engineBlob(t, blobs, desc.Digest, tt.held)
			}
			b := &Builder{blobs: blobs, layouts: map[string]*layout{}}
			out, err := b.layout(dir)
			if err != nil {
				t.Fatal(err)
			}
			w, err := out.Writer(ctx, content.WithRef("x"), content.WithDescriptor(desc))
			if errdefs.IsAlreadyExists(err) != tt.copied {
				t.Fatalf("the writer answers %v", err)
			}
			if !tt.copied {
				if err := content.Copy(ctx, w, bytes.NewReader(layer), desc.Size, desc.Digest); err != nil {
					t.Fatal(err)
				}
			}
			got, err := content.ReadBlob(ctx, out, desc)
			if err != nil || !bytes.Equal(got, layer) {
				t.Fatalf("the layout holds something else: %v", err)
			}
			mine, _ := os.Stat(filepath.Join(dir, "blobs", "sha256", desc.Digest.Encoded()))
			if theirs, _ := os.Stat(path); os.SameFile(mine, theirs) {
				t.Error("damage to the layout would be damage to the engine")
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "ingest", "*")); len(left) > 0 {
				t.Errorf("unfinished writes are left: %v", left)
			}
			if _, err := out.Writer(ctx, content.WithRef("y"), content.WithDescriptor(desc)); !errdefs.IsAlreadyExists(err) {
				t.Errorf("a second cell that has the blob is answered %v", err)
			}
		})
	}
}

// An engine elsewhere has no files here: nothing may be looked for.
func TestLayoutOfAnEngineElsewhere(t *testing.T) {
	out, err := contentlocal.NewStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if got := (&Builder{}).beside(out); got != out {
		t.Errorf("the layout is a %T", got)
	}
}
