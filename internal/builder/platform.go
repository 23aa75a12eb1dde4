package builder

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moby/buildkit/client"
)

// Platforms lists what the engine runs, its own platform first: linux/amd64.
func (b *Builder) Platforms() []string { return slices.Clone(b.platforms) }

// platformsOf joins what workers run. Variants of a platform, such as arm64/v8, are
// left out: every plan is for the plain one.
func platformsOf(workers []*client.WorkerInfo) []string {
	var out []string
	for _, w := range workers {
		for _, p := range w.Platforms {
			if name := p.OS + "/" + p.Architecture; !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// Runs refuses a platform whose programs the engine cannot run, with the cure.
func (b *Builder) Runs(platform string) error {
	if slices.Contains(b.platforms, platform) {
		return nil
	}
	return fmt.Errorf("%w for %s: this one runs %s; name one that does with --builder, or register qemu for it with this one's kernel and start the engine anew (see docs/engine.md)",
		ErrNoEngine, platform, strings.Join(b.platforms, ", "))
}
