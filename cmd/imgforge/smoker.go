package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
	"github.com/spf13/pflag"

	"github.com/imgforge/imgforge/internal/builder"
	"github.com/imgforge/imgforge/internal/check"
	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/forge"
	"github.com/imgforge/imgforge/internal/matrix"
	"github.com/imgforge/imgforge/internal/record"
	"github.com/imgforge/imgforge/internal/report"
	"github.com/imgforge/imgforge/internal/scan"
	"github.com/imgforge/imgforge/internal/smoke"
)

// smokeFlags say how images are tested.
type smokeFlags struct {
	gpu     string   // policy; empty: the matrix's
	devices []string // of the engine; empty: all
	only    []string // names of checks
	junit   string
}

func (f *smokeFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.gpu, "gpu", "", "checks that need a GPU: auto (run them where there is one), require (fail without one) or skip (default: the matrix's, else auto)")
	flags.StringArrayVar(&f.devices, "gpu-device", nil, "GPUs to test on, as the engine names them, such as nvidia.com/gpu=0 (repeatable; default: all)")
	flags.StringSliceVar(&f.only, "check", nil, "run these checks alone, by name; the image is untested then (repeatable)")
	flags.StringVar(&f.junit, "junit", "", "file that gets the results as JUnit XML")
}

func (f *smokeFlags) check() error {
	if f.gpu != "" && !slices.Contains(matrix.Policies, f.gpu) {
		return fmt.Errorf("--gpu %q: %s", f.gpu, diag.Allowed(f.gpu, matrix.Policies))
	}
	if f.junit != "" {
		return checkOutput(filepath.Dir(f.junit))
	}
	return nil
}

// known refuses a --check that no cell has.
func (f *smokeFlags) known(checks []check.Check) error {
	names := smoke.Names(checks)
	for _, name := range f.only {
		if !slices.Contains(names, name) {
			return fmt.Errorf("--check %q: %s", name, diag.Allowed(name, names))
		}
	}
	return nil
}

// writeJUnit writes the results for a CI system.
func (f *smokeFlags) writeJUnit(rows []report.Row) error {
	if f.junit == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(f.junit), 0o755); err != nil {
		return infra(err)
	}
	file, err := os.Create(f.junit)
	if err == nil {
		err = errors.Join(report.JUnit(file, rows), file.Close())
	}
	return orInfra(err)
}

// policy is what the flag says, else the matrix.
func (f *smokeFlags) policy(m matrix.Smoke) string {
	if f.gpu != "" {
		return f.gpu
	}
	return m.GPU
}

// cellSmoker runs the checks of cells on the engine that built them, for forge.
type cellSmoker struct {
	cellBuilder
	scans scan.Cache
}

// Smoke is forge's Smoker.
func (c *cellSmoker) Smoke(ctx context.Context, cell forge.Cell, image forge.Image) (*record.Smoked, error) {
	prover, err := c.work.builder.ProveBuilt(ctx, c.job(cell.Plan))
	if err != nil {
		return nil, err
	}
	var layers []scan.Layer
	for _, part := range image.Parts[2:] {
		layers = append(layers, layoutLayer(c.flags.out.dir, part.Digest))
	}
	suite := &smoke.Suite{
		Image: image.Digest, Name: "buildkit", Runner: prover, Static: staticChecks(&c.scans, layers),
		GPU: c.flags.smoke.policy(c.in.matrix.Smoke), Floor: cell.Floor, Only: c.flags.smoke.only, Jobs: runtime.GOMAXPROCS(0),
		Began: c.work.display.watch(cell.Tag),
	}
	prover.Devices, suite.NoGPU, err = engineGPUs(ctx, c.work.builder, c.flags.smoke.devices)
	if err != nil {
		return nil, err
	}
	return suite.Run(ctx, cell.Checks)
}

// engineGPUs are the GPUs to test on, and why there are none.
func engineGPUs(ctx context.Context, b *builder.Builder, asked []string) (devices []string, none string, err error) {
	has, err := b.GPUs(ctx)
	if err != nil {
		return nil, "", err
	}
	for _, name := range asked {
		if !slices.Contains(has, name) {
			return nil, "", &exitError{exitInput, fmt.Errorf("--gpu-device %q: the engine has no such device; it has: %s", name, strings.Join(has, ", "))}
		}
	}
	switch {
	case len(asked) > 0:
		return asked, "", nil
	case len(has) == 0:
		return nil, "the engine has no GPU", nil
	}
	return builder.AllGPUs(has), "", nil
}

// staticChecks reads the layers once, when the first check asks.
func staticChecks(cache *scan.Cache, layers []scan.Layer) func(context.Context, check.Check) (check.Result, error) {
	read := sync.OnceValues(func() (*scan.Tree, error) { return cache.Read(layers, runtime.GOMAXPROCS(0)) })
	return func(_ context.Context, c check.Check) (check.Result, error) {
		tree, err := read()
		if err != nil {
			return check.Result{}, err
		}
		return tree.Check(c)
	}
}

// layoutLayer opens a layer of an OCI layout.
func layoutLayer(dir, name string) scan.Layer {
	d := digest.Digest(name)
	return scan.Layer{Digest: name, Open: func() (io.ReadCloser, error) {
		return os.Open(filepath.Join(dir, "blobs", d.Algorithm().String(), d.Encoded()))
	}}
}

// watch shows each check of an image as a step.
func (d *display) watch(tag string) func(name string) func(error) {
	return func(name string) func(error) {
		t := d.begin("smoke " + tag + ": " + name)
		return t.end
	}
}
