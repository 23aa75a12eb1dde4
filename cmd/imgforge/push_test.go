package main

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/imgforge/imgforge/internal/record"
)

// pushes notes under which names manifests arrive.
type pushes struct {
	next  http.Handler
	mu    sync.Mutex
	names []string
}

func (p *pushes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/manifests/") {
		p.mu.Lock()
		p.names = append(p.names, path.Base(r.URL.Path))
		p.mu.Unlock()
	}
	p.next.ServeHTTP(w, r)
}

// Images are pushed under their digests, the layout's own, and no tag is written.
// docker/buildx#1089, docker/bake-action#112: tags that move before all is well.
func TestPush(t *testing.T) {
	w, want := built(t)
	w.dist = filepath.Join(t.TempDir(), "dist")
	noted := &pushes{next: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	server := httptest.NewServer(noted)
	defer server.Close()
	repository := strings.TrimPrefix(server.URL, "http://") + "/team/small"
	r := imgforge(t, w.args("build", "--json", "--push", repository)...).wants(t, exitDone)
	for _, row := range rows(t, r) {
		digest := digests(want)[row.Cell]
		if row.Digest != digest || row.Pushed != repository+"@"+digest {
			t.Errorf("%s: %s pushed as %s, want %s", row.Cell, row.Digest, row.Pushed, digest)
		}
		ref, err := name.NewDigest(repository+"@"+digest, name.Insecure)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := remote.Get(ref); err != nil || got.Digest.String() != digest {
			t.Errorf("%s in the registry: %v", row.Cell, err)
		}
	}
	for _, n := range noted.names {
		if !strings.HasPrefix(n, "sha256:") {
			t.Errorf("the tag %s was written", n)
		}
	}
	if len(noted.names) < 3 {
		t.Errorf("manifests pushed: %v", noted.names)
	}
}

// A registry that is not there fails the push, not the build.
func TestPushFails(t *testing.T) {
	w, _ := built(t)
	w.dist = filepath.Join(t.TempDir(), "dist")
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	r := imgforge(t, w.args("build", "--json", "--only", "driver=525", "--push", address+"/team/small")...).wants(t, exitInfra)
	if reason := failedAs(t, rows(t, r), cellA, record.ClassPush); !strings.Contains(reason, address) {
		t.Errorf("the registry is not named: %q", reason)
	}
}
