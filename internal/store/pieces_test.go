package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/store/storetest"
)

// inSmallPieces makes a fetcher take files of 100 kB and more in ranges of 64 kB.
func inSmallPieces(f *Fetcher) *Fetcher {
	f.pieces = pieces{from: 100_000, size: 1 << 16, at: 4}
	f.sleep = func(ctx context.Context, d time.Duration) error { return sleep(ctx, min(d, 20*time.Millisecond)) }
	return f
}

// where calls a fault for requests of one range, times times, and serves all others.
func where(rng string, times int, fault storetest.Fault) []storetest.Fault {
	var mu sync.Mutex
	return slices.Repeat([]storetest.Fault{func(w http.ResponseWriter, r *http.Request, file []byte) {
		mu.Lock()
		hit := times > 0 && r.Header.Get("Range") == rng
		if hit {
			times--
		}
		mu.Unlock()
		if hit {
			fault(w, r, file)
			return
		}
		http.ServeContent(w, r, "", zeroTime, bytes.NewReader(file))
	}}, 100)
}

func TestPieces(t *testing.T) {
	data := content(1_000_000)
	m := storetest.New(t)
	m.Add(debPath, data)
	f := inSmallPieces(newFetcher(t, mirrorProfile("one", m.URL)))
	result := mustFetch(t, f, debBlob(data))
	mustHave(t, f, data)
	var want []string
	for from := 0; from < len(data); from += 1 << 16 {
		want = append(want, fmt.Sprintf("%s bytes=%d-%d", debPath, from, min(from+1<<16, len(data))-1))
	}
	got := m.Asked()
	want[0] = debPath + " bytes=0-65535"
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || result.Downloaded != int64(len(data)) {
		t.Errorf("asked %q; %d bytes", got, result.Downloaded)
	}
}

// Large files that begin together share their host's places: the first range of each
// gives its place back before the file waits for the others.
func TestLargeFilesShareAHost(t *testing.T) {
	m := storetest.New(t)
	f := inSmallPieces(newFetcher(t, mirrorProfile("one", m.URL)))
	f.PerHost, f.Jobs = 2, 8
	var blobs []plan.Blob
	var files [][]byte
	for n := range 8 {
		data := content(400_000)
		data[0] = byte(n)
		name := fmt.Sprintf("%s.%d", debPath, n)
		m.Add(name, data)
		b := debBlob(data)
		b.Origin += fmt.Sprintf(".%d", n)
		blobs, files = append(blobs, b), append(files, data)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := f.Fetch(ctx, blobs); err != nil {
		t.Fatal(err)
	}
	for _, data := range files {
		mustHave(t, f, data)
	}
}

// Each fault befalls one range of the middle; the one mirror serves the file.
func TestPiecesWithFaults(t *testing.T) {
	data := content(1_000_000)
	const middle = "bytes=393216-458751"
	var mu sync.Mutex
	busy := 0
	for name, faults := range map[string][]storetest.Fault{
		"truncated": where(middle, 1, storetest.Truncate(10_000)),
		"busy":      where(middle, 2, storetest.Status(http.StatusServiceUnavailable, "0")),
		"whole":     where(middle, 1, storetest.Bytes(data)),
		"another range": where(middle, 1, func(w http.ResponseWriter, r *http.Request, file []byte) {
			r.Header.Set("Range", "bytes=0-65535")
			http.ServeContent(w, r, "", zeroTime, bytes.NewReader(file))
		}),
		"one at a time": slices.Repeat([]storetest.Fault{func(w http.ResponseWriter, r *http.Request, file []byte) {
			mu.Lock()
			busy++
			crowded := busy > 1
			mu.Unlock()
			if crowded {
				w.WriteHeader(http.StatusTooManyRequests)
			} else {
				http.ServeContent(w, r, "", zeroTime, bytes.NewReader(file))
			}
			mu.Lock()
			busy--
			mu.Unlock()
		}}, 100),
		"no length": slices.Repeat([]storetest.Fault{func(w http.ResponseWriter, r *http.Request, file []byte) {
			if r.Header.Get("Range") == "bytes=0-65535" {
				w.Header().Set("Content-Range", "bytes 0-65535/*")
				w.WriteHeader(http.StatusPartialContent)
				w.Write(file[:1<<16])
				return
			}
			http.ServeContent(w, r, "", zeroTime, bytes.NewReader(file))
		}}, 100),
	} {
		t.Run(name, func(t *testing.T) {
			m := storetest.New(t)
			m.Add(debPath, data)
			m.Fault(debPath, faults...)
			f := inSmallPieces(newFetcher(t, mirrorProfile("one", m.URL)))
			mustFetch(t, f, debBlob(data))
			mustHave(t, f, data)
		})
	}
}

// A server without ranges is found out once.
func TestPiecesIgnored(t *testing.T) {
	m := storetest.New(t)
	m.NoRange()
	var blobs []plan.Blob
	for i := range 2 {
		data := content(300_000 + i)
		at := fmt.Sprintf("/debian/pool/%d", i)
		m.Add(at, data)
		blobs = append(blobs, plan.Blob{Name: "x", Origin: at[1:], SHA256: storetest.Sum(data), Size: int64(len(data))})
	}
	f := inSmallPieces(newFetcher(t, mirrorProfile("one", m.URL)))
	for _, b := range blobs {
		if result := mustFetch(t, f, b); result.Downloaded != b.Size {
			t.Errorf("%d bytes for %d", result.Downloaded, b.Size)
		}
	}
	if want := []string{"/debian/pool/0 bytes=0-65535", "/debian/pool/1"}; !slices.Equal(m.Asked(), want) {
		t.Errorf("asked %q", m.Asked())
	}
}

func TestPiecesOfOtherBytes(t *testing.T) {
	data := content(1_000_000)
	for name, c := range map[string]struct {
		file   []byte
		reason string
	}{
		"longer":      {content(1_000_001), "served other bytes: 1000001 bytes, not 1000000"},
		"same length": {content(1_000_001)[1:], "served other bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			liar, good := storetest.New(t), storetest.New(t)
			liar.Add(debPath, c.file)
			good.Add(debPath, data)
			f := inSmallPieces(newFetcher(t, mirrorProfile("liar", liar.URL), mirrorProfile("good", good.URL)))
			result := mustFetch(t, f, debBlob(data))
			mustHave(t, f, data)
			wantNote(t, result.Notes, "liar: "+c.reason)
		})
	}
}

