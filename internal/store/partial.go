package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gofrs/flock"
)

// open locks and opens the partial file and hashes what it holds. The file stays
// nil when the store has the whole of it.
func (d *download) open(ctx context.Context) (unlock func(), err error) {
	sum := d.want.blob.SHA256
	name := d.run.store.partial(sum)
	for !d.run.store.Has(sum) {
		lock := flock.New(name, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o644))
		if _, err := lock.TryLockContext(ctx, 100*time.Millisecond); err != nil {
			return nil, errors.Join(err, lock.Close())
		}
		file, err := os.OpenFile(name, os.O_RDWR, 0)
		if errors.Is(err, os.ErrNotExist) {
			lock.Close() // who held it has renamed it into the store
			continue
		}
		if err != nil {
			lock.Close()
			return nil, fmt.Errorf("store: %w", err)
		}
		unlock = func() { file.Close(); lock.Close() }
		switch {
		case !sameFile(lock, file):
			unlock()
			continue
		case d.run.store.Has(sum): // waiting has made this file anew, after that rename
			err = os.Remove(name)
			unlock()
			return func() {}, err
		}
		d.file = file
		if err := d.rehash(ctx); err != nil {
			unlock()
			return nil, err
		}
		return unlock, nil
	}
	return func() {}, nil
}

func sameFile(lock *flock.Flock, f *os.File) bool {
	a, errA := lock.Stat()
	b, errB := f.Stat()
	return errA == nil && errB == nil && os.SameFile(a, b)
}

func (d *download) rehash(ctx context.Context) error {
	d.hash = sha256.New()
	n, err := io.Copy(d.hash, contextReader{ctx, d.file})
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if d.have = n; n > 0 {
		d.tally.moved(n, 0)
	}
	if size := d.want.blob.Size; size > 0 && n >= size && !d.complete() {
		return d.discard()
	}
	return nil
}

// complete reports whether the file is here, whole and right.
func (d *download) complete() bool {
	size := d.want.blob.Size
	return (size == 0 || size == d.have) && hex.EncodeToString(d.hash.Sum(nil)) == d.want.blob.SHA256
}

// discard begins again from nothing. The file stays, for the lock is on it.
func (d *download) discard() error {
	d.tally.moved(-d.have, 0)
	d.have, d.hash = 0, sha256.New()
	_, err := d.file.Seek(0, io.SeekStart)
	return errors.Join(err, d.file.Truncate(0))
}

func (d *download) finish() error {
	if err := d.run.store.commit(d.file, d.want.blob.SHA256); err != nil {
		return fmt.Errorf("store %s: %w", d.want.blob.Name, err)
	}
	extra := int64(0)
	if d.want.blob.Size == 0 {
		extra = d.have
	}
	d.tally.finished(extra, true)
	return nil
}

// tidy removes the partial file when nothing is in it. Whoever waits for its lock
// sees that the name is gone.
func (d *download) tidy() {
	if d.have == 0 {
		os.Remove(d.file.Name())
	}
}

// Write appends to the file.
func (d *download) Write(p []byte) (int, error) {
	before := d.have
	err := d.add(p)
	n := d.have - before
	d.tally.moved(n, n)
	return int(n), err
}

// add appends bytes that are counted already.
func (d *download) add(p []byte) error {
	n, err := d.file.Write(p)
	d.hash.Write(p[:n])
	d.have += int64(n)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}
