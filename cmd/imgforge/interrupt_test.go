package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/imgforge/imgforge/internal/record"
)

// stuck is a server that takes requests and answers none until the test ends.
func stuck(t *testing.T) (url string, asked <-chan struct{}) {
	t.Helper()
	got, done := make(chan struct{}), make(chan struct{})
	var once sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		once.Do(func() { close(got) })
		select {
		case <-done:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() {
		close(done)
		server.Close()
	})
	return server.URL, got
}

// interrupted ends a run as Ctrl-C does and checks that it says what comes next.
func interrupted(t *testing.T, p *process, w world) {
	t.Helper()
	p.signal(t, p.cmd.Process.Pid, syscall.SIGINT)
	r := p.result(t).wants(t, exitInfra)
	if !strings.Contains(r.stdout+r.stderr, "goes on from here") {
		t.Errorf("it does not say that the run can be resumed:\n%s\n%s", r.stdout, tail(r.stderr, 20))
	}
	if got := running(w.state); len(got) > 0 {
		t.Errorf("still running: %v", got)
	}
}

// Before anything is begun: no engine is started.
func TestInterruptPlanning(t *testing.T) {
	w := locked(t)
	w.state = t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errInterrupted)
	var out, errs syncBuffer
	code := run(ctx, environ(), strings.NewReader(""), &out, &errs, w.args("build", "--json"))
	r := result{out.String(), errs.String(), code}.wants(t, exitInfra)
	if reason := failedAs(t, rows(t, r), cellA, record.ClassCancel); !strings.Contains(reason, "goes on from here") {
		t.Errorf("the reason is %q", reason)
	}
	if _, err := os.Stat(filepath.Join(w.state, "engine")); err == nil {
		t.Error("an engine was started")
	}
}

// While the engine starts: it is not called silent, since nobody waited for it.
func TestInterruptEngineStart(t *testing.T) {
	w := locked(t)
	w.state = t.TempDir()
	sleepy := filepath.Join(w.state, "buildkitd")
	if err := os.WriteFile(sleepy, []byte("#!/bin/sh\nexec sleep 317.5\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := start(t, nil, append(environ(), "IMGFORGE_BUILDKITD="+sleepy), w.args("build", "--json")...)
	p.says(t, "start the engine")
	until(t, "the engine to sleep", func() bool { return len(running("sleep 317.5")) > 0 })
	interrupted(t, p, w)
	if strings.Contains(p.stderr.String(), "does not answer") {
		t.Errorf("stderr:\n%s", p.stderr)
	}
	nothingLeft(t, w, "sleep 317.5")
}

// While files are fetched: they are fetched the next time.
func TestInterruptFetching(t *testing.T) {
	w, _ := built(t)
	w.dist = filepath.Join(t.TempDir(), "dist")
	lose(t, w)
	url, asked := stuck(t)
	p := start(t, nil, environ(), w.mirrored(profiles(t, url), "first")...)
	<-asked
	interrupted(t, p, w)
	worksAgain(t)
}

// While the image is exported: its steps are cached.
func TestInterruptExporting(t *testing.T) {
	w, _ := built(t)
	w.dist = filepath.Join(t.TempDir(), "dist")
	url, asked := stuck(t)
	p := start(t, nil, environ(), w.args("build", "--only", "driver=525", "--push", strings.TrimPrefix(url, "http://")+"/team/small")...)
	<-asked
	interrupted(t, p, w)
	worksAgain(t)
}
