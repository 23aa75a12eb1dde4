package main

import (
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/imgforge/imgforge/internal/record"
	"github.com/imgforge/imgforge/internal/store/storetest"
)

// keeper is a registry that can damage one blob on its way out.
type keeper struct {
	next    http.Handler
	mu      sync.Mutex
	damaged string // hex
	gone    bool   // the registry answers nothing
}

func (k *keeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	hit, gone := k.damaged != "" && r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, k.damaged), k.gone
	k.mu.Unlock()
	switch {
	case gone:
		w.WriteHeader(http.StatusForbidden)
	case hit:
		rec := httptest.NewRecorder()
		k.next.ServeHTTP(rec, r)
		w.Write(append(rec.Body.Bytes()[1:], 0))
	default:
		k.next.ServeHTTP(w, r)
	}
}

func (k *keeper) set(damaged string, gone bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.damaged, k.gone = damaged, gone
}

// withMirrors are arguments with another list of mirrors.
func withMirrors(args []string, names string) []string {
	out := append([]string(nil), args...)
	for i, a := range out {
		if a == "--mirrors" {
			out[i+1] = names
		}
	}
	return out
}

// Every locked byte is kept in a registry; a machine that has nothing else builds
// the same images from it alone, and damage there is refused.
func TestVendorRegistry(t *testing.T) {
	w, before := built(t)
	k := &keeper{next: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	server := httptest.NewServer(k)
	defer server.Close()
	place := "oci://" + strings.TrimPrefix(server.URL, "http://") + "/team/vendor"
	for i := range 2 {
		r := imgforge(t, w.args("vendor", "--to", place, "--json", "--progress", "plain")...).wants(t, exitDone)
		var got vendored
		if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
			t.Fatal(err)
		}
		if got.Files < 50 || got.New != got.Files*(1-i) {
			t.Errorf("run %d: %+v", i, got)
		}
	}
	only := []string{"--only", "driver=525", "--json"}
	fresh := w
	fresh.state, fresh.dist = filepath.Join(scratch, "vendor"), filepath.Join(t.TempDir(), "dist")
	defer os.RemoveAll(fresh.state)
	// The store is empty; the engine is the shared one, which has built this before.
	if err := errors.Join(os.Mkdir(fresh.state, 0o755), os.Symlink(filepath.Join(w.state, "engine"), filepath.Join(fresh.state, "engine"))); err != nil {
		t.Fatal(err)
	}
	r := imgforge(t, withMirrors(fresh.args("build", only...), place)...).wants(t, exitDone)
	if got, want := rows(t, r)[0], digests(before)[cellA]; got.Digest != want || got.Fetched == 0 {
		t.Errorf("%+v, want %s", got, want)
	}

	deb, _ := lose(t, w)
	k.set(storetest.Sum(deb.content), false)
	w.dist = filepath.Join(t.TempDir(), "dist")
	r = imgforge(t, withMirrors(w.args("build", only...), place)...).wants(t, exitInfra)
	if reason := failedAs(t, rows(t, r), cellA, record.ClassMirror); !strings.Contains(reason, place+": served other bytes") || !strings.Contains(reason, deb.name) {
		t.Errorf("got %s", reason)
	}
	k.set("", true)
	r = imgforge(t, withMirrors(w.args("build", only...), place)...).wants(t, exitInfra)
	if reason := failedAs(t, rows(t, r), cellA, record.ClassMirror); !strings.Contains(reason, deb.name) {
		t.Errorf("got %s", reason)
	}
}

// The same with a directory.
func TestVendorDirectory(t *testing.T) {
	w, before := built(t)
	dir := filepath.Join(t.TempDir(), "kept here")
	r := imgforge(t, w.args("vendor", "--to", dir, "--progress", "plain")...).wants(t, exitDone)
	if !strings.Contains(r.stdout, "Build from it with --mirrors vendor:"+dir) {
		t.Errorf("got %s", r.stdout)
	}
	lose(t, w)
	w.dist = filepath.Join(t.TempDir(), "dist")
	r = imgforge(t, withMirrors(w.args("build", "--only", "driver=525", "--json"), "vendor:"+dir)...).wants(t, exitDone)
	if got, want := rows(t, r)[0], digests(before)[cellA]; got.Digest != want || got.Fetched == 0 {
		t.Errorf("%+v, want %s", got, want)
	}
}
