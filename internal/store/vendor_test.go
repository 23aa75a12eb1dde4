package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/store/storetest"
)

// put stores data as if it had been fetched.
func put(t *testing.T, s *Store, data []byte) {
	t.Helper()
	if _, _, err := s.Put(context.Background(), strings.NewReader(string(data))); err != nil {
		t.Fatal(err)
	}
}

func TestKeptInDirectory(t *testing.T) {
	deb, wheel, tarball := content(300_000), content(2000), content(2001)
	blobs := []plan.Blob{
		debBlob(deb), wheelBlob("pypi:x==1", "x-1-py3-none-any.whl", wheel), wheelBlob("rootfs:base.tar.gz", "base.tar.gz", tarball),
	}
	from := newFetcher(t)
	for _, data := range [][]byte{deb, wheel, tarball} {
		put(t, from.Store, data)
	}
	dir := filepath.Join(t.TempDir(), "a place", "kept")
	if _, err := Kept("k", dir); err == nil || !strings.Contains(err.Error(), "imgforge vendor") {
		t.Errorf("a directory that is not there: %v", err)
	}
	for i, want := range []int{3, 0} {
		done := 0
		n, err := from.Store.Keep(context.Background(), dir, blobs, func(int) { done++ })
		if err != nil || n != want || done != 3 {
			t.Fatalf("run %d: %d new, told %d, %v", i, n, done, err)
		}
	}
	p, err := Kept("vendor:"+dir, dir)
	if err != nil {
		t.Fatal(err)
	}
	f := inSmallPieces(newFetcher(t, p))
	mustFetch(t, f, blobs...)
	for _, data := range [][]byte{deb, wheel, tarball} {
		mustHave(t, f, data)
	}
	// What was damaged there is refused by its hash; what is gone is told.
	at := filepath.Join(dir, "blobs", "sha256", storetest.Sum(wheel))
	if err := os.WriteFile(at, content(2001)[1:], 0o644); err != nil {
		t.Fatal(err)
	}
	f = newFetcher(t, p)
	wantReason(t, mustFail(t, f, blobs[1]), "vendor:"+dir, "served other bytes")
	if err := os.Remove(at); err != nil {
		t.Fatal(err)
	}
	wantReason(t, mustFail(t, newFetcher(t, p), blobs[1]), "vendor:"+dir, "404 Not Found")
	// A half file there is written anew.
	if err := os.WriteFile(at, wheel[:100], 0o644); err != nil {
		t.Fatal(err)
	}
	if n, err := from.Store.Keep(context.Background(), dir, blobs, func(int) {}); err != nil || n != 1 {
		t.Errorf("%d mended, %v", n, err)
	}
	mustFetch(t, newFetcher(t, p), blobs[1])
}

func TestKeepTellsDamageAndSpace(t *testing.T) {
	data := content(100_000)
	s := newFetcher(t).Store
	if err := os.WriteFile(s.Path(storetest.Sum(data)), data[1:], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Keep(context.Background(), t.TempDir(), []plan.Blob{debBlob(data)}, func(int) {}); err == nil || !strings.Contains(err.Error(), "damaged in the store: "+s.Dir()) {
		t.Errorf("got %v", err)
	}
	put(t, s, data)
	dir, _ := smallDisk(t, 40)
	if _, err := s.Keep(context.Background(), dir, []plan.Blob{debBlob(data)}, func(int) {}); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "no space in "+dir) {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "blobs", "sha256")); err != nil || len(left) != 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}
