package builder

import (
	"slices"

	"github.com/moby/buildkit/client"
)

// Platform is the engine's own: linux/amd64.
func (b *Builder) Platform() string { return b.platforms[0] }

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
