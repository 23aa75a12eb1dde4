package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/docker/go-units"
	"github.com/moby/buildkit/client/llb"
	"github.com/spf13/pflag"

	"github.com/imgforge/imgforge/internal/builder"
	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/graph"
	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/record"
	"github.com/imgforge/imgforge/internal/resolve"
	"github.com/imgforge/imgforge/internal/store"
)

// engineFlags say which engine builds.
type engineFlags struct {
	builder string
	tls     string
	budget  string
}

func (f *engineFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.builder, "builder", "", "BuildKit to use: unix://, tcp://, ssh://, docker-container://, podman-container://, kube-pod:// (default $BUILDKIT_HOST, else a buildkitd of our own)")
	flags.StringVar(&f.tls, "builder-tls", "", "directory with ca.pem, cert.pem and key.pem for a tcp:// builder")
	flags.StringVar(&f.budget, "cache-budget", "", "what our own buildkitd may keep, such as 50GB (default $IMGFORGE_CACHE_BUDGET, else up to 100GB or 80% of the disk)")
}

// paths are the programs of our own engine, and its budget.
func (a *app) paths(budget string) (builder.Paths, error) {
	p := builder.Paths{Buildkitd: a.env["IMGFORGE_BUILDKITD"], Runc: a.env["IMGFORGE_RUNC"]}
	from := "--cache-budget"
	if budget == "" {
		budget, from = a.env["IMGFORGE_CACHE_BUDGET"], "IMGFORGE_CACHE_BUDGET"
	}
	if budget == "" {
		return p, nil
	}
	var err error
	p.Budget, err = parseSize(from, budget)
	return p, err
}

// parseSize reads 20GB, 500MB and the like, as BuildKit does: in powers of 1024.
func parseSize(from, text string) (int64, error) {
	n, err := units.RAMInBytes(text)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("%s %q: give a size such as 20GB or 500MB", from, text)
	}
	return n, nil
}

// workshop is a store, the mirrors that fill it and the engine that builds from it.
type workshop struct {
	store   *store.Store
	fetcher *store.Fetcher
	builder *builder.Builder
	display *display

	lockPath string

	fetching sync.Mutex
	closers  []func() error
}

// openWorkshop opens the store and starts or dials the engine.
func (a *app) openWorkshop(ctx context.Context, f *engineFlags, in *inputs, d *display) (*workshop, error) {
	w, dir, err := a.openStore(in, d)
	if err != nil {
		return nil, err
	}
	if err := w.openEngine(ctx, a, f, filepath.Join(dir, "engine")); err != nil {
		return nil, errors.Join(orInfra(err), w.close())
	}
	return w, nil
}

// openStore opens the store and the mirrors that fill it, without an engine. dir
// is the state directory.
func (a *app) openStore(in *inputs, d *display) (w *workshop, dir string, err error) {
	if dir, err = a.stateDir(); err != nil {
		return nil, "", err
	}
	w = &workshop{display: d, lockPath: in.lockPath}
	if w.store, err = store.Open(filepath.Join(dir, "store")); err != nil {
		return nil, "", infra(err)
	}
	w.fetcher = &store.Fetcher{Store: w.store, Profiles: in.mirrors, Env: a.environment()}
	return w, dir, nil
}

func (w *workshop) openEngine(ctx context.Context, a *app, f *engineFlags, dir string) error {
	opt := builder.Options{Addr: f.builder, Store: w.store, TLSDir: f.tls}
	if opt.Addr == "" {
		opt.Addr = a.env["BUILDKIT_HOST"]
	}
	if opt.Addr == "" {
		paths, err := a.paths(f.budget)
		if err != nil {
			return &exitError{exitInput, err}
		}
		t := w.display.begin("start the engine")
		engine, err := builder.Start(ctx, dir, paths)
		t.end(err)
		if err != nil {
			return err
		}
		w.closers = append(w.closers, engine.Close, func() error {
			if ctx.Err() != nil {
				return nil
			}
			return engine.KeepBudget(ctx)
		})
		url, stop, err := w.store.Serve(ctx, "127.0.0.1:0")
		if err != nil {
			return err
		}
		w.closers = append(w.closers, stop)
		opt.Addr, opt.BlobURL, opt.Blobs = engine.Addr, url, engine.Blobs()
	}
	b, err := builder.Connect(ctx, opt)
	if err != nil {
		return err
	}
	w.builder = b
	w.closers = append(w.closers, b.Close)
	return nil
}

