package resolve

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/imgforge/imgforge/internal/compat"
	"github.com/imgforge/imgforge/internal/lock"
)

// platforms are those that jobs can run on, the engine's own first.
func (r *Resolver) platforms() []string {
	if len(r.Platforms) == 0 {
		return []string{"linux/" + runtime.GOARCH}
	}
	return r.Platforms
}

// archOf is the Debian architecture of a platform.
func archOf(platform string) string { return strings.TrimPrefix(platform, "linux/") }

// runs refuses a base made elsewhere that the engine cannot run: what goes on it
// is solved in it.
func (r *Resolver) runs(req lock.Request) error {
	platform := "linux/" + req.Arch
	if has := r.platforms(); !slices.Contains(has, platform) {
		return fmt.Errorf("base %s is locked by running its own apt and Python, which needs an engine for %s; this one runs %s: "+
			"name one with --builder, register qemu with this one's kernel, or use a debian base, which is locked anywhere",
			req.Base, platform, strings.Join(has, ", "))
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
