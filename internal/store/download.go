package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// maxBlob bounds a file whose size the lock does not say, in bytes.
const maxBlob = 32 << 30

// download is one file on its way into the store. While it holds the lock on
// the partial file, no one else writes there.
type download struct {
	run   *run
	tally *tally
	want  wanted

	file *os.File
	hash hash.Hash
	have int64 // bytes in file, all of them hashed
}

// fetch brings the file into the store. A *FetchError has this one file.
func (d *download) fetch(ctx context.Context, profiles []Profile) error {
	blob := d.want.blob
	if err := d.run.store.dropMisshapen(blob.SHA256, blob.Size); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	unlock, err := d.open(ctx)
	if err != nil {
		return err
	}
	if d.file == nil {
		d.present()
		return nil
	}
	defer unlock()
	if d.complete() {
		return d.finish()
	}
	attempts, done, err := d.tryAll(ctx, profiles)
	if err != nil {
		return err
	}
	if !done {
		return &FetchError{Files: []FileFailure{{Blob: blob, Attempts: attempts}}}
	}
	return d.finish()
}

// present counts a file that was in the store already.
func (d *download) present() {
	size, extra := d.want.blob.Size, int64(0)
	if info, err := os.Stat(d.run.store.Path(d.want.blob.SHA256)); err == nil && size == 0 {
		size, extra = info.Size(), info.Size()
	}
	d.tally.moved(size, 0)
	d.tally.finished(extra, false)
}

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

// tryAll asks each mirror in order of health until one gives the file.
func (d *download) tryAll(ctx context.Context, profiles []Profile) (attempts []Attempt, done bool, err error) {
	for _, p := range d.run.health.order(profiles) {
		sources, why := d.run.sources(p, d.want)
		if why != "" {
			attempts = append(attempts, Attempt{Mirror: p.Name, Reason: why})
			continue
		}
		for _, s := range sources {
			err := d.try(ctx, p, s)
			if err == nil {
				return attempts, true, nil
			}
			attempt, err := asAttempt(p, s.base, err)
			if err != nil {
				return nil, false, err
			}
			d.tally.record(*attempt, d.want.blob.Name)
			attempts = append(attempts, *attempt)
		}
	}
	return attempts, false, nil
}

// try asks one source.
func (d *download) try(ctx context.Context, p *Profile, s source) error {
	if reason := d.run.health.down(p.Name, s.base); reason != "" {
		return &failure{effect: next, reason: reason}
	}
	u, err := s.locate(ctx)
	if err != nil {
		return err
	}
	return d.run.patiently(ctx, p.Name, func() error {
		resumed := d.have > 0
		err := d.receive(ctx, p, u)
		var wrong *wrongBytes
		if !errors.As(err, &wrong) {
			return err
		}
		if err := d.discard(); err != nil {
			return fmt.Errorf("store: %w", err)
		}
		if resumed { // the first part may be another's fault
			return &failure{effect: retry, reason: wrong.Error(), url: redactURL(u), wait: "0"}
		}
		return &failure{effect: slow, reason: wrong.Error(), url: redactURL(u)}
	})
}

// wrongBytes is a file that is not the one wanted.
type wrongBytes struct{ detail string }

func (w *wrongBytes) Error() string { return "served other bytes" + w.detail }

// receive asks for the rest of the file and takes what comes.
func (d *download) receive(ctx context.Context, p *Profile, u *url.URL) error {
	header := http.Header{"Accept-Encoding": {"identity"}}
	if d.have > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", d.have))
	}
	resp, err := d.run.get(ctx, p, u, header)
	var fail *failure
	if errors.As(err, &fail) && strings.HasPrefix(fail.reason, "416") && d.have > 0 {
		return errors.Join(d.discard(), err)
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if !d.continues(resp) {
		if err := d.discard(); err != nil {
			return fmt.Errorf("store: %w", err)
		}
		if resp.StatusCode == http.StatusPartialContent {
			return &failure{effect: retry, reason: "answered with another range", url: redactURL(u), wait: "0"}
		}
	}
	return d.take(resp, u)
}

// continues reports whether a response goes on where the file ends.
func (d *download) continues(resp *http.Response) bool {
	if resp.StatusCode != http.StatusPartialContent {
		return d.have == 0
	}
	return strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", d.have))
}

// take appends a response's body to the file and judges the whole.
func (d *download) take(resp *http.Response, u *url.URL) error {
	size := d.want.blob.Size
	if size > 0 && resp.ContentLength >= 0 && d.have+resp.ContentLength != size {
		return &wrongBytes{fmt.Sprintf(": %d bytes, not %d", d.have+resp.ContentLength, size)}
	}
	limit := int64(maxBlob)
	if size > 0 {
		limit = size
	}
	n, err := io.Copy(d, io.LimitReader(resp.Body, limit-d.have+1))
	switch {
	case err != nil:
		return err
	case d.have > limit:
		return &wrongBytes{fmt.Sprintf(": more than %d", limit)}
	case d.complete():
		return nil
	case size > 0 && d.have < size:
		return &failure{effect: retry, reason: fmt.Sprintf("the body ended after %d of %d bytes", d.have, size), url: redactURL(u)}
	case n == 0:
		return &failure{effect: retry, reason: "sent nothing", url: redactURL(u)}
	}
	return &wrongBytes{}
}

// Write appends to the file.
func (d *download) Write(p []byte) (int, error) {
	n, err := d.file.Write(p)
	d.hash.Write(p[:n])
	d.have += int64(n)
	d.tally.moved(int64(n), int64(n))
	if err != nil {
		return n, fmt.Errorf("store: %w", err)
	}
	return n, nil
}
