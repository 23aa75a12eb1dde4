package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/imgforge/imgforge/internal/compat"
)

// compatView is an answer: what is known of what was named, then a table.
type compatView struct {
	facts    []fact
	rows     []compatRow
	judged   bool // for a machine or a Python: whether it serves, and why not
	detailed bool // what comes with each torch
}

// fact is a line about something that the question names.
type fact struct {
	Of    string `json:"of"`
	Known string `json:"known"`
}

func (v compatView) json(w io.Writer) error {
	return writeJSON(w, struct {
		Facts []fact      `json:"facts"`
		Rows  []compatRow `json:"rows"`
	}{append([]fact{}, v.facts...), append([]compatRow{}, v.rows...)})
}

func (v compatView) text(w io.Writer) error {
	for _, f := range v.facts {
		fmt.Fprintf(w, "%s: %s\n", f.Of, f.Known)
	}
	if len(v.rows) == 0 {
		_, err := fmt.Fprintln(w, "No torch is built for it.")
		return err
	}
	if len(v.facts) > 0 {
		fmt.Fprintln(w)
	}
	lines := [][]string{v.header()}
	for _, row := range v.joined() {
		lines = append(lines, row...)
	}
	if err := table(w, lines); err != nil {
		return err
	}
	for _, reason := range v.reasons() {
		fmt.Fprintf(w, "\n%s\n", reason)
	}
	return nil
}

// table aligns the columns; no line ends in spaces.
func table(w io.Writer, lines [][]string) error {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, line := range lines {
		fmt.Fprintln(t, strings.Join(line, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

func (v compatView) cells() bool { return len(v.rows) > 0 && v.rows[0].Cell != "" }

func (v compatView) header() []string {
	head := []string{"CUDA", "TORCH"}
	if v.cells() {
		head = []string{"CELL"}
	}
	if v.detailed && !v.cells() {
		head = append(head, "PYTHON", "CUDNN", "NCCL", "TRITON", "WHEEL")
	}
	if !v.judged {
		head = append(head, "DRIVER", "ALL OF IT", "RUNS ON")
	}
	if v.judged {
		head = append(head, "SERVES", "WHY")
	}
	return head
}

// joined prints the rows, as one those that would read the same but for the torch.
func (v compatView) joined() [][][]string {
	var out [][][]string
	for i := 0; i < len(v.rows); {
		j := i + 1
		for j < len(v.rows) && !v.cells() && v.rows[j].CUDA == v.rows[i].CUDA && slices.Equal(v.columns(v.rows[j]), v.columns(v.rows[i])) &&
			slices.Equal(whats(v.rows[j]), whats(v.rows[i])) {
			j++
		}
		out = append(out, v.lines(v.rows[i:j]))
		i = j
	}
	return out
}

// lines prints one row of the table: a line for each reason.
func (v compatView) lines(rows []compatRow) [][]string {
	first, last := rows[0], rows[len(rows)-1]
	head := []string{first.CUDA, cmp.Or(first.Torch, "-")}
	if last.Torch != first.Torch {
		head[1] += " to " + last.Torch
	}
	if v.cells() {
		head = []string{first.Cell}
	}
	head = append(head, v.columns(first)...)
	if !v.judged {
		return [][]string{head}
	}
	why := whats(first)
	if why == nil {
		why = []string{""}
	}
	out := [][]string{append(head, first.Serves, why[0])}
	for _, more := range why[1:] {
		out = append(out, append(make([]string, len(head)+1), more))
	}
	return out
}

// columns are those of a row that stand between its name and the verdict.
func (v compatView) columns(r compatRow) []string {
	b := cmp.Or(r.Build, &buildFacts{})
	var out []string
	if v.detailed && !v.cells() {
		out = append(out, span(b.Pythons), cmp.Or(b.CuDNN, "-"), cmp.Or(b.NCCL, "-"), cmp.Or(b.Triton, "-"), wheel(b))
	}
	if !v.judged {
		f, _ := compat.FloorOf(r.CUDA)
		out = append(out, f.Compat, cmp.Or(f.Strict, f.Branch), cmp.Or(strings.Join(b.Archs, " "), "-"))
	}
	return out
}

// wheel tells which torch wheel is taken: the plain one, or the one with that local
// part, which can be locked only where its hash is known.
func wheel(b *buildFacts) string {
	_, local, marked := strings.Cut(b.Requirement, "+")
	switch {
	case b.Requirement == "":
		return "-"
	case !marked:
		return "plain"
	case b.Lockable == nil:
		return "+" + local + ", cannot be locked"
	}
	return "+" + local
}

// whats are the clauses of a row's findings.
func whats(r compatRow) []string {
	var out []string
	for _, j := range r.Findings {
		out = append(out, j.What)
	}
	return out
}

// reasons explains the clauses of the table, each explanation once, the gravest first.
func (v compatView) reasons() []string {
	if !v.judged {
		return nil
	}
	var out []string
	for _, level := range []string{compat.Error, compat.Warning, compat.Note} {
		for _, r := range v.rows {
			for _, j := range r.Findings {
				text := j.Level + ": " + j.Help()
				if j.Source != "" {
					text += "\n  source: " + j.Source
				}
				if j.Level == level && !slices.Contains(out, text) {
					out = append(out, text)
				}
			}
		}
	}
	return out
}

// span is the first and last of a list: 3.8 to 3.11.
func span(list []string) string {
	switch len(list) {
	case 0:
		return "-"
	case 1:
		return list[0]
	}
	return list[0] + " to " + list[len(list)-1]
}
