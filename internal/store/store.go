// Package store is the content-addressed store and the downloader that fills it
// from mirrors. Every file is named by its sha256, so no mirror can change one,
// and any mirror that has it will do.
package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/imgforge/imgforge/internal/plan"
)

// Store is a directory of files named by their sha256, in the layout of a
// containerd content store: blobs/sha256/<hex>. Unfinished downloads are
// partial/<hex>. Several processes may share one.
type Store struct {
	dir string
}

// Open makes the store's directories below dir where they are missing.
func Open(dir string) (*Store, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	s := &Store{dir: abs}
	for _, sub := range []string{s.blobs(), s.partials()} {
		if err := os.MkdirAll(sub, 0o755); err != nil {
			return nil, fmt.Errorf("open the store: %w", err)
		}
	}
	return s, nil
}

// Look returns the store below dir as it is and makes nothing: where there is
// none, Has is false of every file.
func Look(dir string) *Store { return &Store{dir: dir} }

// Dir returns the absolute path of the store.
func (s *Store) Dir() string { return s.dir }

func (s *Store) blobs() string    { return filepath.Join(s.dir, "blobs", "sha256") }
func (s *Store) partials() string { return filepath.Join(s.dir, "partial") }

// Path returns where the file with this hex sha256 is, or would be. What is no
// sha256 gets a path that never exists.
func (s *Store) Path(sha256 string) string {
	if !isSHA256(sha256) {
		return filepath.Join(s.blobs(), "invalid")
	}
	return filepath.Join(s.blobs(), sha256)
}

func (s *Store) partial(sha256 string) string { return filepath.Join(s.partials(), sha256) }

// Has reports whether the store holds the whole file with this hex sha256.
func (s *Store) Has(sha256 string) bool {
	info, err := os.Stat(s.Path(sha256))
	return err == nil && info.Mode().IsRegular()
}

// Put stores what r holds and returns its hex sha256 and size in bytes. The file
// appears whole or not at all.
func (s *Store) Put(ctx context.Context, r io.Reader) (sha256sum string, size int64, err error) {
	f, err := os.CreateTemp(s.partials(), "put-")
	if err != nil {
		return "", 0, fmt.Errorf("store a file: %w", err)
	}
	defer func() {
		f.Close()
		os.Remove(f.Name()) // gone already when it went well
	}()
	h := sha256.New()
	size, err = io.Copy(io.MultiWriter(f, h), contextReader{ctx, r})
	if err != nil {
		return "", 0, fmt.Errorf("store a file: %w", err)
	}
	sum := hex.EncodeToString(h.Sum(nil))
	if err := s.commit(f, sum); err != nil {
		return "", 0, fmt.Errorf("store a file: %w", err)
	}
	return sum, size, nil
}

// Sweep hashes the files of blobs again and removes those that are not what their
// names say, so that they can be fetched anew. It returns how many it removed.
func (s *Store) Sweep(ctx context.Context, blobs []plan.Blob) (removed int, err error) {
	for _, b := range blobs {
		gone, err := s.removeDamaged(ctx, b.SHA256)
		if err != nil {
			return removed, err
		}
		if gone {
			removed++
		}
	}
	return removed, nil
}

// removeDamaged hashes a stored file, if there is one, and removes it when it is
// not what its name says.
func (s *Store) removeDamaged(ctx context.Context, sum string) (removed bool, err error) {
	f, err := os.Open(s.Path(sum))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	h := sha256.New()
	_, err = io.Copy(h, contextReader{ctx, f})
	f.Close()
	if err != nil || hex.EncodeToString(h.Sum(nil)) == sum {
		return false, err
	}
	return true, os.Remove(s.Path(sum))
}

// commit names a whole file by its content. It is synced first: after a power
// cut a name must not stand for bytes that were never written.
func (s *Store) commit(f *os.File, sum string) error {
	if err := errors.Join(f.Chmod(0o644), f.Sync()); err != nil {
		return err
	}
	return os.Rename(f.Name(), s.Path(sum))
}

// checkSize looks into a stored file of another size than the lock says. Damage
// is removed; a good file means that the lock is wrong, a *SizeError.
func (s *Store) checkSize(ctx context.Context, b plan.Blob) error {
	info, err := os.Stat(s.Path(b.SHA256))
	if b.Size == 0 || errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == b.Size {
		return nil
	}
	if err != nil {
		return err
	}
	if removed, err := s.removeDamaged(ctx, b.SHA256); err != nil || removed {
		return err
	}
	return &SizeError{b, info.Size()}
}

func isSHA256(s string) bool {
	if len(s) != 2*sha256.Size {
		return false
	}
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// contextReader ends with the context's error once it is done.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}
