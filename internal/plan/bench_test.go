package plan_test

import (
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/matrix"
	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/recipe"
	matrices "github.com/imgforge/imgforge/matrix"
	"github.com/imgforge/imgforge/recipes"
)

// wide is the shipped matrix with a free axis that makes at least n cells of it.
func wide(n int) []byte {
	text, err := fs.ReadFile(matrices.FS, "universal.yaml")
	if err != nil {
		panic(err)
	}
	flavors := make([]string, n/20)
	for i := range flavors {
		flavors[i] = fmt.Sprintf("f%d", i)
	}
	axis := fmt.Sprintf("axes:\n  flavor: [%s]\n", strings.Join(flavors, ", "))
	out := strings.Replace(string(text), "axes:\n", axis, 1)
	return []byte(strings.Replace(out, "-${base}", "-${base}-${flavor}", 1))
}

// Ten thousand cells take less than 200 MB, all that is ever allocated counted, and
// are few answers shared.
func TestManyCells(t *testing.T) {
	lockText, err := fs.ReadFile(matrices.FS, "universal.lock")
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	made := planAll(t, wide(10000), lockText)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; len(made) != 10000 || used > 200<<20 {
		t.Errorf("%d plans took %d MB", len(made), used>>20)
	}
	digests := map[string]bool{}
	for _, m := range made {
		digests[m.Plan.Digest()] = true
	}
	if len(digests) != len(made) || &made[0].Plan.Debs[0] != &made[20].Plan.Debs[0] {
		t.Errorf("%d digests; cells with the same answers must share them", len(digests))
	}
}

// BenchmarkPlan plans a matrix from its YAML, the recipes and the lock on.
func BenchmarkPlan(b *testing.B) {
	lockText, err := fs.ReadFile(matrices.FS, "universal.lock")
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprintf("cells=%d", n), func(b *testing.B) {
			text := wide(n)
			var before, after runtime.MemStats
			var kept []plan.Made
			runtime.GC()
			runtime.ReadMemStats(&before)
			for b.Loop() {
				kept = planAll(b, text, lockText)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			if len(kept) != n {
				b.Fatalf("%d cells", len(kept))
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "cells/s")
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n), "B-kept/cell")
			b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(b.N*n), "B-made/cell")
		})
	}
}

func planAll(b testing.TB, text, lockText []byte) []plan.Made {
	m, err := matrix.Parse("wide.yaml", text)
	if err != nil {
		b.Fatal(err)
	}
	expanded, err := m.Expand()
	if err != nil {
		b.Fatal(err)
	}
	set, err := recipe.Load(recipe.Layer{Name: "recipes", FS: recipes.FS})
	if err != nil {
		b.Fatal(err)
	}
	locked, err := lock.Parse("universal.lock", lockText)
	if err != nil {
		b.Fatal(err)
	}
	out := plan.All(expanded.Cells, set, locked)
	for _, made := range out {
		if made.Err != nil {
			b.Fatal(made.Err)
		}
	}
	return out
}
