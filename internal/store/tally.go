package store

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

const tick = 100 * time.Millisecond // at most one progress report in so long

// counter tells how many of a number of things are done.
type counter struct {
	mu    sync.Mutex
	said  func(done, total int)
	n     int
	total int
}

func (c *counter) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n++; c.said != nil {
		c.said(c.n, c.total)
	}
}

// tally counts what one Fetch does, and tells its watcher.
type tally struct {
	mu         sync.Mutex
	watcher    func(Progress)
	now        Progress
	told       time.Time
	downloaded int64
	fetched    int
	trouble    map[[2]string][]string // mirror and reason -> files
}

func newTally(files []wanted, watcher func(Progress)) *tally {
	t := &tally{watcher: watcher, trouble: map[[2]string][]string{}}
	t.now.Files = len(files)
	for _, w := range files {
		t.now.Bytes += w.blob.Size
	}
	return t
}

// tell reports, unless it has just done so. The lock is held.
func (t *tally) tell(must bool) {
	if t.watcher == nil || !must && time.Since(t.told) < tick {
		return
	}
	t.told = time.Now()
	t.watcher(t.now)
}

// moved counts bytes of a file that are now here; negative when they were
// dropped again.
func (t *tally) moved(n, downloaded int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now.Done += n
	t.downloaded += downloaded
	t.tell(false)
}

// finished counts a file. extra is its size where that was not known before.
func (t *tally) finished(extra int64, fetched bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now.FilesDone++
	t.now.Bytes += extra
	if fetched {
		t.fetched++
	}
	t.tell(t.now.FilesDone == t.now.Files)
}

// left is how many bytes are still to come, as far as known.
func (t *tally) left() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now.Bytes - t.now.Done
}

func (t *tally) say(note string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now.Note = note
	t.tell(true)
	t.now.Note = ""
}

// record remembers what went wrong with one file at one mirror.
func (t *tally) record(a Attempt, file string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := [2]string{a.Mirror, a.Reason}
	t.trouble[key] = append(t.trouble[key], file)
}

func (t *tally) result() Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := Result{Downloaded: t.downloaded, Files: t.fetched}
	for key, files := range t.trouble {
		note := key[0] + ": " + key[1]
		slices.Sort(files)
		if len(files) == 1 {
			note += " (" + files[0] + ")"
		} else {
			note += fmt.Sprintf(" (%s and %d more)", files[0], len(files)-1)
		}
		out.Notes = append(out.Notes, note)
	}
	slices.Sort(out.Notes)
	return out
}
