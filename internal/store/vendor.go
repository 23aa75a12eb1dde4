package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	"github.com/imgforge/imgforge/internal/plan"
)

// Kept is a mirror profile of a directory that Keep has filled.
func Kept(name, dir string) (Profile, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Profile{}, err
	}
	blobs := filepath.Join(abs, "blobs", "sha256")
	if info, err := os.Stat(blobs); err != nil || !info.IsDir() {
		return Profile{}, fmt.Errorf("%s is no directory that imgforge vendor has filled: it has no blobs/sha256", dir)
	}
	files := &http.Transport{}
	files.RegisterProtocol("file", http.NewFileTransport(http.Dir(blobs)))
	return Profile{
		Name: name, AnyHost: true,
		File:   func(b plan.Blob) string { return (&url.URL{Scheme: "file", Path: "/" + b.SHA256}).String() },
		Client: &http.Client{Transport: files},
	}, nil
}

// Keep copies stored blobs to dir/blobs/sha256, each whole or not at all, and
// returns how many were not there before. Those of the right size are left alone:
// whoever takes them checks their hash. said is told after each.
func (s *Store) Keep(ctx context.Context, dir string, blobs []plan.Blob, said func(done int)) (copied int, err error) {
	into := filepath.Join(dir, "blobs", "sha256")
	if err := os.MkdirAll(into, 0o755); err != nil {
		return 0, err
	}
	for i, b := range blobs {
		fresh, err := s.keep(ctx, filepath.Join(into, b.SHA256), b)
		if err != nil {
			if isFull(err) {
				return copied, fmt.Errorf("no space in %s for %s; what is there is kept and gone on from: %w", dir, b.Name, err)
			}
			return copied, fmt.Errorf("keep %s: %w", b.Name, err)
		}
		if fresh {
			copied++
		}
		said(i + 1)
	}
	return copied, nil
}

func (s *Store) keep(ctx context.Context, to string, b plan.Blob) (fresh bool, err error) {
	from, err := os.Open(s.Path(b.SHA256))
	if err != nil {
		return false, err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return false, err
	}
	if there, err := os.Stat(to); err == nil && there.Size() == info.Size() {
		return false, nil
	}
	tmp, err := os.CreateTemp(filepath.Dir(to), ".new-")
	if err != nil {
		return false, err
	}
	defer func() {
		tmp.Close()
		os.Remove(tmp.Name()) // gone already when it went well
	}()
	h := sha256.New()
	if _, err := io.Copy(io.MultiWriter(tmp, h), contextReader{ctx, from}); err != nil {
		return false, err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != b.SHA256 {
		return false, fmt.Errorf("it is damaged in the store: %s; delete that file and run this again", s.Path(b.SHA256))
	}
	if err := tmp.Chmod(0o644); err != nil {
		return false, err
	}
	if err := tmp.Sync(); err != nil {
		return false, err
	}
	return true, os.Rename(tmp.Name(), to)
}

// Transport is how requests leave this machine: through its proxies, and with the
// certificate authorities it trusts.
func (e Environment) Transport() http.RoundTripper { return newClient(6, e).Transport }
