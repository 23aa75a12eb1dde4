package builder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/rootfs"
)

// bootstrap makes the root tar of a base's .debs or tarball, or finds the one made
// before: it is a pure function of them, so the store remembers its digest. Cells
// that want it at once share the work. A base image needs none.
func (b *Builder) bootstrap(ctx context.Context, p *plan.Plan) (plan.Blob, error) {
	if p.Image != nil {
		return plan.Blob{}, nil
	}
	memo := b.memo(p)
	made, err, _ := b.roots.Do(memo, func() (any, error) {
		if root, ok := b.remembered(memo); ok {
			return root, nil
		}
		r, w := io.Pipe()
		go func() { w.CloseWithError(b.writeRoot(w, p)) }()
		sum, size, err := b.store.Put(ctx, r)
		_ = r.CloseWithError(err)
		if err != nil {
			return nil, fmt.Errorf("cannot unpack the base: %w", err)
		}
		return plan.Blob{Name: "root.tar", SHA256: sum, Size: size}, writeMemo(memo, sum)
	})
	root, _ := made.(plan.Blob)
	return root, err
}

func (b *Builder) writeRoot(w io.Writer, p *plan.Plan) error {
	if p.Rootfs == nil {
		return rootfs.FromDebs(w, b.opened(p.Base), p.Epoch)
	}
	f, err := b.verified(*p.Rootfs)
	if err != nil {
		return err
	}
	defer f.Close()
	return rootfs.FromTar(w, p.Rootfs.Name, f, p.Epoch)
}

// memo is the file that remembers a root's digest.
func (b *Builder) memo(p *plan.Plan) string {
	from := p.Base
	if p.Rootfs != nil {
		from = []plan.Blob{*p.Rootfs}
	}
	return filepath.Join(b.store.Dir(), "derived", rootKey(from, p.Epoch))
}

func (b *Builder) remembered(memo string) (plan.Blob, bool) {
	data, err := os.ReadFile(memo)
	if err != nil {
		return plan.Blob{}, false
	}
	sum := strings.TrimSpace(string(data))
	info, err := os.Stat(b.store.Path(sum))
	if err != nil {
		return plan.Blob{}, false
	}
	return plan.Blob{Name: "root.tar", SHA256: sum, Size: info.Size()}, true
}

// writeMemo writes it whole or not at all: other programs may share the store.
func writeMemo(memo, sum string) error {
	if err := os.MkdirAll(filepath.Dir(memo), 0o755); err != nil {
		return err
	}
	tmp := fmt.Sprintf("%s.%d", memo, os.Getpid())
	if err := os.WriteFile(tmp, []byte(sum+"\n"), 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, memo)
}

// Forget drops what the store remembers of a plan's root, so that it is made anew.
func (b *Builder) Forget(p *plan.Plan) error {
	memo := b.memo(p)
	root, ok := b.remembered(memo)
	if !ok {
		return nil
	}
	return errors.Join(os.Remove(memo), os.Remove(b.store.Path(root.SHA256)))
}

// opened gives the .debs to rootfs.
func (b *Builder) opened(debs []plan.Blob) []rootfs.Deb {
	out := make([]rootfs.Deb, len(debs))
	for i, d := range debs {
		out[i] = rootfs.Deb{Name: d.Name, Open: func() (rootfs.File, error) { return b.verified(d) }}
	}
	return out
}

// verified opens a file of the store and hashes it first: the engine checks what
// it is given itself, but a root made of these it could not.
func (b *Builder) verified(blob plan.Blob) (*os.File, error) {
	f, err := os.Open(b.store.Path(blob.SHA256))
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if hex.EncodeToString(h.Sum(nil)) != blob.SHA256 {
		return nil, errors.Join(fmt.Errorf("%w: %s", ErrDamaged, blob.Name), f.Close())
	}
	_, err = f.Seek(0, io.SeekStart)
	return f, err
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
