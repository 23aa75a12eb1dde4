package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	matrices "github.com/imgforge/imgforge/matrix"
)

// Plan is what planning a number of cells took.
type Plan struct {
	Cells   int       `json:"cells"`
	Within  []float64 `json:"within"`  // seconds of the planner itself, by its own benchmark
	Program []float64 `json:"program"` // seconds of `imgforge plan`, with reading and printing
	CPU     []float64 `json:"cpu"`     // processor seconds of that program
	Memory  []float64 `json:"memory"`  // bytes that program had at most
}

// plan measures the planner with the shipped recipes and lock, and a matrix that
// a free axis makes as large as is wanted.
func (b *bench) plan(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	within, err := planner(ctx, b.rounds)
	if err != nil {
		return err
	}
	for _, n := range []int{100, 1000, 10000} {
		p := Plan{Cells: n, Within: within[n]}
		matrix, err := widen(dir, n)
		if err != nil {
			return err
		}
		for range b.rounds {
			u, _, err := imgforge(ctx, "plan", "--matrix", matrix, "--lock", "matrix/universal.lock")
			if err != nil {
				return err
			}
			p.Program, p.CPU, p.Memory = append(p.Program, u.seconds), append(p.CPU, u.cpu), append(p.Memory, u.memory)
		}
		say("%d cells: %s s", n, spread(p.Program, "%.2f"))
		b.result.Plan = append(b.result.Plan, p)
	}
	return nil
}

// widen writes the shipped matrix with a free axis that makes n cells of it.
func widen(dir string, n int) (string, error) {
	data, err := matrices.FS.ReadFile("universal.yaml")
	if err != nil {
		return "", err
	}
	names := make([]string, n/20)
	for i := range names {
		names[i] = fmt.Sprintf("f%d", i)
	}
	text := strings.Replace(string(data), "axes:\n", "axes:\n  flavor: ["+strings.Join(names, ", ")+"]\n", 1)
	text = strings.Replace(text, "-${base}", "-${base}-${flavor}", 1)
	path := filepath.Join(dir, fmt.Sprintf("cells%d.yaml", n))
	return path, os.WriteFile(path, []byte(text), 0o644)
}

// planner runs the planner's own benchmark: seconds by number of cells.
func planner(ctx context.Context, rounds int) (map[int][]float64, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run=^$", "-bench=^BenchmarkPlan$", "-benchtime=1x", "-count="+strconv.Itoa(rounds), "./internal/plan")
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go test: %w\n%s", err, text)
	}
	out := map[int][]float64{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line) // BenchmarkPlan/cells=100-2  1  5000000 ns/op ...
		if len(fields) < 4 || fields[3] != "ns/op" {
			continue
		}
		_, name, _ := strings.Cut(fields[0], "cells=")
		name, _, _ = strings.Cut(name, "-")
		cells, err1 := strconv.Atoi(name)
		ns, err2 := strconv.ParseFloat(fields[2], 64)
		if err1 == nil && err2 == nil {
			out[cells] = append(out[cells], ns/1e9)
		}
	}
	return out, nil
}
