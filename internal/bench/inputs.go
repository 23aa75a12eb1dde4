package main

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/matrix"
	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/recipe"
	"github.com/imgforge/imgforge/internal/store"
	matrices "github.com/imgforge/imgforge/matrix"
	"github.com/imgforge/imgforge/recipes"
)

// measured are the wheels that layers are made of: two that are mostly device
// code, two that are mostly machine code, and one with many small modules.
var measured = []string{"numpy", "nvidia-cublas-cu12", "opencv-python-headless", "scipy", "triton"}

// inputs are what the wheel benchmark works on.
type inputs struct {
	plan     *plan.Plan // base, tools and the measured wheels, one a layer
	pip      plan.Blob
	store    *store.Store
	base     string // digest of the image that plain installs start from
	unpacked int64  // bytes in the measured wheels
	packed   int64
}

// wheelsOf is every measured wheel.
func (in *inputs) wheelsOf() []plan.Blob {
	var out []plan.Blob
	for _, l := range in.plan.Wheels {
		out = append(out, l.Wheels...)
	}
	return out
}

// prepareInputs plans the shipped quickstart cell, keeps of it what is measured,
// and fills the store.
func (b *bench) prepareInputs(ctx context.Context) (*inputs, error) {
	p, err := quickstart()
	if err != nil {
		return nil, err
	}
	in := &inputs{plan: &plan.Plan{Tag: "bench", Platform: p.Platform, Epoch: p.Epoch, Python: p.Python, Base: p.Base, Tools: p.Tools, Config: p.Config}}
	for _, l := range p.Wheels {
		for _, w := range l.Wheels {
			if name := plan.DistributionOf(w); name == "pip" {
				in.pip = w
			} else if slices.Contains(measured, name) {
				in.plan.Wheels = append(in.plan.Wheels, plan.Layer{Name: name, Wheels: []plan.Blob{w}})
			}
		}
	}
	if len(in.plan.Wheels) != len(measured) || in.pip.Name == "" {
		return nil, fmt.Errorf("the shipped lock lacks pip or some of %s", strings.Join(measured, ", "))
	}
	if err := b.fill(ctx, in); err != nil {
		return nil, err
	}
	for _, w := range in.wheelsOf() {
		z, err := zip.OpenReader(in.store.Path(w.SHA256))
		if err != nil {
			return nil, err
		}
		for _, f := range z.File {
			in.unpacked += int64(f.UncompressedSize64)
		}
		in.packed += w.Size
		if err := z.Close(); err != nil {
			return nil, err
		}
	}
	if in.unpacked < 1e9 {
		return nil, fmt.Errorf("the measured wheels hold %d bytes; at least 1 GB is wanted", in.unpacked)
	}
	return in, nil
}

// fill brings every file into the store.
func (b *bench) fill(ctx context.Context, in *inputs) error {
	env := store.Environment{Env: map[string]string{}, Root: "/", Run: func(ctx context.Context, name string, args ...string) ([]byte, error) {
		return exec.CommandContext(ctx, name, args...).Output()
	}}
	for _, kv := range os.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		env.Env[name] = value
	}
	profiles, err := store.LoadProfiles([]diag.Str{{Value: b.mirrors}}, nil, env)
	if err != nil {
		return err
	}
	if in.store, err = store.Open(filepath.Join(b.state, "store")); err != nil {
		return err
	}
	say("fetching what is not in %s yet", in.store.Dir())
	f := &store.Fetcher{Store: in.store, Profiles: profiles, Env: env}
	_, err = f.Fetch(ctx, append(in.plan.Blobs(), in.pip))
	return err
}

// quickstart is the plan of the first shipped cell with CUDA 12.1 and torch 2.4.1.
func quickstart() (*plan.Plan, error) {
	data, err1 := matrices.FS.ReadFile("universal.yaml")
	text, err2 := matrices.FS.ReadFile("universal.lock")
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	m, err := matrix.Parse("universal.yaml", data)
	if err != nil {
		return nil, err
	}
	cells, err := m.Expand()
	if err != nil {
		return nil, err
	}
	set, err := recipe.Load(recipe.Layer{Name: "recipes", FS: recipes.FS})
	if err != nil {
		return nil, err
	}
	locked, err := lock.Parse("universal.lock", text)
	if err != nil {
		return nil, err
	}
	for _, c := range cells.Cells {
		if strings.HasPrefix(c.Tag, "2.4.1-cuda12.1") {
			return plan.Make(c, set, locked)
		}
	}
	return nil, errors.New("the shipped matrix has no cell with CUDA 12.1 and torch 2.4.1")
}
