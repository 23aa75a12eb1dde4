package builder

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/moby/buildkit/client"
	gateway "github.com/moby/buildkit/frontend/gateway/client"
	"github.com/moby/buildkit/session/secrets/secretsprovider"

	"github.com/imgforge/imgforge/internal/graph"
)

// outputLimit bounds what a command may hand back in all.
const outputLimit = 64 << 20

// Command runs a command in a Debian container made of stored .debs and returns
// the files it left in /out, by path. Secrets are files it may read and nothing
// keeps.
func (b *Builder) Command(ctx context.Context, cmd graph.Command, secrets map[string][]byte, status chan<- *client.SolveStatus) (map[string][]byte, error) {
	root, err := b.bootstrap(ctx, cmd.Root)
	if err != nil {
		return nil, err
	}
	cmd.Secrets = slices.Sorted(maps.Keys(secrets))
	state := cmd.Compile(graph.Inputs{Blob: b.source, Image: b.image, Bootstrap: root})
	def, err := (&graph.Graph{State: state}).Marshal(ctx, cmd.Root)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	_, err = b.solve(ctx, solveArgs{status: status, secrets: secretsprovider.FromMap(secrets)}, func(ctx context.Context, gw gateway.Client) (*gateway.Result, error) {
		res, err := gw.Solve(ctx, gateway.SolveRequest{Definition: def.ToPB(), Evaluate: true})
		if err != nil {
			return nil, err
		}
		ref, err := res.SingleRef()
		if err != nil {
			return nil, err
		}
		return res, collect(ctx, ref, "/", out)
	})
	return out, err
}

// collect reads every file below dir.
func collect(ctx context.Context, ref gateway.Reference, dir string, out map[string][]byte) error {
	entries, err := ref.ReadDir(ctx, gateway.ReadDirRequest{Path: dir})
	if err != nil {
		return err
	}
	for _, e := range entries {
		p := path.Join(dir, e.Path)
		if e.IsDir() {
			if err := collect(ctx, ref, p, out); err != nil {
				return err
			}
			continue
		}
		data, err := ref.ReadFile(ctx, gateway.ReadRequest{Filename: p})
		if err != nil {
			return fmt.Errorf("cannot read %s of the container: %w", p, err)
		}
		out[p[1:]] = data
		if total(out) > outputLimit {
			return errors.New("the container left more than 64 MiB behind")
		}
	}
	return nil
}

func total(files map[string][]byte) int {
	n := 0
	for _, data := range files {
		n += len(data)
	}
	return n
}
