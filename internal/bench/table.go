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
			fmt.Fprintf(&t, "| %s/%s: %s | %s | at most %g |\n", x.a, x.b, x.says, spread(ratios(w.Seconds, x.a, x.b), "%.2f"), x.most)
		}
	}
	return t.String()
}
