package forge_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/imgforge/imgforge/internal/forge"
	"github.com/imgforge/imgforge/internal/plan"
)

// mirror takes a second a call, stores every blob that is not dead, and counts.
type mirror struct {
	mu     sync.Mutex
	dead   map[string]bool
	stored map[string]bool
	served map[string]int // downloads
	asked  map[string]int // times asked for
}

func newMirror(dead ...string) *mirror {
	m := &mirror{dead: map[string]bool{}, stored: map[string]bool{}, served: map[string]int{}, asked: map[string]int{}}
	for _, name := range dead {
		m.dead[name] = true
	}
	return m
}

func (m *mirror) Fetch(ctx context.Context, blobs []plan.Blob) (n int64, err error) {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range blobs {
		m.asked[b.SHA256]++
		switch {
		case m.dead[b.SHA256]:
			err = errors.Join(err, fmt.Errorf("%s: %w", b.SHA256, errMirror))
		case !m.stored[b.SHA256]:
			m.stored[b.SHA256] = true
			m.served[b.SHA256]++
			n++
		}
	}
	return n, err
}

// fetchAll has one cell after the other begin, a moment apart.
func fetchAll(ctx context.Context, f forge.Fetcher, cells ...string) (sizes []int64, errs []error) {
	sizes, errs = make([]int64, len(cells)), make([]error, len(cells))
	var all sync.WaitGroup
	for i, needs := range cells {
		all.Go(func() {
			time.Sleep(time.Duration(i) * time.Millisecond)
			sizes[i], errs[i] = f.Fetch(ctx, blobs(needs))
		})
	}
	all.Wait()
	return sizes, errs
}

func TestOnceAsksForEachBlobOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMirror()
		sizes, errs := fetchAll(t.Context(), forge.Once(m), "a b", "b c", "a b c", "c c d", "")
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		for name, n := range m.asked {
			if n != 1 {
				t.Errorf("%s was asked for %d times", name, n)
			}
		}
		if fmt.Sprint(sizes) != "[2 1 0 1 0]" || len(m.stored) != 4 {
			t.Errorf("cells downloaded %v, stored are %v", sizes, m.stored)
		}
	})
}

func TestOnceWaitsForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMirror()
		f := forge.Once(m)
		go f.Fetch(t.Context(), blobs("a"))
		synctest.Wait()
		if _, err := f.Fetch(t.Context(), blobs("a")); err != nil || !m.stored["a"] {
			t.Errorf("came back before the blob was there: %v", err)
		}
	})
}

// The file that no mirror has fails the cells that need it, and only those, though
// others wait for files that were asked for together with it.
func TestOnceDeadFileFailsThoseWhoNeedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMirror("dead")
		f := forge.Once(m)
		_, errs := fetchAll(t.Context(), f, "a b dead", "a c", "b dead", "a b c")
		for i, fails := range []bool{true, false, true, false} {
			if errors.Is(errs[i], errMirror) != fails || (errs[i] != nil) != fails {
				t.Errorf("cell %d: %v", i, errs[i])
			}
		}
		if _, err := f.Fetch(t.Context(), blobs("b")); err != nil {
			t.Errorf("a later cell: %v", err)
		}
		if _, err := f.Fetch(t.Context(), blobs("dead")); !errors.Is(err, errMirror) {
			t.Errorf("a later cell that needs it: %v", err)
		}
		for _, name := range []string{"a", "b", "c"} {
			if m.served[name] != 1 {
				t.Errorf("%s was downloaded %d times", name, m.served[name])
			}
		}
		if m.asked["dead"] != 3 {
			t.Errorf("the dead file was asked for %d times by 3 cells", m.asked["dead"])
		}
	})
}

func TestOnceManyCellsOneDeadFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMirror("dead")
		cells := make([]string, 40)
		for i := range cells {
			cells[i] = fmt.Sprintf("shared own%d", i)
			if i%4 == 0 {
				cells[i] += " dead"
			}
		}
		_, errs := fetchAll(t.Context(), forge.Once(m), cells...)
		for i, err := range errs {
			if (err != nil) != (i%4 == 0) {
				t.Errorf("cell %d: %v", i, err)
			}
		}
		if m.served["shared"] != 1 {
			t.Errorf("the shared file was downloaded %d times", m.served["shared"])
		}
	})
}

func TestOnceCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(500*time.Millisecond, func() { cancel(errors.New("interrupted")) })
		start := time.Now()
		_, errs := fetchAll(ctx, forge.Once(newMirror()), "a", "a", "a b")
		for i, err := range errs {
			if err == nil {
				t.Errorf("cell %d has its blobs", i)
			}
		}
		if took := time.Since(start); took != 500*time.Millisecond {
			t.Errorf("the cells ended after %s", took)
		}
	})
}