// What came before a mirror stalled, in order, is not asked of the next.
func TestPiecesStall(t *testing.T) {
	data := content(1_000_000)
	slow, good := storetest.New(t), storetest.New(t)
	slow.Add(debPath, data)
	slow.Fault(debPath, where("bytes=393216-458751", 1, func(w http.ResponseWriter, r *http.Request, _ []byte) {
		w.Header().Set("Content-Range", "bytes 393216-458751/1000000")
		w.WriteHeader(http.StatusPartialContent)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})...)
	good.Add(debPath, data)
	f := inSmallPieces(newFetcher(t, mirrorProfile("slow", slow.URL), mirrorProfile("good", good.URL)))
	f.Stall = soon
	result := mustFetch(t, f, debBlob(data))
	mustHave(t, f, data)
	wantNote(t, result.Notes, "slow: stalled")
	if got := good.Asked()[0]; got != debPath+" bytes=393216-458751" {
		t.Errorf("the next mirror was first asked %q", got)
	}
}

// The network goes in the middle: the error names the mirror, what is kept is a
// beginning of the file, and the next run asks for the rest alone.
func TestPiecesNetworkLost(t *testing.T) {
	data := content(1_000_000)
	m := storetest.New(t)
	m.Add(debPath, data)
	f := inSmallPieces(newFetcher(t, mirrorProfile("one", m.URL)))
	lost := &failsAfter{left: 5}
	f.Client = &http.Client{Transport: lost}
	wantReason(t, mustFail(t, f, debBlob(data)), "one", "network is unreachable")
	kept, err := os.ReadFile(f.Store.partial(storetest.Sum(data)))
	if err != nil || len(kept) == 0 || !bytes.HasPrefix(data, kept) {
		t.Fatalf("%d bytes are kept: %v", len(kept), err)
	}
	again := inSmallPieces(newFetcher(t, mirrorProfile("one", m.URL)))
	again.Store = f.Store
	result := mustFetch(t, again, debBlob(data))
	mustHave(t, again, data)
	if result.Downloaded != int64(len(data)-len(kept)) {
		t.Errorf("downloaded %d with %d kept", result.Downloaded, len(kept))
	}
}

// failsAfter passes some requests on, and then has no network.
type failsAfter struct {
	mu   sync.Mutex
	left int
}

func (f *failsAfter) RoundTrip(req *http.Request) (*http.Response, error) {
	f.mu.Lock()
	f.left--
	gone := f.left < 0
	f.mu.Unlock()
	if gone {
		return nil, errors.New("network is unreachable")
	}
	return http.DefaultTransport.RoundTrip(req)
}

func TestPiecesCanceled(t *testing.T) {
	data := content(1_000_000)
	m := storetest.New(t)
	m.Add(debPath, data)
	f := inSmallPieces(newFetcher(t, mirrorProfile("one", m.URL)))
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := errors.New("stop here")
	f.Progress = func(p Progress) {
		if p.Done > 300_000 {
			cancel(stop)
		}
	}
	// All but the first hang until the client goes, so that the end is certain.
	m.Fault(debPath, slices.Repeat([]storetest.Fault{func(w http.ResponseWriter, r *http.Request, file []byte) {
		if strings.HasPrefix(r.Header.Get("Range"), "bytes=6") {
			<-r.Context().Done()
			return
		}
		http.ServeContent(w, r, "", zeroTime, bytes.NewReader(file))
		cancel(stop)
	}}, 100)...)
	if _, err := f.Fetch(ctx, []plan.Blob{debBlob(data)}); !errors.Is(err, stop) {
		t.Fatalf("got %v", err)
	}
	kept, err := os.ReadFile(f.Store.partial(storetest.Sum(data)))
	if err == nil && !bytes.HasPrefix(data, kept) {
		t.Errorf("%d bytes that are no beginning are kept", len(kept))
	}
}
