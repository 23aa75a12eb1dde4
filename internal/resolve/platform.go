package resolve

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"github.com/imgforge/imgforge/internal/compat"
	"github.com/imgforge/imgforge/internal/lock"
)

// platform is the engine's own.
func (r *Resolver) platform() string { return cmp.Or(r.Platform, "linux/"+runtime.GOARCH) }

// archOf is the Debian architecture of a platform.
func archOf(platform string) string { return strings.TrimPrefix(platform, "linux/") }

// runs refuses a base made elsewhere that the engine cannot run: what goes on it
// is solved in it.
func (r *Resolver) runs(ctx context.Context, req lock.Request) error {
	want, err := "linux/"+req.Arch, error(nil)
	switch {
	case want == r.platform():
		return nil
	case r.Runs == nil:
		err = fmt.Errorf("this engine runs %s alone", r.platform())
	default:
		err = r.Runs(ctx, want)
	}
	if err != nil {
		return fmt.Errorf("base %s is of %s and is locked by running its own apt and Python (a debian base needs no such engine): %w", req.Base, want, err)
	}
	return nil
}

// machines are the names that wheels have for Debian's architectures.
var machines = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// newestGlibc is the last minor release of glibc 2 that uv knows as a platform.
const newestGlibc = 40

// target is what wheels.py is told when the wheels are for another machine than
// the one that solves: its name, and the minor release of its glibc.
func target(req lock.Request) ([]string, error) {
	machine := machines[req.Arch]
	dist, known := compat.DistributionOf(req.Suite)
	minor, err := strconv.Atoi(strings.TrimPrefix(dist.Glibc, "2."))
	if !known || err != nil || machine == "" {
		return nil, fmt.Errorf("which wheels %s on %s takes is not known", req.Suite, req.Arch)
	}
	return []string{machine, strconv.Itoa(min(minor, newestGlibc))}, nil
}
