package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// pieces says which files come in several ranges at once. What waits for its turn
// is in memory, at most size*at bytes a file, so that the partial file is always
// a beginning that any later run can go on from.
type pieces struct {
	from int64 // bytes that must be left of a file
	size int64 // bytes of a range
	at   int   // ranges at once, for one file
}

func (p pieces) orDefault() pieces {
	return pieces{cmp.Or(p.from, 64<<20), cmp.Or(p.size, 4<<20), cmp.Or(p.at, 4)}
}

// inPieces reports whether the rest of the file is worth several ranges at once.
func (d *download) inPieces(at place) bool {
	if d.run.health.whole(at) {
		return false
	}
	size := d.want.blob.Size
	return size == 0 && d.want.cuda != "" || size-d.have >= d.run.pieces.from // torch's wheels are large
}

// piece is a range of a file that waits for those before it.
type piece struct {
	from, to int64
	data     []byte
	err      error
	done     chan struct{}
}

// takePieces takes the first range from resp, and the others beside it.
func (d *download) takePieces(ctx context.Context, p place, u *url.URL, resp *http.Response) error {
	total, size := totalOf(resp), d.want.blob.Size
	switch {
	case total == 0:
		d.run.health.noPieces(p)
		return &failure{effect: retry, reason: "does not say how long the file is", url: redactURL(u), wait: "0"}
	case size > 0 && total != size:
		return &wrongBytes{fmt.Sprintf(": %d bytes, not %d", total, size)}
	case total > maxBlob:
		return &wrongBytes{fmt.Sprintf(": more than %d", int64(maxBlob))}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	first := min(d.have+d.run.pieces.size, total)
	slots := make(chan struct{}, d.run.pieces.at) // ranges that are under way or wait for their turn
	slots <- struct{}{}
	queue := d.askAhead(ctx, p, u, [2]int64{first, total}, slots)
	n, err := io.Copy(d, io.LimitReader(resp.Body, first-d.have))
	if err == nil && d.have < first {
		err = &failure{effect: retry, reason: fmt.Sprintf("a range ended after %d bytes", n), url: redactURL(u)}
	}
	_ = resp.Body.Close() // it has a place at its host, which the other ranges of all files wait for
	<-slots
	for next := range queue {
		if err != nil {
			cancel()
		}
		<-next.done
		before := d.have
		if err == nil {
			err = errors.Join(d.add(next.data), next.err)
		}
		d.tally.moved(d.have-before-int64(len(next.data)), 0) // what was not kept
		<-slots
	}
	if err == nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil && !d.complete() {
		return &wrongBytes{}
	}
	return err
}

// askAhead asks for the ranges of a part of the file, in order, while there are
// slots. The channel is closed after the last, or when ctx ends.
func (d *download) askAhead(ctx context.Context, p place, u *url.URL, part [2]int64, slots chan struct{}) <-chan *piece {
	queue := make(chan *piece, cap(slots))
	go func() {
		defer close(queue)
		for from := part[0]; from < part[1]; from += d.run.pieces.size {
			select {
			case <-ctx.Done():
				return
			case slots <- struct{}{}:
			}
			next := &piece{from: from, to: min(from+d.run.pieces.size, part[1]), done: make(chan struct{})}
			queue <- next
			go func() {
				defer close(next.done)
				next.err = d.load(ctx, p, u, next)
			}()
		}
	}()
	return queue
}

// load brings one range into memory, and repeats what may pass.
func (d *download) load(ctx context.Context, p place, u *url.URL, part *piece) error {
	for n := 1; ; n++ {
		before := len(part.data)
		err := d.loadOnce(ctx, p, u, part)
		var fail *failure
		if err == nil || !errors.As(err, &fail) || fail.effect != retry || d.run.health.whole(p) {
			return err
		}
		if int64(len(part.data)-before) >= d.run.pieces.size/4 {
			n = 1
		}
		if n >= maxTries {
			return err
		}
		if err := d.run.wait(ctx, n, fail.wait); err != nil {
			return err
		}
	}
}

// loadOnce asks for what is left of a range. A server that gives one range and
// refuses several is asked for whole files from then on.
func (d *download) loadOnce(ctx context.Context, p place, u *url.URL, part *piece) error {
	from := part.from + int64(len(part.data))
	resp, err := d.run.get(ctx, p.profile, u, http.Header{
		"Accept-Encoding": {"identity"}, "Range": {fmt.Sprintf("bytes=%d-%d", from, part.to-1)},
	})
	var fail *failure
	if errors.As(err, &fail) && fail.status != 0 {
		d.run.health.noPieces(p)
		again := *fail
		again.effect = retry
		return &again
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusPartialContent || !startsAt(resp, from) {
		d.run.health.noPieces(p)
		return &failure{effect: retry, reason: "answered with another range", url: redactURL(u), wait: "0"}
	}
	if part.data == nil {
		part.data = make([]byte, 0, part.to-part.from)
	}
	for len(part.data) < cap(part.data) {
		n, err := resp.Body.Read(part.data[len(part.data):cap(part.data)])
		part.data = part.data[:len(part.data)+n]
		d.tally.moved(int64(n), int64(n))
		if err != nil && len(part.data) < cap(part.data) {
			if err == io.EOF {
				err = &failure{effect: retry, reason: "a range ended early", url: redactURL(u)}
			}
			return err
		}
	}
	return nil
}
