package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/store/storetest"
)

const debPath = "/debian/pool/main/z/zsh/zsh_5.9-4+b1_amd64.deb"

// content is n bytes that differ everywhere.
func content(n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(i*7 + i/251)
	}
	return out
}

func debBlob(data []byte) plan.Blob {
	return plan.Blob{Name: "zsh_5.9-4+b1_amd64.deb", Origin: debPath[1:], SHA256: storetest.Sum(data), Size: int64(len(data))}
}

func wheelBlob(origin, name string, data []byte) plan.Blob {
	return plan.Blob{Name: name, Origin: origin, SHA256: storetest.Sum(data), Size: int64(len(data))}
}

// mirrorProfile is a profile of a fixture mirror that carries everything.
func mirrorProfile(name, url string) Profile {
	return Profile{
		Name:     name,
		Archives: map[string]string{"debian": url + "/debian", "debian-security": url + "/debian-security"},
		Indexes:  []string{url + "/simple"},
		Wheels:   map[string]string{"cu118": url + "/whl/cu118/"},
	}
}

func newFetcher(t *testing.T, profiles ...Profile) *Fetcher {
	t.Helper()
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &Fetcher{Store: s, Profiles: profiles}
}

func mustFetch(t *testing.T, f *Fetcher, blobs ...plan.Blob) Result {
	t.Helper()
	result, err := f.Fetch(context.Background(), blobs)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// mustHave checks that the store holds these bytes and no rest of a download.
func mustHave(t *testing.T, f *Fetcher, data []byte) {
	t.Helper()
	got, err := os.ReadFile(f.Store.Path(storetest.Sum(data)))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, data) {
		t.Fatal("the stored bytes are others")
	}
	if _, err := os.Stat(f.Store.partial(storetest.Sum(data))); err == nil {
		t.Error("a partial file is left")
	}
}

// mustFail fetches what cannot be had, and returns the attempts for the file.
func mustFail(t *testing.T, f *Fetcher, blob plan.Blob) []Attempt {
	t.Helper()
	_, err := f.Fetch(context.Background(), []plan.Blob{blob})
	var failed *FetchError
	if !errors.As(err, &failed) || len(failed.Files) != 1 {
		t.Fatalf("got %v, not a FetchError of one file", err)
	}
	if f.Store.Has(blob.SHA256) {
		t.Error("the store has the file all the same")
	}
	return failed.Files[0].Attempts
}

func wantReason(t *testing.T, got []Attempt, mirror, reason string) {
	t.Helper()
	for _, a := range got {
		if a.Mirror == mirror && strings.Contains(a.Reason, reason) {
			return
		}
	}
	t.Errorf("no attempt at %s says %q: %+v", mirror, reason, got)
}

func wantNote(t *testing.T, notes []string, parts ...string) {
	t.Helper()
	for _, n := range notes {
		all := true
		for _, p := range parts {
			all = all && strings.Contains(n, p)
		}
		if all {
			return
		}
	}
	t.Errorf("no note says %q: %q", parts, notes)
}

// mustURL parses a URL of a test.
func mustURL(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return u
}

var (
	quiet    = log.New(io.Discard, "", 0)
	zeroTime time.Time
)

// soon is a stall limit for tests that stall on purpose.
const soon = 100 * time.Millisecond
