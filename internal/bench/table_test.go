package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/matrix"
)

func TestTable(t *testing.T) {
	r := &Result{
		Machine: Machine{Cores: 2, Memory: 8 << 30, CPU: "some", Disk: "virtual"},
		Wheels: &Wheels{
			Seconds: map[string][]float64{"A": {2, 3, 4}, "B": {10, 10, 10}, "C": {4, 4, 4}, "D": {2, 2, 2}},
			CPU:     map[string][]float64{"A": {4, 4, 4}, "B": {8, 8, 8}, "C": {8, 8, 8}, "D": {4, 4, 4}},
		},
		Rebuild: &Rebuild{Cells: 12, Same: []float64{1}, Anew: []float64{2}, CPU: []float64{1}, Memory: []float64{9e7}, Started: []float64{0.3}},
		Plan:    []Plan{{Cells: 10000, Within: []float64{0.25}, Program: []float64{0.5}, Memory: []float64{1e8}}},
	}
	table := r.table()
	for _, want := range []string{
		"2 cores (some), 8 GiB of memory, disk: virtual",
		"0.30 (0.20 to 0.40); of CPU: 0.50 (0.50 to 0.50) | at most 0.3 |",
		"`unzip -p \\| zstd`", "12 unchanged cells", "90 (90 to 90) MB", "0.250 (0.250 to 0.250) s | under 0.5 s |",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is not in\n%s", want, table)
		}
	}
}

func TestRewriteKeepsWhatIsWrittenByHand(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	write := func(text string) {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("before\n" + beginMark + "old\n" + endMark + "after\n")
	if err := rewrite(page, "new\n"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(page)
	if err != nil || string(got) != "before\n"+beginMark+"new\n"+endMark+"after\n" {
		t.Errorf("%v: %s", err, got)
	}
	write("no marks\n")
	if err := rewrite(page, "new\n"); err == nil || !strings.Contains(err.Error(), "lacks the lines") {
		t.Errorf("a page without marks gives %v", err)
	}
}

// The page that is in the repository must be one that can be rewritten.
func TestPageHasMarks(t *testing.T) {
	page, err := os.ReadFile("../../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), beginMark) || !strings.Contains(string(page), endMark) {
		t.Error("docs/benchmarks.md lacks the marks between which the table goes")
	}
}

func TestMatricesHaveTheCellsTheyAreNamedAfter(t *testing.T) {
	wide, err := widen(t.TempDir(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(wide)
	if err != nil {
		t.Fatal(err)
	}
	for want, text := range map[int][]byte{12: twelve, 1000: data} {
		m, err := matrix.Parse("m.yaml", text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.Expand()
		if err != nil || len(got.Cells) != want {
			t.Errorf("%d cells, want %d: %v", len(got.Cells), want, err)
		}
	}
}

func TestMeasuredWheelsAreLocked(t *testing.T) {
	p, err := quickstart()
	if err != nil {
		t.Fatal(err)
	}
	held := map[string]bool{}
	for _, l := range p.Wheels {
		held[l.Name] = true
	}
	for _, name := range measured {
		if !held[name] {
			t.Errorf("the quickstart cell has no layer of %s alone", name)
		}
	}
}