// close stops what was started, last first.
func (w *workshop) close() error {
	var errs []error
	for i := len(w.closers) - 1; i >= 0; i-- {
		errs = append(errs, w.closers[i]())
	}
	w.closers = nil
	return errors.Join(errs...)
}

// classify says at which stage an error arose.
func classify(err error) record.Class {
	var size *store.SizeError
	var fetch *store.FetchError
	var step *builder.StepError
	var push *builder.PushError
	var disk *builder.DiskError
	switch {
	case errors.As(err, &size):
		return record.ClassPlan
	case errors.As(err, &disk), errors.Is(err, builder.ErrDamaged):
		return record.ClassEngine
	case errors.As(err, &fetch):
		return record.ClassMirror
	case errors.As(err, &push):
		return record.ClassPush
	case errors.As(err, &step):
		return record.ClassBuild
	}
	return record.ClassEngine
}

// runner runs resolve's commands on the engine.
type runner struct{ w *workshop }

func (w *workshop) runner() resolve.Runner { return runner{w} }

// Run is resolve's Runner.
func (r runner) Run(ctx context.Context, job resolve.Job) (map[string][]byte, error) {
	cmd := graph.Command{
		Name:    job.Name,
		Root:    job.Root,
		Files:   job.Files,
		Blobs:   job.Blobs,
		Args:    job.Args,
		Env:     job.Env,
		Network: job.Network,
		Proxy: llb.ProxyEnv{
			HTTPProxy: job.Proxy["http_proxy"], HTTPSProxy: job.Proxy["https_proxy"], FTPProxy: job.Proxy["ftp_proxy"],
			NoProxy: job.Proxy["no_proxy"], AllProxy: job.Proxy["all_proxy"],
		},
	}
	return r.w.builder.Command(ctx, cmd, job.Secrets, r.w.display.status)
}

// metadata is the fetcher as resolve uses it.
func (w *workshop) metadata() resolve.Fetcher { return metadata{w} }

type metadata struct{ w *workshop }

func (m metadata) Metadata(ctx context.Context, archive, path string, check func([]byte) error) ([]byte, error) {
	return m.w.fetcher.Metadata(ctx, archive, path, check)
}

func (m metadata) Fetch(ctx context.Context, blobs []plan.Blob) error {
	_, err := m.w.Fetch(ctx, blobs)
	return err
}

func (w *workshop) indexes() []resolve.Index {
	var out []resolve.Index
	for _, i := range w.fetcher.Indexes() {
		out = append(out, resolve.Index{Name: i.Mirror, URL: i.URL})
	}
	return out
}

// Fetch is forge's Fetcher: it fills the store and shows how far it is. One
// fetch at a time: each uses the whole line already, and builds go on beside it.
func (w *workshop) Fetch(ctx context.Context, blobs []plan.Blob) (int64, error) {
	w.fetching.Lock()
	defer w.fetching.Unlock()
	t := w.display.begin(fmt.Sprintf("fetch %d files", len(blobs)))
	w.fetcher.Progress = func(p store.Progress) {
		if p.Note != "" {
			t.say("%s", p.Note)
		}
		t.progress("downloaded", p.Done, p.Bytes)
	}
	result, err := w.fetcher.Fetch(ctx, blobs)
	if err == nil { // else the error says it
		for _, note := range result.Notes {
			t.say("mirror %s", note)
		}
	}
	err = w.located(err)
	t.end(err)
	return result.Downloaded, err
}

// located adds the lock's line to an error about a size it has wrong.
func (w *workshop) located(err error) error {
	var size *store.SizeError
	if !errors.As(err, &size) {
		return err
	}
	pos := diag.Pos{File: w.lockPath}
	data, _ := os.ReadFile(w.lockPath) // a shipped lock is no file
	for i, line := range strings.Split(string(data), "\n") {
		if strings.HasSuffix(line, size.Blob.SHA256) && (strings.HasPrefix(line, "deb") || strings.HasPrefix(line, "wheel")) {
			pos.Line = i + 1
		}
	}
	return fmt.Errorf("%s: %w", pos, err)
}

// environment is what host profiles are read from.
func (a *app) environment() store.Environment {
	return store.Environment{Env: a.env, Root: "/", Run: func(ctx context.Context, name string, args ...string) ([]byte, error) {
		return exec.CommandContext(ctx, name, args...).Output()
	}}
}
