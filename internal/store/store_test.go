package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/store/storetest"
)

func openStore(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "a", "store"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPut(t *testing.T) {
	s := openStore(t)
	data := content(100_000)
	for range 2 { // the second time it is there already
		sum, size, err := s.Put(context.Background(), bytes.NewReader(data))
		if err != nil || sum != storetest.Sum(data) || size != int64(len(data)) || !s.Has(sum) {
			t.Fatalf("got %s, %d, %v", sum, size, err)
		}
	}
	got, err := os.ReadFile(filepath.Join(s.Dir(), "blobs", "sha256", storetest.Sum(data)))
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	info, err := os.Stat(s.Path(storetest.Sum(data)))
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	mustBeEmpty(t, s)
}

func mustBeEmpty(t *testing.T, s *Store) {
	t.Helper()
	if left, err := os.ReadDir(s.partials()); err != nil || len(left) != 0 {
		t.Errorf("partial holds %v, %v", left, err)
	}
}

func TestPutFails(t *testing.T) {
	s := openStore(t)
	broken := errors.New("broken")
	if _, _, err := s.Put(context.Background(), io.MultiReader(strings.NewReader("x"), failing{broken})); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := s.Put(ctx, strings.NewReader("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if s.Has(storetest.Sum([]byte("x"))) {
		t.Error("what failed is stored")
	}
	mustBeEmpty(t, s)
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestPathStaysInside(t *testing.T) {
	s := openStore(t)
	for _, bad := range []string{"", "..", "../../../etc/passwd", strings.Repeat("g", 64), strings.Repeat("A", 64)} {
		if s.Has(bad) || filepath.Dir(s.Path(bad)) != s.blobs() {
			t.Errorf("%q is %s", bad, s.Path(bad))
		}
	}
}

func TestServe(t *testing.T) {
	s := openStore(t)
	data := content(1000)
	sum, _, err := s.Put(context.Background(), bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	url, stop, err := s.Serve(context.Background(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, path, ranges string
		status               int
		body                 []byte
	}{
		{"GET", "/sha256/" + sum, "", 200, data},
		{"GET", "/sha256/" + sum, "bytes=10-19", 206, data[10:20]},
		{"HEAD", "/sha256/" + sum, "", 200, nil},
		{"POST", "/sha256/" + sum, "", 405, nil},
		{"GET", "/sha256/" + strings.Repeat("0", 64), "", 404, nil},
		{"GET", "/sha256/", "", 404, nil},
		{"GET", "/", "", 404, nil},
		{"GET", "/sha256/..%2f..%2fpartial", "", 404, nil},
	} {
		status, body := ask(t, c.method, url+c.path, c.ranges)
		if status != c.status || c.body != nil && !bytes.Equal(body, c.body) {
			t.Errorf("%s %s %s: status %d, %d bytes", c.method, c.path, c.ranges, status, len(body))
		}
	}
	if err := errors.Join(stop(), stop()); err != nil {
		t.Error(err)
	}
	if _, err := http.Get(url); err == nil {
		t.Error("it serves after stop")
	}
}

func ask(t *testing.T, method, url, ranges string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if ranges != "" {
		req.Header.Set("Range", ranges)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, body
}

func TestServeLoopbackOnly(t *testing.T) {
	s := openStore(t)
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.org:0", "127.0.0.1"} {
		if _, stop, err := s.Serve(context.Background(), addr); err == nil {
			stop()
			t.Errorf("%s is served", addr)
		}
	}
}

func TestServeEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	url, stop, err := openStore(t).Serve(ctx, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := http.Get(url); err == nil {
		t.Error("it serves after its context ended")
	}
}
