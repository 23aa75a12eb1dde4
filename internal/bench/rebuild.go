package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/imgforge/imgforge/internal/builder"
)

//go:embed twelve.yaml
var twelve []byte

// Rebuild is what building twelve cells took when nothing had changed.
type Rebuild struct {
	Cells   int       `json:"cells"`
	Same    []float64 `json:"same"`    // seconds of the whole program, into the layout that has them
	Anew    []float64 `json:"anew"`    // the same, into an empty layout
	CPU     []float64 `json:"cpu"`     // processor seconds of Same, the engine's included
	Memory  []float64 `json:"memory"`  // bytes imgforge had at most, the engine apart
	Started []float64 `json:"started"` // seconds from nothing to an engine that answers
}

// rebuild locks and builds the cells once, and then measures.
func (b *bench) rebuild(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	matrix := filepath.Join(dir, "twelve.yaml")
	if err := os.WriteFile(matrix, twelve, 0o644); err != nil {
		return err
	}
	// The store is shared with the other parts, so that little is downloaded twice.
	if err := errors.Join(os.MkdirAll(filepath.Join(b.state, "store"), 0o755), os.Symlink(filepath.Join(b.state, "store"), filepath.Join(dir, "store"))); err != nil {
		return err
	}
	common := []string{"--matrix", matrix, "--recipes", "testdata/small/recipes", "--state", dir, "--mirrors", b.mirrors, "--progress", "quiet"}
	build := func(output string) (used, []byte, error) {
		return imgforge(ctx, append([]string{"build", "--no-smoke", "--json", "--output", filepath.Join(dir, output)}, common...)...)
	}
	say("locking and building twelve cells")
	if _, _, err := imgforge(ctx, append([]string{"lock"}, common...)...); err != nil {
		return err
	}
	if _, _, err := build("dist"); err != nil {
		return err
	}
	r := &Rebuild{}
	for range b.rounds {
		same, out, err := build("dist")
		if err != nil {
			return err
		}
		var cells []json.RawMessage
		if err := json.Unmarshal(out, &cells); err != nil {
			return err
		}
		anew, _, err := build("anew")
		if err := errors.Join(err, os.RemoveAll(filepath.Join(dir, "anew"))); err != nil {
			return err
		}
		r.Cells = len(cells)
		r.CPU = append(r.CPU, same.cpu)
		r.Same, r.Anew, r.Memory = append(r.Same, same.seconds), append(r.Anew, anew.seconds), append(r.Memory, same.memory)
		started, err := startEngine(ctx, dir)
		if err != nil {
			return err
		}
		r.Started = append(r.Started, started.Seconds())
		say("twelve cells again: %.1f s, into an empty layout %.1f s", same.seconds, anew.seconds)
	}
	b.result.Rebuild = r
	return nil
}

// startEngine times an engine's start on a state that has something in it.
func startEngine(ctx context.Context, state string) (time.Duration, error) {
	buildkitd, err := filepath.Abs("bin/buildkitd")
	if err != nil {
		return 0, err
	}
	start := time.Now()
	e, err := builder.Start(ctx, filepath.Join(state, "engine"), builder.Paths{Buildkitd: buildkitd})
	if err != nil {
		return 0, err
	}
	return time.Since(start), e.Close()
}

// used is what one run of the program took.
type used struct{ seconds, cpu, memory float64 }

// imgforge runs the program that `make build` made.
func imgforge(ctx context.Context, args ...string) (used, []byte, error) {
	cmd := exec.CommandContext(ctx, "bin/imgforge", args...)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	start := time.Now()
	out, err := cmd.Output()
	took := time.Since(start).Seconds()
	if err != nil {
		return used{}, nil, fmt.Errorf("imgforge %s: %w", args[0], err)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return used{}, nil, errors.New("this system does not say what a process used")
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime() // with all its ended children
	return used{took, cpu.Seconds(), float64(usage.Maxrss) * 1024}, out, nil
}
