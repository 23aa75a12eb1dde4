package store

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/store/storetest"
)

// What one mirror sent before it stalled is not asked of the next.
func TestResumeFromAnotherMirror(t *testing.T) {
	data := content(100_000)
	slow, good := storetest.New(t), storetest.New(t)
	slow.Add(debPath, data)
	slow.Fault(debPath, storetest.Stall(60_000))
	good.Add(debPath, data)
	f := newFetcher(t, mirrorProfile("slow", slow.URL), mirrorProfile("good", good.URL))
	f.Stall = soon
	result := mustFetch(t, f, debBlob(data))
	mustHave(t, f, data)
	if want := []string{debPath + " bytes=60000-"}; !slices.Equal(good.Asked(), want) || result.Downloaded != 100_000 {
		t.Errorf("asked %q; downloaded %d", good.Asked(), result.Downloaded)
	}
	wantNote(t, result.Notes, "slow: stalled")
}

func TestPartial(t *testing.T) {
	data := content(10_000)
	for name, c := range map[string]struct {
		partial []byte
		noRange bool
		asked   []string
	}{
		"range":           {data[:4000], false, []string{debPath + " bytes=4000-"}},
		"no range":        {data[:4000], true, []string{debPath + " bytes=4000-"}},
		"bad start":       {content(4001)[1:], false, []string{debPath + " bytes=4000-", debPath}},
		"whole":           {data, false, nil},
		"whole but bad":   {content(10_001)[1:], false, []string{debPath}},
		"longer than all": {content(12_000), false, []string{debPath}},
	} {
		for _, known := range []bool{true, false} {
			blob := debBlob(data)
			if !known {
				blob.Size = 0
			}
			t.Run(name, func(t *testing.T) {
				m := storetest.New(t)
				m.Add(debPath, data)
				if c.noRange {
					m.NoRange()
				}
				f := newFetcher(t, mirrorProfile("one", m.URL))
				if err := os.WriteFile(f.Store.partial(blob.SHA256), c.partial, 0o644); err != nil {
					t.Fatal(err)
				}
				mustFetch(t, f, blob)
				mustHave(t, f, data)
				if known && !slices.Equal(m.Asked(), c.asked) {
					t.Errorf("asked %q, not %q", m.Asked(), c.asked)
				}
			})
		}
	}
}

func TestStoredFileOfAnotherSize(t *testing.T) {
	data := content(1000)
	m := storetest.New(t)
	m.Add(debPath, data)
	f := newFetcher(t, mirrorProfile("one", m.URL))
	if err := os.WriteFile(f.Store.Path(storetest.Sum(data)), data[:10], 0o644); err != nil {
		t.Fatal(err)
	}
	mustFetch(t, f, debBlob(data))
	mustHave(t, f, data)
}

// A lock with a wrong size costs no good file.
func TestWrongSizeInLock(t *testing.T) {
	data := content(1000)
	f := newFetcher(t, mirrorProfile("one", storetest.Closed(t)))
	if err := os.WriteFile(f.Store.Path(storetest.Sum(data)), data, 0o644); err != nil {
		t.Fatal(err)
	}
	blob := debBlob(data)
	blob.Size = 999
	_, err := f.Fetch(context.Background(), []plan.Blob{blob})
	var wrong *SizeError
	if !errors.As(err, &wrong) || wrong.Size != 1000 {
		t.Errorf("got %v", err)
	}
	mustHave(t, f, data)
}

// Two Fetchers on two Stores of one directory are as two processes.
func TestTwoAtOnce(t *testing.T) {
	data := content(200_000)
	m := storetest.New(t)
	m.Add(debPath, data)
	first := newFetcher(t, mirrorProfile("one", m.URL))
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		s, err := Open(first.Store.Dir())
		if err != nil {
			t.Fatal(err)
		}
		f := &Fetcher{Store: s, Profiles: first.Profiles}
		wg.Go(func() { _, errs[i] = f.Fetch(context.Background(), []plan.Blob{debBlob(data)}) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	mustHave(t, first, data)
	if len(m.Asked()) != 1 {
		t.Errorf("asked %q", m.Asked())
	}
}

func TestCancelKeepsPartial(t *testing.T) {
	data := content(100_000)
	m := storetest.New(t)
	m.Add(debPath, data)
	m.Fault(debPath, storetest.Stall(50_000))
	f := newFetcher(t, mirrorProfile("one", m.URL))
	ctx, cancel := context.WithCancel(context.Background())
	f.Progress = func(p Progress) {
		if p.Done > 0 {
			cancel()
		}
	}
	if _, err := f.Fetch(ctx, []plan.Blob{debBlob(data)}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	info, err := os.Stat(f.Store.partial(storetest.Sum(data)))
	if err != nil || info.Size() == 0 {
		t.Fatalf("nothing is kept: %v", err)
	}
	f.Progress = nil
	result := mustFetch(t, f, debBlob(data))
	mustHave(t, f, data)
	if result.Downloaded != int64(len(data))-info.Size() || len(result.Notes) != 0 {
		t.Errorf("got %+v with %d bytes kept", result, info.Size())
	}
}
