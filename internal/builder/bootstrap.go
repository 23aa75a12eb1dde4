package builder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/rootfs"
)

// bootstrap makes the root tar of a base's .debs, or finds the one made before:
// it is a pure function of them, so the store remembers its digest.
func (b *Builder) bootstrap(ctx context.Context, debs []plan.Blob, epoch int64) (plan.Blob, error) {
	memo := filepath.Join(b.store.Dir(), "derived", rootKey(debs, epoch))
	if data, err := os.ReadFile(memo); err == nil {
		sum := strings.TrimSpace(string(data))
		if info, err := os.Stat(b.store.Path(sum)); err == nil && b.store.Has(sum) {
			return plan.Blob{Name: "root.tar", SHA256: sum, Size: info.Size()}, nil
		}
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(rootfs.FromDebs(w, b.opened(debs), epoch)) }()
	sum, size, err := b.store.Put(ctx, r)
	_ = r.CloseWithError(err)
	if err != nil {
		return plan.Blob{}, fmt.Errorf("cannot unpack the base's packages: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(memo), 0o755); err != nil {
		return plan.Blob{}, err
	}
	return plan.Blob{Name: "root.tar", SHA256: sum, Size: size}, os.WriteFile(memo, []byte(sum+"\n"), 0o644)
}

func (b *Builder) opened(debs []plan.Blob) []rootfs.Deb {
	out := make([]rootfs.Deb, len(debs))
	for i, d := range debs {
		out[i] = rootfs.Deb{Name: d.Name, Open: func() (rootfs.File, error) { return os.Open(b.store.Path(d.SHA256)) }}
	}
	return out
}

// rootKey changes whenever the tar would; its version when the tar's making does.
func rootKey(debs []plan.Blob, epoch int64) string {
	data, _ := json.Marshal(struct {
		Version int
		Debs    []plan.Blob
		Epoch   int64
	}{1, debs, epoch})
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
