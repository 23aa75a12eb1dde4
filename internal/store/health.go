package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// strikes in a row end the use of a place. Each is a file it failed to serve,
// though it seemed to have it.
const strikes = 3

// place is an archive or an index of a mirror, by its address without credentials.
type place struct {
	profile *Profile
	base    string
}

// health is what a run has learned about its mirrors.
type health struct {
	mu     sync.Mutex
	dead   map[[2]string]string // mirror and host, or mirror and base -> reason
	faults map[[2]string]int    // mirror and base -> faults in a row
	one    map[[2]string]bool   // mirror and base that gives one range at a time, or none
}

func newHealth() *health {
	return &health{dead: map[[2]string]string{}, faults: map[[2]string]int{}, one: map[[2]string]bool{}}
}

// down returns why a mirror's host or base is not asked any more, or "".
func (h *health) down(mirror, part string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dead[[2]string{mirror, part}]
}

// mark gives up on a mirror's host or base, and reports whether that is news.
func (h *health) mark(mirror, part, reason string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := [2]string{mirror, part}
	if h.dead[key] != "" {
		return false
	}
	h.dead[key] = reason
	return true
}

// blame counts a fault, and reports whether it is one too many.
func (h *health) blame(at place) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := [2]string{at.profile.Name, at.base}
	h.faults[key]++
	return h.faults[key] >= strikes
}

// praise forgets the faults of a place that has served a file.
func (h *health) praise(at place) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.faults, [2]string{at.profile.Name, at.base})
}

// noPieces notes that a place does not take several ranges of a file.
func (h *health) noPieces(at place) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.one[[2]string{at.profile.Name, at.base}] = true
}

// whole reports whether files come from a place in one piece.
func (h *health) whole(at place) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.one[[2]string{at.profile.Name, at.base}]
}

// order returns profiles as given, but those with more faults later.
func (h *health) order(profiles []Profile) []*Profile {
	h.mu.Lock()
	defer h.mu.Unlock()
	faults := map[string]int{}
	for key, n := range h.faults {
		faults[key[0]] += n
	}
	out := make([]*Profile, len(profiles))
	for i := range profiles {
		out[i] = &profiles[i]
	}
	slices.SortStableFunc(out, func(a, b *Profile) int { return cmp.Compare(faults[a.Name], faults[b.Name]) })
	return out
}

// patiently repeats do while its failure may pass; tries that got on do not
// count. It notes what the outcome says of the place.
func (r *run) patiently(ctx context.Context, at place, do func() error) error {
	for n := 1; ; n++ {
		err := do()
		var fail *failure
		if err == nil || !errors.As(err, &fail) {
			return err
		}
		if fail.gained {
			n = 1
		}
		if fail.effect == retry && n < maxTries {
			if err := r.wait(ctx, n, fail.wait); err != nil {
				return err
			}
			continue
		}
		if fail.lasting {
			r.markDown(at.profile.Name, fail.host, fail.reason)
		} else if (fail.effect == retry || fail.effect == slow) && r.health.blame(at) {
			r.markDown(at.profile.Name, at.base, fmt.Sprintf("%s (%d files in a row failed)", fail.reason, strikes))
		}
		return err
	}
}
