package builder

import (
	"context"
	"fmt"
	"io"

	controlapi "github.com/moby/buildkit/api/services/control"
	"github.com/moby/buildkit/client"
)

// Cache is what an engine keeps.
type Cache struct {
	Version string `json:"version"` // of the engine
	Records int    `json:"records"`
	Size    int64  `json:"size"`   // bytes
	InUse   int64  `json:"in_use"` // bytes that builds use just now
	Builds  int    `json:"builds"` // running
}

// ReadCache asks the engine at addr.
func ReadCache(ctx context.Context, addr string) (*Cache, error) {
	c, err := client.New(ctx, addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	info, err := c.Info(ctx)
	if err != nil {
		return nil, err
	}
	out := &Cache{Version: info.BuildkitVersion.Version}
	records, err := c.DiskUsage(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		out.Records++
		out.Size += r.Size
		if r.InUse {
			out.InUse += r.Size
		}
	}
	out.Builds, err = running(ctx, c)
	return out, err
}

// running counts the builds of an engine.
func running(ctx context.Context, c *client.Client) (n int, err error) {
	stream, err := c.ControlClient().ListenBuildHistory(ctx, &controlapi.BuildHistoryRequest{ActiveOnly: true, EarlyExit: true})
	if err != nil {
		return 0, err
	}
	for {
		switch _, err := stream.Recv(); err {
		case nil:
			n++
		case io.EOF:
			return n, nil
		default:
			return n, err
		}
	}
}

// Pruned is what a prune removed.
type Pruned struct {
	Records int   `json:"records"` // 0 when all went at once
	Size    int64 `json:"size"`    // bytes
}

// PruneCache removes cached results that no build uses just now, those unused for
// longest first, until at most keep bytes are left.
func PruneCache(ctx context.Context, addr string, keep int64) (Pruned, error) {
	var out Pruned
	c, err := client.New(ctx, addr)
	if err != nil {
		return out, err
	}
	defer c.Close()
	removed := make(chan client.UsageInfo)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for r := range removed {
			out.Records++
			out.Size += r.Size
		}
	}()
	err = c.Prune(ctx, removed, client.PruneAll, client.WithKeepOpt(0, 0, keep, 0))
	close(removed)
	<-done
	if err != nil {
		return out, fmt.Errorf("the engine did not prune its cache: %w", err)
	}
	return out, nil
}
