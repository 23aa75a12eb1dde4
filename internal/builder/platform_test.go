package builder

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/moby/buildkit/client"
	ocispecs "github.com/opencontainers/image-spec/specs-go/v1"
)

func TestPlatforms(t *testing.T) {
	workers := []*client.WorkerInfo{
		{Platforms: []ocispecs.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "amd64", Variant: "v2"}, {OS: "linux", Architecture: "386"}}},
		{Platforms: []ocispecs.Platform{{OS: "linux", Architecture: "arm64", Variant: "v8"}, {OS: "linux", Architecture: "amd64"}}},
	}
	if got, want := platformsOf(workers), []string{"linux/amd64", "linux/386", "linux/arm64"}; !slices.Equal(got, want) {
		t.Errorf("two workers run %q, want %q", got, want)
	}
}

// What an engine says it runs is not all: with an emulator on its PATH, BuildKit
// runs what it does not list. The emulator here is a program that does nothing.
func TestRuns(t *testing.T) {
	emulators := t.TempDir()
	t.Setenv("PATH", emulators+string(filepath.ListSeparator)+os.Getenv("PATH"))
	b := connected(t)
	own, other, emulator := "linux/amd64", "linux/arm64", "buildkit-qemu-aarch64"
	if runtime.GOARCH == "arm64" {
		own, other, emulator = other, own, "buildkit-qemu-x86_64"
	}
	if got := b.Platform(); got != own {
		t.Errorf("the engine is of %s, want %s", got, own)
	}
	if err := b.Runs(t.Context(), own); err != nil {
		t.Error(err)
	}
	for _, platform := range []string{other, "linux/mips"} {
		err := b.Runs(t.Context(), platform)
		if !errors.Is(err, ErrNoEngine) {
			t.Fatalf("%s: got %v; is qemu registered here?", platform, err)
		}
		for _, want := range []string{"for " + platform + ": this one runs " + own, "--builder", "qemu"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("no %q in: %v", want, err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(emulators, emulator), programs[own](), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := b.Runs(t.Context(), other); err != nil {
		t.Errorf("with an emulator: %v", err)
	}
	stopped, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the user's wish"))
	if err := b.Runs(stopped, other); err == nil || errors.Is(err, ErrNoEngine) {
		t.Errorf("stopped: got %v", err)
	}
}

// empty is a store that nothing is in.
type empty string

func (e empty) Dir() string            { return string(e) }
func (e empty) Path(sum string) string { return filepath.Join(string(e), sum) }
func (empty) Has(string) bool          { return false }
func (empty) Put(context.Context, io.Reader) (string, int64, error) {
	return "", 0, errors.ErrUnsupported
}

// connected is a builder on an engine of its own.
func connected(t *testing.T) *Builder {
	t.Helper()
	e := start(t, t.TempDir())
	b, err := Connect(t.Context(), Options{Addr: e.Addr, Store: empty(t.TempDir())})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}
