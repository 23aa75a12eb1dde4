package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/containerd/containerd/v2/core/content"
	contentlocal "github.com/containerd/containerd/v2/plugins/content/local"
	"github.com/moby/buildkit/client"
	"github.com/moby/buildkit/client/llb"
	"github.com/opencontainers/go-digest"

	"github.com/imgforge/imgforge/internal/builder"
	"github.com/imgforge/imgforge/internal/plan"
)

// yard is a running engine with what it builds from and to.
type yard struct {
	in      *inputs
	verbose bool
	out     string // OCI layouts
	ours    *builder.Builder
	theirs  *client.Client // the same engine, as any other tool uses it
	blobURL string
	closers []func() error
}

// openYard starts an engine on the state in dir.
func openYard(ctx context.Context, dir string, in *inputs) (_ *yard, err error) {
	y := &yard{in: in, out: filepath.Join(dir, "out")}
	defer func() {
		if err != nil {
			err = errors.Join(err, y.close())
		}
	}()
	buildkitd, err := filepath.Abs("bin/buildkitd")
	if err != nil {
		return nil, err
	}
	engine, err := builder.Start(ctx, filepath.Join(dir, "engine"), builder.Paths{Buildkitd: buildkitd})
	if err != nil {
		return nil, err
	}
	y.closers = append(y.closers, engine.Close)
	url, stop, err := in.store.Serve(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	y.blobURL = url
	y.closers = append(y.closers, stop)
	if y.ours, err = builder.Connect(ctx, builder.Options{Addr: engine.Addr, Store: in.store, BlobURL: url, Blobs: engine.Blobs()}); err != nil {
		return nil, err
	}
	y.closers = append(y.closers, y.ours.Close)
	if y.theirs, err = client.New(ctx, engine.Addr); err != nil {
		return nil, err
	}
	y.closers = append(y.closers, y.theirs.Close)
	return y, nil
}

func (y *yard) close() error {
	var errs []error
	for i := len(y.closers) - 1; i >= 0; i-- {
		errs = append(errs, y.closers[i]())
	}
	return errors.Join(errs...)
}

// layers builds a plan as imgforge does.
func (y *yard) layers(ctx context.Context, p *plan.Plan) (builder.Image, error) {
	job := builder.Job{Plan: p, Layout: filepath.Join(y.out, "layers")}
	if y.verbose {
		status := make(chan *client.SolveStatus)
		defer close(status)
		job.Status = status
		go show(status)
	}
	return y.ours.Build(ctx, job)
}

// show prints steps as they end.
func show(status <-chan *client.SolveStatus) {
	start := time.Now()
	for ev := range status {
		for _, v := range ev.Vertexes {
			if v.Completed != nil && !v.Cached && v.Started != nil {
				fmt.Fprintf(os.Stderr, "  %6.1f to %6.1f %s\n", v.Started.Sub(start).Seconds(), v.Completed.Sub(start).Seconds(), v.Name)
			}
		}
		for _, v := range ev.Statuses {
			if v.Completed != nil && v.Started != nil {
				fmt.Fprintf(os.Stderr, "  %6.1f to %6.1f   %s\n", v.Started.Sub(start).Seconds(), v.Completed.Sub(start).Seconds(), v.ID)
			}
		}
	}
}

// plain installs the same wheels as one RUN step with pip, as a Dockerfile would.
func (y *yard) plain(ctx context.Context, compression string) error {
	wheels := y.in.wheelsOf()
	states := make([]llb.State, len(wheels))
	args := []string{"/opt/venv/bin/pip", "install", "--no-index", "--no-deps", "--no-cache-dir", "--find-links", "/wheels"}
	for i, w := range wheels {
		states[i] = llb.HTTP(y.blobURL+"/sha256/"+w.SHA256, llb.Checksum(digest.NewDigestFromEncoded(digest.SHA256, w.SHA256)), llb.Filename(w.Name))
		args = append(args, plan.DistributionOf(w))
	}
	return y.export(ctx, compression, args, llb.AddMount("/wheels", llb.Merge(states), llb.Readonly))
}

// export runs one command over the base image and exports the result with
// BuildKit's own client, to an OCI layout as well.
func (y *yard) export(ctx context.Context, compression string, args []string, opts ...llb.RunOption) error {
	base := llb.OCILayout("bench/base@"+y.in.base, llb.OCIStore("", "bench"))
	run := base.Run(append(opts, llb.Args(args), llb.Network(llb.NetModeNone))...)
	def, err := run.Root().Marshal(ctx, llb.LinuxAmd64)
	if err != nil {
		return err
	}
	images, err := contentlocal.NewStore(filepath.Join(y.out, "layers"))
	if err != nil {
		return err
	}
	_, err = y.theirs.Solve(ctx, def, client.SolveOpt{
		Exports: []client.ExportEntry{{
			Type: client.ExporterOCI, OutputDir: filepath.Join(y.out, compression),
			Attrs: map[string]string{"tar": "false", "compression": compression},
		}},
		OCIStores: map[string]content.Store{"bench": images},
	}, nil)
	return err
}
