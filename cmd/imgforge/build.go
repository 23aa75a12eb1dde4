package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/imgforge/imgforge/internal/builder"
	"github.com/imgforge/imgforge/internal/check"
	"github.com/imgforge/imgforge/internal/forge"
	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/record"
	"github.com/imgforge/imgforge/internal/registry"
	"github.com/imgforge/imgforge/internal/report"
)

// buildFlags are the options of `imgforge build`.
type buildFlags struct {
	in       inputFlags
	engine   engineFlags
	output   []string
	push     string
	compress string
	jobs     int
	failFast bool
	progress string
	json     bool
	rank     bool
	noSmoke  bool
	smoke    smokeFlags

	out *outputs // what output says
}

func (a *app) buildCommand() *cobra.Command {
	var f buildFlags
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build the cells of a matrix into one OCI layout",
		Long: `Build every selected cell: fetch what its lock names, verify it, and build it
on BuildKit with no network inside; then run its checks on the image. All cells
share one OCI layout, where each blob stands once. The end is a table: cell,
digest, size, bytes that no earlier cell has, time; and a line for each check.

A cell whose checks fail is not tagged in the layout, and the exit code is 1.
Checks that need a GPU run where the engine has one; else the image is untested,
or the cell fails: see --gpu.

Without --builder or BUILDKIT_HOST, imgforge runs the buildkitd that lies beside
it, as a child, which needs root. Elsewhere: unix://, tcp://, ssh://,
docker-container://, podman-container:// and kube-pod:// URLs.

  imgforge build --matrix matrix/universal.yaml --only 'cuda=12.1,torch=2.4.1'
  imgforge build --only torch=2.4.1 --push 127.0.0.1:5000/cuda-pytorch
  imgforge build --only torch=2.4.1 --output docker:torch.tar   # then: docker load -i torch.tar
  imgforge build --builder docker-container://buildkitd --json > result.json

An interrupted build loses nothing: downloads resume and built layers are kept.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.build(cmd.Context(), &f) },
	}
	flags := cmd.Flags()
	f.in.register(flags)
	f.engine.register(flags)
	flags.StringArrayVarP(&f.output, "output", "o", []string{"dist"}, "directory of an OCI layout, or docker:FILE or oci:FILE for a tar that docker or podman loads (repeatable)")
	flags.StringVar(&f.push, "push", "", "repository to push every image to, by digest (plain http only on loopback)")
	flags.StringVar(&f.compress, "compression", builder.Compressions[0], "of layers: "+strings.Join(builder.Compressions, ", ")+" (estargz can be started before it is pulled)")
	flags.IntVarP(&f.jobs, "jobs", "j", 2, "cells built at once")
	flags.BoolVar(&f.failFast, "fail-fast", false, "stop at the first cell that fails (default: the others go on)")
	flags.BoolVar(&f.rank, "rank-mirrors", false, "ask the mirrors first, and use the fastest first (see imgforge mirrors)")
	flags.BoolVar(&f.noSmoke, "no-smoke", false, "build only: run no check, and the images are untested")
	f.smoke.register(flags)
	progressFlag(flags, &f.progress)
	flags.BoolVar(&f.json, "json", false, "print the result as JSON on standard output")
	return cmd
}

// validate refuses flags that no build could serve, before anything is read.
func (f *buildFlags) validate() (err error) {
	switch {
	case f.jobs < 1:
		return fmt.Errorf("--jobs %d: at least one cell is built at once; leave it out for 2", f.jobs)
	case !slices.Contains(builder.Compressions, f.compress):
		return fmt.Errorf("--compression %q: use %s", f.compress, strings.Join(builder.Compressions, ", "))
	}
	if f.out, err = parseOutputs(f.output); err != nil {
		return err
	}
	if err := errors.Join(checkProgress(f.progress), f.smoke.check()); err != nil {
		return err
	}
	return checkPush(f.push)
}

// checkPush refuses what is no repository; empty is none.
func checkPush(repository string) error {
	if repository == "" {
		return nil
	}
	if _, err := registry.Repository(repository); errors.Is(err, registry.ErrPassword) {
		return fmt.Errorf("--push: %w", err)
	} else if err != nil {
		return fmt.Errorf("--push %q: %w; name a repository without a tag: images are pushed by digest", repository, err)
	}
	return nil
}

func (a *app) build(ctx context.Context, f *buildFlags) error {
	if err := f.validate(); err != nil {
		return err
	}
	all, err := f.in.loadAll(a.environment())
	if err != nil {
		return err
	}
	for _, in := range all {
		if epoch := in.lock.Epoch(); time.Now().Unix() < epoch {
			return infra(fmt.Errorf("this machine's clock is behind the lock's epoch, %s: files would keep the times of the build; set the clock",
				time.Unix(epoch, 0).UTC().Format(time.RFC3339)))
		}
		showHoles(a.stderr, in.holes)
	}
	rec := &recorder{}
	var late []error
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	for _, in := range all { // each has mirrors and a date of its own
		err := a.buildOne(ctx, f, in, rec)
		if err != nil && len(rec.events) == 0 {
			return errors.Join(err, f.out.close())
		}
		late = append(late, err)
		if f.failFast && rec.failed {
			stop(errors.New("stopped: a cell of another matrix failed first"))
		}
	}
	late = append(late, orInfra(a.archive(ctx, f)), orInfra(f.out.close()))
	rows := report.Fold(rec.events)
	late = append(late, f.smoke.writeJUnit(rows))
	return errors.Join(append([]error{a.finish(f.json, rows)}, late...)...)
}

// archive writes the archives that were asked for, of all matrices' images.
func (a *app) archive(ctx context.Context, f *buildFlags) error {
	if ctx.Err() != nil || len(f.out.archives) == 0 || len(f.out.images) == 0 {
		return nil
	}
	display, err := newDisplay(a.stderr, f.progress)
	if err != nil {
		return err
	}
	defer display.close()
	return f.out.archive(display)
}

// buildOne builds the cells of one matrix. An error beside events is what failed
// after the cells had run.
func (a *app) buildOne(ctx context.Context, f *buildFlags, in *inputs, rec *recorder) error {
	cells := planCells(in)
	var checks []check.Check
	for _, cell := range cells {
		checks = append(checks, cell.Checks...)
	}
	if err := f.smoke.known(checks); err != nil && anyPlanned(cells) {
		return err
	}
	if !anyPlanned(cells) || ctx.Err() != nil {
		(&forge.Run{Emit: rec.emit, Classify: classify}).Do(ctx, cells)
		return nil
	}
	late, err := a.runBuild(ctx, f, in, &forge.Run{Emit: rec.emit}, cells)
	return errors.Join(err, late)
}

// recorder keeps the events of a run.
type recorder struct {
	events []record.Event
	failed bool
}

func (r *recorder) emit(ev record.Event) {
	r.events = append(r.events, ev)
	r.failed = r.failed || ev.Failed != nil
}

// runBuild has the engine, the store and the display up while the cells run. What
// fails after that is late: the cells' results stand.
func (a *app) runBuild(ctx context.Context, f *buildFlags, in *inputs, run *forge.Run, cells []forge.Cell) (late, err error) {
	if err := f.out.open(); err != nil {
		return nil, err
	}
	display, err := newDisplay(a.stderr, f.progress)
	if err != nil {
		return nil, err
	}
	work, err := a.openWorkshop(ctx, &f.engine, in, display)
	if err != nil {
		display.close()
		return nil, err
	}
	work.fetcher.Snapshot = time.Unix(in.lock.Epoch(), 0)
	if f.rank {
		if err := work.rank(ctx, cells); err != nil {
			display.close()
			return nil, errors.Join(err, work.close())
		}
	}
	layout := newLayout(f.out.dir)
	emit := run.Emit
	run.Emit = func(ev record.Event) {
		emit(ev)
		layout.see(ev)
	}
	run.Fetcher, run.Builder = forge.Once(work), &cellBuilder{work: work, in: in, flags: f}
	if !f.noSmoke {
		run.Smoker = &cellSmoker{cellBuilder: cellBuilder{work: work, in: in, flags: f}}
	}
	run.Refuse = func(ctx context.Context, p *plan.Plan) error { return work.builder.Runs(ctx, p.Platform) }
	run.Jobs, run.FailFast, run.Classify = f.jobs, f.failFast, classify
	run.Do(ctx, cells)
	late = layout.settle()
	f.out.add(in.matrix.Name.Value, layout.added)
	display.close()
	if late = errors.Join(late, layout.write(), work.close()); late != nil {
		late = infra(late)
	}
	return late, nil
}

// cellBuilder builds plans on an engine, for forge.
type cellBuilder struct {
	work  *workshop
	in    *inputs
	flags *buildFlags
}

func (c *cellBuilder) job(p *plan.Plan) builder.Job {
	return builder.Job{Plan: p, Sources: c.in.sources, Layout: c.flags.out.dir, Push: c.flags.push, Compression: c.flags.compress, Status: c.work.display.status}
}

// Build is forge's Builder. Files that were damaged in the store are fetched anew,
// and the build is tried once more.
func (c *cellBuilder) Build(ctx context.Context, p *plan.Plan) (forge.Image, error) {
	job := c.job(p)
	img, err := c.work.builder.Build(ctx, job)
	if errors.Is(err, builder.ErrDamaged) {
		if _, serr := c.work.store.Sweep(ctx, p.Blobs()); serr != nil {
			return forge.Image{}, errors.Join(err, serr)
		}
		if serr := c.work.builder.Forget(p); serr != nil {
			return forge.Image{}, errors.Join(err, serr)
		}
		if _, err = c.work.Fetch(ctx, p.Blobs()); err != nil {
			return forge.Image{}, err
		}
		img, err = c.work.builder.Build(ctx, job)
	}
	if err != nil {
		return forge.Image{}, err
	}
	out := forge.Image{Digest: img.Manifest.Digest.String(), Layers: len(img.Blobs) - 1}
	out.Parts = append(out.Parts, forge.Part{Digest: out.Digest, Size: img.Manifest.Size})
	for _, b := range img.Blobs {
		out.Parts = append(out.Parts, forge.Part{Digest: b.Digest.String(), Size: b.Size})
	}
	if c.flags.push != "" {
		out.Pushed = c.flags.push + "@" + out.Digest
	}
	return out, nil
}

// finish prints how every cell ended and turns it into an exit code.
func (a *app) finish(asJSON bool, rows []report.Row) error {
	print := report.Table
	if asJSON {
		print = report.JSON
	}
	if err := print(a.stdout, rows); err != nil {
		return err
	}
	// Cells that were stopped because another failed say nothing of their own.
	code, stopped := exitDone, false
	for _, r := range rows {
		switch {
		case r.Failed == nil:
		case r.Failed.Class == record.ClassCancel:
			stopped = true
		default:
			code = max(code, exitOf(r.Failed.Class))
		}
	}
	if stopped && code == exitDone {
		code = exitInfra
	}
	if code != exitDone {
		return &exitError{code: code}
	}
	return nil
}

func exitOf(c record.Class) int {
	switch c {
	case record.ClassPlan:
		return exitInput
	case record.ClassBuild, record.ClassSmoke:
		return exitCheck
	}
	return exitInfra
}

func anyPlanned(cells []forge.Cell) bool {
	return slices.ContainsFunc(cells, func(c forge.Cell) bool { return c.Err == nil })
}
