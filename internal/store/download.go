package store

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// maxBlob bounds a file whose size the lock does not say, in bytes.
const maxBlob = 32 << 30

// step is how many new bytes make a failed try worth repeating without end.
const step = 1 << 20

// download is one file on its way into the store. While it holds the lock on
// the partial file, no one else writes there.
type download struct {
	run   *run
	tally *tally
	want  wanted

	file *os.File
	hash hash.Hash
	have int64 // bytes in file, all of them hashed
	most int64 // the most there ever were, in whole steps
}

// fetch brings the file into the store. A *FetchError has this one file.
func (d *download) fetch(ctx context.Context, profiles []Profile) error {
	blob := d.want.blob
	if err := d.run.store.checkSize(ctx, blob); err != nil {
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
		d.tidy()
		return err
	}
	if !done {
		d.tidy()
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

// tryAll asks each mirror in order of health until one gives the file.
func (d *download) tryAll(ctx context.Context, profiles []Profile) (attempts []Attempt, done bool, err error) {
	for _, p := range d.run.health.order(profiles) {
		sources, why := d.run.sources(p, d.want)
		if why != "" {
			attempts = append(attempts, Attempt{Mirror: p.Name, Reason: why})
			continue
		}
		for _, s := range sources {
			err := d.try(ctx, s)
			if err == nil {
				d.run.health.praise(s.place)
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
func (d *download) try(ctx context.Context, s source) error {
	if reason := d.run.health.down(s.profile.Name, s.base); reason != "" {
		return &failure{effect: next, reason: reason}
	}
	u, err := s.locate(ctx)
	if err != nil {
		return err
	}
	return d.run.patiently(ctx, s.place, func() error {
		resumed := d.have > 0
		err := d.gaining(d.receive(ctx, s.place, u))
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

// gaining marks a failure that came after a good piece of the file. Bytes that
// had been here before do not count, so a mirror cannot keep this up for ever.
func (d *download) gaining(err error) error {
	var fail *failure
	if d.have < d.most+step || !errors.As(err, &fail) {
		return err
	}
	d.most = d.have
	with := *fail
	with.gained = true
	return &with
}

// wrongBytes is a file that is not the one wanted.
type wrongBytes struct{ detail string }

func (w *wrongBytes) Error() string { return "served other bytes" + w.detail }

// receive asks for the rest of the file and takes what comes.
func (d *download) receive(ctx context.Context, at place, u *url.URL) error {
	header := http.Header{"Accept-Encoding": {"identity"}}
	inPieces := d.inPieces(at)
	if inPieces {
		header.Set("Range", fmt.Sprintf("bytes=%d-%d", d.have, d.have+d.run.pieces.size-1))
	} else if d.have > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", d.have))
	}
	resp, err := d.run.get(ctx, at.profile, u, header)
	var fail *failure
	if errors.As(err, &fail) && fail.status == http.StatusRequestedRangeNotSatisfiable && d.have > 0 {
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
	if inPieces && resp.StatusCode == http.StatusPartialContent {
		return d.takePieces(ctx, at, u, resp)
	}
	if inPieces {
		d.run.health.noPieces(at)
	}
	return d.take(resp, u)
}

// continues reports whether a response goes on where the file ends.
func (d *download) continues(resp *http.Response) bool {
	if resp.StatusCode != http.StatusPartialContent {
		return d.have == 0
	}
	return startsAt(resp, d.have)
}

// startsAt reports whether a part of a file begins at a byte.
func startsAt(resp *http.Response, from int64) bool {
	return strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", from))
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
