package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite golden files")

// scratch is where all tests keep their state. It is short, since unix sockets
// lie in it, and shared, since locking and building once is enough for most.
var scratch string

func TestMain(m *testing.M) {
	testscript.Main(holder{m}, map[string]func(){"imgforge": main})
}

// holder makes scratch before the tests and removes it after them. Whoever works
// on these tests saves minutes with IMGFORGE_TEST_DIR, a short path that is kept.
type holder struct{ m *testing.M }

func (h holder) Run() int {
	var err error
	if scratch = os.Getenv("IMGFORGE_TEST_DIR"); scratch != "" {
		for _, name := range []string{"small.lock", "dist", "bin", "compressed"} {
			err = errors.Join(err, os.RemoveAll(filepath.Join(scratch, name)))
		}
	} else if scratch, err = os.MkdirTemp("", "if-"); err == nil {
		defer os.RemoveAll(scratch)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return h.m.Run()
}

// needsEngine ends a test that cannot run here: as a failure with the cure where
// it must run, as a skip only for a developer who is not root.
func needsEngine(t *testing.T) {
	t.Helper()
	ci := os.Getenv("CI") != ""
	if os.Geteuid() != 0 {
		if ci {
			t.Fatal("the embedded engine needs root; run the tests as root")
		}
		t.Skip("the embedded engine needs root, and CI is unset")
	}
	if _, err := os.Stat(buildkitd()); err != nil {
		t.Fatalf("no bin/buildkitd (%v); run `make setup build`", err)
	}
	for _, name := range []string{"runc", "ip", "unshare", "podman"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Fatalf("%v; run `make setup build`", err)
		}
	}
}

// repository is the path of a file of the repository.
func repository(parts ...string) string {
	path, err := filepath.Abs(filepath.Join(append([]string{"..", ".."}, parts...)...))
	if err != nil {
		panic(err)
	}
	return path
}

func buildkitd() string { return repository("bin", "buildkitd") }

// program is the real imgforge, built as the Makefile builds it, beside buildkitd.
var program = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(scratch, "bin")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "imgforge")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, os.Symlink(buildkitd(), filepath.Join(dir, "buildkitd"))
})

// environ is the environment of a run: this process's own, so that its mirrors
// and proxies work, under another name and home.
func environ() []string {
	env := append(os.Environ(), "USER="+user, "LOGNAME="+user, "IMGFORGE_BUILDKITD="+buildkitd())
	for _, name := range []string{"BUILDKIT_HOST", "IMGFORGE_STATE", "XDG_STATE_HOME"} {
		env = append(env, name+"=")
	}
	return env
}

// user is a name that must turn up nowhere.
const user = "zebulon-builder"

// result is how a run ended.
type result struct {
	stdout, stderr string
	code           int
}

// imgforge calls the program as a function.
func imgforge(t *testing.T, args ...string) result {
	t.Helper()
	return call(t, environ(), args...)
}

func call(t *testing.T, env []string, args ...string) result {
	t.Helper()
	var out, errs syncBuffer
	code := run(context.WithoutCancel(t.Context()), env, strings.NewReader(""), &out, &errs, args)
	return result{out.String(), errs.String(), code}
}

// wants ends the test unless the run ended with the code.
func (r result) wants(t *testing.T, code int) result {
	t.Helper()
	if r.code != code {
		t.Fatalf("exit code %d, want %d\n%s\n%s", r.code, code, r.stdout, tail(r.stderr, 60))
	}
	return r
}

// tail is the last lines of a text.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// syncBuffer is a buffer that may be read while a program writes to it.
type syncBuffer struct {
	mu  sync.Mutex
	buf strings.Builder
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
