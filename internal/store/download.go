package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/imgforge/imgforge/internal/plan"
)

// tries is how often a mirror is asked for one file before the next one is.
const tries = 3

// headway is how many bytes a broken try must have brought for it not to count.
const headway = 1 << 20

// try makes attempts on a site until one succeeds or there is no use in more,
// and notes what that says of the site's health.
func (r *run) try(ctx context.Context, s *site, file string, attempt func() *failure) *failure {
	var failed *failure
	wait := r.backoff()
	for n := 1; ; n++ {
		if reason := s.reason(); reason != "" {
			return cmpOr(failed, &failure{reason: "given up in this run: " + reason})
		}
		if failed = s.host.do(ctx, attempt); failed == nil || failed.kind != flaky || ctx.Err() != nil {
			break
		}
		if failed.brought >= headway {
			n, wait = 0, r.backoff()
		}
		if failed.after > r.maxWait() {
			failed.reason += fmt.Sprintf(" and asks to wait %s", failed.after.Round(time.Second))
			break
		}
		if n >= tries {
			break
		}
		r.meter.event(Event{Kind: Retrying, File: file, Mirror: s.profile.Name, Reason: failed.reason})
		pause(ctx, max(failed.after, wait+rand.N(wait/2+1)))
		wait *= 2
	}
	if ctx.Err() != nil {
		return &failure{reason: "stopped"}
	}
	if failed != nil && failed.fatal {
		failed.kind = dead
	}
	if down := s.judge(failed); down != "" {
		r.gaveUp(s, down)
	}
	return failed
}

func cmpOr(a, b *failure) *failure {
	if a != nil {
		return a
	}
	return b
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// do runs one attempt when the host has a slot for it.
func (h *server) do(ctx context.Context, attempt func() *failure) *failure {
	select {
	case <-ctx.Done():
		return &failure{reason: "stopped"}
	case h.slots <- struct{}{}:
	}
	defer func() { <-h.slots }()
	return attempt()
}

// download brings one blob from one site.
type download struct {
	*run
	site     *site
	blob     plan.Blob
	part     *partial
	url      *url.URL // of the file, once known
	received int64
}

// at is where a failure happened.
func (d *download) at(f *failure) *url.URL {
	if f.url != nil {
		return f.url
	}
	return d.url
}

// attempt finds the file on the site, transfers it, or the rest of it, and
// makes it a blob if its hash is right.
func (d *download) attempt(ctx context.Context, o origin) *failure {
	if o.wheel {
		at, failed := d.locate(ctx, d.site, o, d.blob)
		if failed != nil {
			return failed
		}
		d.url = at
	} else {
		d.url = join(d.site.root, o.path)
	}
	resumed := d.part.size > 0
	failed := d.transfer(ctx)
	if failed == nil && d.part.digest() != d.blob.SHA256 && resumed {
		// The first part may have come from elsewhere: judge this mirror by
		// what it alone serves.
		if failed = d.restart(); failed == nil {
			failed = d.transfer(ctx)
		}
	}
	if failed != nil {
		return failed
	}
	if got := d.part.digest(); got != d.blob.SHA256 {
		if failed := d.restart(); failed != nil {
			return failed
		}
		return &failure{reason: "wrong bytes: sha256 is " + got + ", locked is " + d.blob.SHA256, kind: strange}
	}
	if err := d.part.finish(); err != nil {
		return &failure{reason: err.Error(), kind: local}
	}
	return nil
}

// restart throws away what is there.
func (d *download) restart() *failure {
	d.meter.add(-d.part.size)
	if err := d.part.reset(); err != nil {
		return &failure{reason: err.Error(), kind: local}
	}
	return nil
}

// transfer appends what the partial file lacks.
func (d *download) transfer(ctx context.Context) *failure {
	size := d.blob.Size
	if size > 0 && d.part.size == size {
		return nil
	}
	if size > 0 && d.part.size > size {
		if failed := d.restart(); failed != nil {
			return failed
		}
	}
	header := http.Header{"Accept-Encoding": {"identity"}}
	if d.part.size > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", d.part.size))
	}
	resp, failed := d.get(ctx, d.site, d.url, header)
	if failed != nil {
		return failed
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusPartialContent && strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", d.part.size)):
	case resp.StatusCode == http.StatusOK, d.part.size > 0 && (resp.StatusCode == http.StatusPartialContent || resp.StatusCode == http.StatusRequestedRangeNotSatisfiable):
		if failed := d.restart(); failed != nil {
			return failed
		}
		if resp.StatusCode != http.StatusOK {
			return d.transfer(ctx) // once: it asks for no range now
		}
	default:
		return refused(resp)
	}
	return d.receive(resp)
}

// receive appends a body, which must end where the lock says.
func (d *download) receive(resp *http.Response) *failure {
	size, start := d.blob.Size, d.part.size
	if size > 0 && resp.ContentLength >= 0 && start+resp.ContentLength != size {
		return &failure{reason: fmt.Sprintf("wrong bytes: it has %d, locked are %d", start+resp.ContentLength, size), kind: strange}
	}
	body := io.Reader(resp.Body)
	if size > 0 {
		body = io.LimitReader(body, size-start+1)
	}
	n, err := io.Copy(counted{d}, body)
	var bad *localError
	switch {
	case errors.As(err, &bad):
		return &failure{reason: bad.Error(), kind: local}
	case err != nil:
		failed := d.classify(err)
		failed.brought = n
		return failed
	case size > 0 && d.part.size > size:
		if failed := d.restart(); failed != nil {
			return failed
		}
		return &failure{reason: fmt.Sprintf("wrong bytes: it has more than the %d that are locked", size), kind: strange}
	case size > 0 && d.part.size < size:
		return &failure{reason: fmt.Sprintf("ended after %d of %d bytes", d.part.size, size), kind: flaky, brought: n}
	}
	return nil
}

// counted writes into the partial file and counts.
type counted struct{ d *download }

func (c counted) Write(b []byte) (int, error) {
	n, err := c.d.part.Write(b)
	c.d.received += int64(n)
	c.d.meter.add(int64(n))
	if err != nil {
		return n, &localError{err}
	}
	return n, nil
}

// localError is a failure of this machine's disk, for which no mirror is to blame.
type localError struct{ error }
