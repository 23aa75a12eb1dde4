package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/imgforge/imgforge/internal/record"
)

// marks begin the line of a check.
var marks = map[record.Status]string{
	record.CheckPassed: "ok", record.CheckFailed: "FAIL", record.CheckWarned: "warn", record.CheckSkipped: "skip",
}

// Checks prints a line for each check of an image, and below one that failed why and
// what to do.
func Checks(w io.Writer, image string, s *record.Smoked) {
	fmt.Fprintf(w, "%s: %s by %s, GPU checks: %s%s\n", image, s.Verdict(), s.Runner, s.Policy, onHost(s.Host))
	var lines strings.Builder
	t := tabwriter.NewWriter(&lines, 0, 0, 2, ' ', 0)
	for _, c := range s.Checks {
		took := ""
		if c.Status != record.CheckSkipped {
			took = Seconds(c.Seconds)
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", marks[c.Status], c.Name, took, c.Summary)
	}
	_ = t.Flush() // a builder takes all
	i := 0
	for line := range strings.Lines(lines.String()) {
		fmt.Fprintln(w, strings.TrimRight(line, " \n"))
		problems(w, s.Checks[i])
		i++
	}
	for _, f := range s.Findings {
		fmt.Fprintf(w, "  %s: %s\n", f.Rule, f.Text)
	}
}

func onHost(h record.Host) string {
	if len(h.GPUs) == 0 {
		return ""
	}
	names := make([]string, len(h.GPUs))
	for i, g := range h.GPUs {
		names[i] = g.Name
	}
	return fmt.Sprintf(", driver %s, %s", h.Driver, strings.Join(names, ", "))
}

func problems(w io.Writer, c record.Check) {
	for _, p := range c.Problems {
		fmt.Fprintf(w, "          problem: %s\n", indent(p.Problem))
		if p.Meaning != "" {
			fmt.Fprintf(w, "          that is: %s\n", indent(p.Meaning))
		}
		for _, step := range p.Do {
			fmt.Fprintf(w, "          do:      %s\n", indent(step))
		}
	}
}

func indent(text string) string {
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n                   ")
}
