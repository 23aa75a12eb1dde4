package builder

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moby/buildkit/client"
)

// paths are the programs that `make build` and `make setup` put in place.
func paths(t *testing.T) Paths {
	t.Helper()
	if os.Geteuid() != 0 && os.Getenv("CI") == "" {
		t.Skip("the embedded engine needs root")
	}
	buildkitd, err := filepath.Abs("../../bin/buildkitd")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(buildkitd); err != nil {
		t.Fatalf("%v; run `make setup build` first", err)
	}
	return Paths{Buildkitd: buildkitd}
}

func start(t *testing.T, dir string) *Engine {
	t.Helper()
	e, err := Start(context.Background(), dir, paths(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func answers(addr string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c, err := client.New(ctx, addr)
	if err != nil {
		return false
	}
	defer c.Close()
	_, err = c.Info(ctx)
	return err == nil
}

func TestEngineStartsAndStops(t *testing.T) {
	dir := t.TempDir()
	e := start(t, dir)
	if !answers(e.Addr) {
		t.Fatal("the engine does not answer")
	}
	pid := e.cmd.Process.Pid
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if syscall.Kill(pid, 0) == nil {
		t.Error("buildkitd outlives Close")
	}
	if _, err := os.Stat(filepath.Join(dir, "buildkitd.sock")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
	noMounts(t, dir)
	again := start(t, dir)
	if !answers(again.Addr) {
		t.Error("a second start on the same directory does not answer")
	}
}

// A unix socket's path has 107 bytes; a state directory may be longer.
func TestEngineInADeepDirectory(t *testing.T) {
	e := start(t, filepath.Join(t.TempDir(), strings.Repeat("deep/", 30)))
	if !answers(e.Addr) {
		t.Error("the engine does not answer")
	}
}

func TestOneOwnerAtATime(t *testing.T) {
	dir := t.TempDir()
	start(t, dir)
	_, err := Start(context.Background(), dir, paths(t))
	if !errors.Is(err, ErrNoEngine) || !strings.Contains(err.Error(), "another imgforge") {
		t.Errorf("a second owner was answered with %v", err)
	}
}

func TestKilledEngineIsNoticedAndReplaced(t *testing.T) {
	dir := t.TempDir()
	e := start(t, dir)
	if err := e.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-e.done:
	case <-time.After(30 * time.Second):
		t.Fatal("the end of the child goes unnoticed")
	}
	if !e.Ended() {
		t.Error("an engine that was killed has not ended")
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	noMounts(t, dir)
	if again := start(t, dir); !answers(again.Addr) {
		t.Error("no engine after a killed one")
	}
}

func TestEngineThatCannotStartShowsItsLog(t *testing.T) {
	p := paths(t)
	p.Buildkitd = filepath.Join(t.TempDir(), "buildkitd")
	if err := os.WriteFile(p.Buildkitd, []byte("#!/bin/sh\necho out of luck >&2\nexit 7\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Start(context.Background(), t.TempDir(), p)
	if !errors.Is(err, ErrNoEngine) || !strings.Contains(err.Error(), "out of luck") {
		t.Errorf("got %v", err)
	}
}

func TestRuntimeVersions(t *testing.T) {
	tests := map[string]string{ // banner to a part of the refusal, or ""
		"runc version 1.1.5+ds1\ncommit: x\n": "",
		"runc version 1.3.0\n":                "",
		"runc version 1.1.4\n":                "1.1.5 or newer",
		"runc version 1.0.0-rc93\n":           "1.1.5 or newer",
		"crun version 1.8.1\ncommit: x\n":     "lacks `run --keep`",
		"crun version 1.9\n":                  "",
		"crun version 1.20\n":                 "",
		"youki version 0.3.0\n":               "neither runc nor crun",
		"":                                    "neither runc nor crun",
	}
	for banner, want := range tests {
		err := CheckRuntime("/usr/sbin/x", banner)
		switch {
		case want == "" && err != nil:
			t.Errorf("%q was refused: %v", banner, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: got %v, want %q in it", banner, err, want)
		}
	}
}

// moby/buildkit#4614, #4805: older ones wrote a base's layers anew.
func TestOldEnginesAreRefused(t *testing.T) {
	for version, refused := range map[string]bool{
		"v0.34.2": false, "v0.35.0": false, "0.34.0": false, "v0.12.5": true, "v0.33.9": true, "v0.0.0+unknown": true, "hash": false,
	} {
		if err := checkEngine("unix:///x", version); (err != nil) != refused {
			t.Errorf("%s: %v, want refused=%t", version, err, refused)
		}
	}
}

func TestDeadEngineURL(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := "tcp://" + l.Addr().String()
	l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, err = Connect(ctx, Options{Addr: addr})
	if !errors.Is(err, ErrNoEngine) || !strings.Contains(err.Error(), addr) {
		t.Errorf("got %v", err)
	}
}

func TestIsLoopback(t *testing.T) {
	for repository, want := range map[string]bool{
		"127.0.0.1:5000/a": true, "localhost/a": true, "localhost:5000/a": true, "[::1]:5000/a": true,
		"registry.example/a": false, "10.0.0.1:5000/a": false, "127.0.0.1.example/a": false,
	} {
		if got := isLoopback(repository); got != want {
			t.Errorf("%s: %t", repository, got)
		}
	}
}

// noMounts checks that nothing is mounted below dir, in any mount namespace of ours.
func noMounts(t *testing.T, dir string) {
	t.Helper()
	out, err := exec.Command("cat", "/proc/self/mountinfo").Output()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(out), dir+"/") {
		t.Errorf("something is still mounted below %s", dir)
	}
}

func TestEngineKnowsItsBlobs(t *testing.T) {
	e := start(t, t.TempDir())
	if filepath.Base(e.Blobs()) != "blobs" {
		t.Errorf("the engine's blobs are in %q", e.Blobs())
	}
	if _, err := os.Stat(filepath.Dir(e.Blobs())); err != nil {
		t.Error(err)
	}
}
