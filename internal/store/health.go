package store

import (
	"cmp"
	"slices"
	"sync"
)

// health is what a run has learned about its mirrors.
type health struct {
	mu     sync.Mutex
	dead   map[[2]string]string // mirror and host (or base URL) -> reason
	faults map[string]int       // by mirror
}

func newHealth() *health {
	return &health{dead: map[[2]string]string{}, faults: map[string]int{}}
}

// down returns why a mirror's host is not asked any more, or "".
func (h *health) down(mirror, host string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dead[[2]string{mirror, host}]
}

// mark gives up on a mirror's host, and reports whether that is news.
func (h *health) mark(mirror, host, reason string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := [2]string{mirror, host}
	if h.dead[key] != "" {
		return false
	}
	h.dead[key] = reason
	return true
}

// blame counts a fault that may pass.
func (h *health) blame(mirror string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults[mirror]++
}

// order returns profiles as given, but those that keep failing last.
func (h *health) order(profiles []Profile) []*Profile {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]*Profile, len(profiles))
	for i := range profiles {
		out[i] = &profiles[i]
	}
	slices.SortStableFunc(out, func(a, b *Profile) int {
		return cmp.Compare(h.faults[a.Name]/maxTries, h.faults[b.Name]/maxTries)
	})
	return out
}
