package builder

import (
	"errors"
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
	here := &Builder{platforms: platformsOf(workers[:1])}
	if err := here.Runs("linux/amd64"); err != nil {
		t.Error(err)
	}
	err := here.Runs("linux/arm64")
	if !errors.Is(err, ErrNoEngine) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"for linux/arm64: this one runs linux/amd64, linux/386;", "--builder", "qemu"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in: %v", want, err)
		}
	}
}
