package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/store/storetest"
)

// smallDisk is a directory on a disk of its own of so many kilobytes. It needs
// root, as the engine does.
func smallDisk(t *testing.T, kilobytes int) (dir string, grow func(kilobytes int)) {
	t.Helper()
	dir = t.TempDir()
	mount := func(flags uintptr, kilobytes int) error {
		return syscall.Mount("tmpfs", dir, "tmpfs", flags, fmt.Sprintf("size=%dk", kilobytes))
	}
	if err := mount(0, kilobytes); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("a small disk needs root: %v", err)
		}
		t.Skipf("a small disk needs root, and CI is unset: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir, func(kilobytes int) {
		if err := mount(syscall.MS_REMOUNT, kilobytes); err != nil {
			t.Fatal(err)
		}
	}
}

// A full disk is told with its directory and what it lacks; the next run, with
// more space, goes on from what is there.
func TestDiskFull(t *testing.T) {
	data := content(1_000_000)
	for name, prepare := range map[string]func(*Fetcher) *Fetcher{
		"one stream": func(f *Fetcher) *Fetcher { return f },
		"pieces":     inSmallPieces,
	} {
		t.Run(name, func(t *testing.T) {
			dir, grow := smallDisk(t, 400)
			s, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			m := storetest.New(t)
			m.Add(debPath, data)
			f := prepare(&Fetcher{Store: s, Profiles: []Profile{mirrorProfile("one", m.URL)}})
			_, err = f.Fetch(context.Background(), []plan.Blob{debBlob(data)})
			var full *SpaceError
			if !errors.As(err, &full) || !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("got %v", err)
			}
			kept, _ := os.Stat(s.partial(storetest.Sum(data)))
			if full.Dir != dir || full.Need != int64(len(data))-kept.Size() || full.All < full.Need {
				t.Errorf("got %+v with %d bytes kept", full, kept.Size())
			}
			for _, want := range []string{"no space for the store in " + dir, "zsh_5.9-4+b1_amd64.deb needs 0.", "--state"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error lacks %q: %v", want, err)
				}
			}
			grow(4000)
			result := mustFetch(t, prepare(&Fetcher{Store: s, Profiles: f.Profiles}), debBlob(data))
			if result.Downloaded != int64(len(data))-kept.Size() {
				t.Errorf("downloaded %d with %d kept", result.Downloaded, kept.Size())
			}
		})
	}
}

// A mirror that sends clients on to its origin is refused with the reason, for
// pages and for files, and the origin is never asked.
// tuna/issues#1050, sjtug/mirror-requests#288.
func TestRedirectToOrigin(t *testing.T) {
	data := content(1000)
	origin := storetest.New(t)
	origin.Add("/packages/x-1-py3-none-any.whl", data)
	origin.Wheel("/simple/x/", "x-1-py3-none-any.whl", data)
	blob := wheelBlob("pypi:x==1", "x-1-py3-none-any.whl", data)
	for name, fill := range map[string]func(m *storetest.Mirror){
		"the page": func(m *storetest.Mirror) { m.Fault("/simple/x/", storetest.Redirect(origin.URL+"/simple/x/")) },
		"the file": func(m *storetest.Mirror) {
			m.Wheel("/simple/x/", "x-1-py3-none-any.whl", data)
			m.Fault("/packages/"+storetest.Sum(data)[:8]+"/x-1-py3-none-any.whl", storetest.Redirect(origin.URL+"/x"))
		},
		"the link": func(m *storetest.Mirror) {
			m.List("/simple/x/", "x-1-py3-none-any.whl", origin.URL+"/packages/x-1-py3-none-any.whl", storetest.Sum(data))
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := storetest.New(t)
			fill(m)
			wantReason(t, mustFail(t, newFetcher(t, mirrorProfile("one", m.URL)), blob), "one", " to another host, "+storetest.Host(origin.URL))
		})
	}
	if len(origin.Asked()) != 0 {
		t.Errorf("the origin was asked %q", origin.Asked())
	}
}

// A page of 50 MB is not read to its end; the next mirror is asked.
func TestHugeIndexPage(t *testing.T) {
	data := content(1000)
	huge, good := storetest.New(t), storetest.New(t)
	sent := 0
	huge.Fault("/simple/x/", func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		line := strings.Repeat(`<a href="../../packages/aa/other-1-py3-none-any.whl#sha256=00">other</a>`+"\n", 1000)
		for sent < 50<<20 {
			n, err := io.WriteString(w, line)
			if sent += n; err != nil {
				return
			}
		}
	})
	good.Wheel("/simple/x/", "x-1-py3-none-any.whl", data)
	f := newFetcher(t, mirrorProfile("huge", huge.URL), mirrorProfile("good", good.URL))
	result := mustFetch(t, f, wheelBlob("pypi:x==1", "x-1-py3-none-any.whl", data))
	mustHave(t, f, data)
	wantNote(t, result.Notes, "huge: its page is over 32 MB")
	if sent >= 50<<20 {
		t.Error("the whole page was sent")
	}
}

// The waits between tries grow, within bounds, and are not all the same.
func TestWaitsGrowByChance(t *testing.T) {
	m := storetest.New(t)
	blobs := poolFiles(storetest.New(t), "a", "b", "c", "d")
	var waits []time.Duration
	for range 4 {
		f := newFetcher(t, mirrorProfile("one", m.URL))
		f.Client = &http.Client{Transport: &refusing{[]error{errors.New("odd"), errors.New("odd"), errors.New("odd")}}}
		f.sleep = func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil }
		mustFail(t, f, blobs[0])
	}
	different := map[time.Duration]bool{}
	for i, d := range waits {
		least := firstWait << (i % 2)
		if d < least || d > least*3/2 {
			t.Errorf("wait %d is %s", i, d)
		}
		different[d] = true
	}
	if len(waits) != 8 || len(different) < 3 {
		t.Errorf("waits %v", waits)
	}
}
