package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// partial is a download in flight: a file that outlives the process, held by one
// owner at a time.
type partial struct {
	store *Store
	sum   string // of the blob it shall become
	file  *os.File
	size  int64
	hash  hash.Hash // of the first size bytes
}

// openPartial takes hold of the partial file of a blob, with what earlier runs
// left in it. While another process has it, it waits. It returns nil when the
// blob is in the store by then.
func (s *Store) openPartial(ctx context.Context, sum string) (*partial, error) {
	for {
		p, err := s.takePartial(sum)
		if err != nil || p != nil {
			return p, err
		}
		if s.Has(sum) {
			return nil, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// takePartial returns nil when the file cannot be had now: another process holds
// it, or it became the blob.
func (s *Store) takePartial(sum string) (*partial, error) {
	path := filepath.Join(s.partials(), sum)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	p := &partial{store: s, sum: sum, file: f, hash: sha256.New()}
	switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil, f.Close()
	case err != nil:
		return nil, errors.Join(err, f.Close())
	}
	// Its last owner may have made it the blob between our open and our lock.
	mine, err := f.Stat()
	named, nerr := os.Stat(path)
	if err != nil || nerr != nil || !os.SameFile(mine, named) {
		return nil, f.Close()
	}
	if s.Has(sum) {
		return nil, errors.Join(os.Remove(path), f.Close())
	}
	if p.size, err = io.Copy(p.hash, f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return p, nil
}

// Write appends.
func (p *partial) Write(b []byte) (int, error) {
	n, err := p.file.WriteAt(b, p.size)
	p.hash.Write(b[:n])
	p.size += int64(n)
	return n, err
}

// reset empties it.
func (p *partial) reset() error {
	p.size = 0
	p.hash.Reset()
	return p.file.Truncate(0)
}

// digest is the sha256 of what is there.
func (p *partial) digest() string { return hex.EncodeToString(p.hash.Sum(nil)) }

// finish makes it the blob. Its digest must be the blob's.
func (p *partial) finish() error { return p.store.keep(p.file, p.sum) }

// close lets go of it. What it holds stays for the next run; an empty one goes.
func (p *partial) close() {
	if p.size == 0 {
		_ = os.Remove(p.file.Name()) // only litter
	}
	_ = p.file.Close() // closed already when finished
}
