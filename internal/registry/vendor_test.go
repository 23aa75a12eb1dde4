package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// files writes some files, named by what they hold.
func files(t *testing.T, n int) []File {
	t.Helper()
	dir := t.TempDir()
	var out []File
	for i := range n {
		data := []byte(strings.Repeat(fmt.Sprint("content ", i), 1000))
		sum := sha256.Sum256(data)
		f := File{Name: fmt.Sprintf("%d.deb", i), SHA256: hex.EncodeToString(sum[:])}
		f.Path = filepath.Join(dir, f.SHA256)
		if err := os.WriteFile(f.Path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		out = append(out, f)
	}
	return out
}

// uploads counts blobs that are sent, and may refuse them after some.
type uploads struct {
	next    http.Handler
	n, most atomic.Int64
}

func (u *uploads) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/uploads/") {
		if n, most := u.n.Add(1), u.most.Load(); most > 0 && n > most {
			http.Error(w, "quota exceeded", http.StatusForbidden)
			return
		}
	}
	u.next.ServeHTTP(w, r)
}

func serve(t *testing.T) (*uploads, string) {
	u := &uploads{next: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	server := httptest.NewServer(u)
	t.Cleanup(server.Close)
	return u, strings.TrimPrefix(server.URL, "http://") + "/team/vendor"
}

func TestKeep(t *testing.T) {
	u, repository := serve(t)
	kept := files(t, 20)
	c := &Client{}
	done := 0
	pushed, err := c.Keep(context.Background(), repository, kept, func(n int) {
		if done++; n != done {
			t.Errorf("told %d for %d", n, done)
		}
	})
	if err != nil || pushed != 20 || done != 20 {
		t.Fatalf("pushed %d, told %d: %v", pushed, done, err)
	}
	sent := u.n.Load()
	if pushed, err = c.Keep(context.Background(), repository, kept, func(int) {}); err != nil || pushed != 0 || u.n.Load() > sent {
		t.Errorf("again: pushed %d, %d uploads: %v", pushed, u.n.Load()-sent, err)
	}
	tag, err := name.NewTag(repository + ":" + tagOf(kept))
	if err != nil {
		t.Fatal(err)
	}
	got, err := remote.Get(tag)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{vendorType, kept[0].SHA256, `"org.opencontainers.image.title":"19.deb"`} {
		if !strings.Contains(string(got.Manifest), want) {
			t.Errorf("the manifest lacks %s", want)
		}
	}
	address, err := Kept(repository)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: c}).Get(address(kept[3].SHA256))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if sum := sha256.Sum256(data); err != nil || hex.EncodeToString(sum[:]) != kept[3].SHA256 {
		t.Errorf("read back %d bytes: %v", len(data), err)
	}
}

// A push that is cut off goes on with what is not there yet.
func TestKeepResumes(t *testing.T) {
	u, repository := serve(t)
	u.most.Store(7)
	kept := files(t, 20)
	pushed, err := (&Client{}).Keep(context.Background(), repository, kept, func(int) {})
	if err == nil || !strings.Contains(err.Error(), "team/vendor") || !strings.Contains(err.Error(), ".deb") {
		t.Fatalf("pushed %d: %v", pushed, err)
	}
	u.most.Store(0)
	again, err := (&Client{}).Keep(context.Background(), repository, kept, func(int) {})
	if err != nil || again < 20-7 || again == 20 { // uploads beside the refused one may have been cut off
		t.Errorf("then pushed %d: %v", again, err)
	}
}

// A file that is not what its name says is refused by the registry.
func TestKeepDamaged(t *testing.T) {
	_, repository := serve(t)
	kept := files(t, 1)
	if err := os.WriteFile(kept[0].Path, []byte("other"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := (&Client{}).Keep(context.Background(), repository, kept, func(int) {}); err == nil {
		t.Error("a damaged file is kept")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := (&Client{}).Keep(ctx, repository, kept, func(int) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if _, err := Kept("not a repository"); err == nil {
		t.Error("a bad name is taken")
	}
}
