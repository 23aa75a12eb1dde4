package forge

import (
	"context"
	"sync"

	"github.com/imgforge/imgforge/internal/plan"
)

// Once makes a fetcher that asks for each blob once in a run, however many cells
// need it at the same time. A blob that failed, or was asked for together with
// one that did, is asked for again by the next cell that needs it: so one dead
// file fails the cells that need it and no others, each with its own reason.
func Once(f Fetcher) Fetcher { return &once{next: f, flights: map[string]*flight{}} }

type once struct {
	next    Fetcher
	mu      sync.Mutex
	flights map[string]*flight // by sha256; on their way, or here
}

// flight is blobs on their way together; failed is set before done is closed.
type flight struct {
	done   chan struct{}
	failed bool
}

// Fetch downloads the blobs nobody has asked for yet and waits for the others.
func (o *once) Fetch(ctx context.Context, blobs []plan.Blob) (int64, error) {
	var downloaded int64
	for len(blobs) > 0 {
		own := &flight{done: make(chan struct{})}
		mine, others := o.claim(own, blobs)
		if len(mine) > 0 {
			n, err := o.next.Fetch(ctx, mine)
			downloaded += n
			o.land(own, mine, err)
			if err != nil {
				return downloaded, err
			}
		}
		blobs = nil
		for _, other := range others {
			select {
			case <-other.flight.done:
				if other.flight.failed {
					blobs = append(blobs, other.blob)
				}
			case <-ctx.Done():
				return downloaded, context.Cause(ctx)
			}
		}
	}
	return downloaded, nil
}

// waiting is a blob in another's flight.
type waiting struct {
	blob   plan.Blob
	flight *flight
}

// claim puts the blobs that are in no flight into own; the others have theirs.
func (o *once) claim(own *flight, blobs []plan.Blob) (mine []plan.Blob, others []waiting) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, b := range blobs {
		switch f := o.flights[b.SHA256]; f {
		case nil:
			o.flights[b.SHA256] = own
			mine = append(mine, b)
		case own: // listed twice
		default:
			others = append(others, waiting{b, f})
		}
	}
	return mine, others
}

// land ends a flight. What failed is forgotten before anyone learns of it.
func (o *once) land(own *flight, mine []plan.Blob, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		own.failed = true
		for _, b := range mine {
			delete(o.flights, b.SHA256)
		}
	}
	close(own.done)
}
