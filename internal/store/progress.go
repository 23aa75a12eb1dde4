package store

import (
	"sync"
	"time"

	"github.com/imgforge/imgforge/internal/plan"
)

// EventKind is what an Event tells.
type EventKind string

// The kinds of events.
const (
	Moving     EventKind = "moving"      // bytes came; at most ten a second
	Done       EventKind = "done"        // File is stored
	Failed     EventKind = "failed"      // no mirror gave File
	Retrying   EventKind = "retrying"    // Mirror failed for Reason and is asked again
	Passed     EventKind = "passed"      // Mirror failed for Reason; the next one is asked
	MirrorDown EventKind = "mirror-down" // Mirror is given up for Reason
)

// Event tells how far one Fetch is. The totals stand in every event.
type Event struct {
	Kind       EventKind
	Files      int     // to fetch
	FilesDone  int     // stored or failed
	Bytes      int64   // here so far, with what earlier runs left
	BytesTotal int64   // of all files whose size is known
	Rate       float64 // bytes a second, lately
	File       string  // file name
	Mirror     string  // profile
	Reason     string
}

// meter adds up one Fetch and tells about it. A nil meter does nothing.
type meter struct {
	tell func(Event)

	mu     sync.Mutex
	now    Event
	last   time.Time
	before int64 // bytes at last
}

func newMeter(todo []plan.Blob, tell func(Event)) *meter {
	if tell == nil {
		return nil
	}
	m := &meter{tell: tell, last: time.Now()}
	m.now.Files = len(todo)
	for _, b := range todo {
		m.now.BytesTotal += b.Size
	}
	return m
}

// add counts bytes that came over the network; a negative n takes back bytes that turned out useless.
func (m *meter) add(n int64) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now.Bytes += n
	elapsed := time.Since(m.last)
	if elapsed < 100*time.Millisecond {
		return
	}
	rate := max(0, float64(m.now.Bytes-m.before)/elapsed.Seconds())
	if m.now.Rate > 0 {
		rate = 0.8*m.now.Rate + 0.2*rate
	}
	m.now.Rate, m.last, m.before = rate, time.Now(), m.now.Bytes
	e := m.now
	e.Kind = Moving
	m.tell(e)
}

// found counts bytes an earlier run left, which say nothing of the rate.
func (m *meter) found(n int64) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now.Bytes += n
	m.before += n
}

// event tells e with the totals filled in.
func (m *meter) event(e Event) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.Kind == Done || e.Kind == Failed {
		m.now.FilesDone++
	}
	full := m.now
	full.Kind, full.File, full.Mirror, full.Reason = e.Kind, e.File, e.Mirror, e.Reason
	m.tell(full)
}
