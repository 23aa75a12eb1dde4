package main

import (
	"fmt"
	"strings"
)

// target is what the project has promised of a ratio.
var targets = []struct {
	a, b string
	most float64
	says string
}{
	{"A", "B", 0.3, "wheel layers against `RUN pip install`, gzip, as Docker's tools export by default"},
	{"A", "C", 0.7, "wheel layers against `RUN pip install`, both in zstd"},
	{"A", "D", 1.5, "wheel layers against a bare `unzip -p \\| zstd` of the same wheels"},
}

// table renders everything that was measured as Markdown.
func (r *Result) table() string {
	var t strings.Builder
	fmt.Fprintf(&t, "\nMachine: %d cores (%s), %d GiB of memory, disk: %s.\n", r.Machine.Cores, r.Machine.CPU, (r.Machine.Memory+1<<29)>>30, r.Machine.Disk)
	fmt.Fprintf(&t, "\n| what | measured: median (least to most) | promised |\n|---|---|---|\n")
	if w := r.Wheels; w != nil {
		for _, c := range contenders {
			fmt.Fprintf(&t, "| %s: %s | %s s, %s s of CPU | |\n", c.name, strings.ReplaceAll(c.what, "|", `\|`), spread(w.Seconds[c.name], "%.1f"), spread(w.CPU[c.name], "%.1f"))
		}
		for _, x := range targets {
			fmt.Fprintf(&t, "| %s/%s: %s | %s; of CPU: %s | at most %g |\n", x.a, x.b, x.says,
				spread(ratios(w.Seconds, x.a, x.b), "%.2f"), spread(ratios(w.CPU, x.a, x.b), "%.2f"), x.most)
		}
	}
	if x := r.Rebuild; x != nil {
		fmt.Fprintf(&t, "| building %d unchanged cells again, the whole program | %s s, %s s of CPU | under 3 s |\n", x.Cells, spread(x.Same, "%.1f"), spread(x.CPU, "%.1f"))
		fmt.Fprintf(&t, "| the same into an empty layout | %s s | |\n", spread(x.Anew, "%.1f"))
		fmt.Fprintf(&t, "| the most memory imgforge had meanwhile, the engine apart | %s MB | |\n", spread(scaled(x.Memory, 1e-6), "%.0f"))
		fmt.Fprintf(&t, "| starting the embedded engine | %s s | |\n", spread(x.Started, "%.2f"))
	}
	for _, p := range r.Plan {
		promised, memory := "", ""
		if p.Cells == 10000 {
			promised, memory = "under 0.5 s", "under 200 MB"
		}
		fmt.Fprintf(&t, "| planning %d cells, from the YAML on | %s s | %s |\n", p.Cells, spread(p.Within, "%.3f"), promised)
		fmt.Fprintf(&t, "| `imgforge plan` of %d cells, the whole program | %s s, %s s of CPU | |\n", p.Cells, spread(p.Program, "%.2f"), spread(p.CPU, "%.2f"))
		fmt.Fprintf(&t, "| the most memory it had | %s MB | %s |\n", spread(scaled(p.Memory, 1e-6), "%.0f"), memory)
	}
	return t.String()
}

func scaled(values []float64, by float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = v * by
	}
	return out
}
