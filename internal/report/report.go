// Package report folds the events of a run into text for people and JSON for
// programs.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/imgforge/imgforge/internal/record"
)

// Row is how one cell ended.
type Row struct {
	Cell     string         `json:"cell"`
	Status   string         `json:"status"` // tested, untested, built (without any test) or failed
	Digest   string         `json:"digest,omitempty"`
	Size     int64          `json:"size,omitempty"`
	New      int64          `json:"new"`
	Layers   int            `json:"layers,omitempty"`
	Seconds  float64        `json:"seconds,omitempty"`
	Pushed   string         `json:"pushed,omitempty"`
	Plan     string         `json:"plan,omitempty"`
	Fetched  int64          `json:"downloaded"`
	Warnings []string       `json:"warnings,omitempty"`
	Smoked   *record.Smoked `json:"smoked,omitempty"`
	Failed   *record.Failed `json:"failed,omitempty"`
}

// Fold gathers events into one row a cell, in the order cells first appear.
func Fold(events []record.Event) []Row {
	var rows []Row
	at := map[string]int{}
	for _, ev := range events {
		i, ok := at[ev.Cell]
		if !ok {
			i = len(rows)
			at[ev.Cell] = i
			rows = append(rows, Row{Cell: ev.Cell})
		}
		rows[i].add(ev)
	}
	return rows
}

func (r *Row) add(ev record.Event) {
	switch {
	case ev.Planned != nil:
		r.Plan, r.Warnings = ev.Planned.Plan, ev.Planned.Warnings
	case ev.Fetched != nil:
		r.Fetched = ev.Fetched.Downloaded
	case ev.Built != nil:
		b := ev.Built
		r.Status, r.Digest, r.Size, r.New = "built", b.Digest, b.Size, b.New
		r.Layers, r.Seconds, r.Pushed = b.Layers, b.Seconds, b.Pushed
	case ev.Smoked != nil:
		r.Smoked, r.Status = ev.Smoked, string(ev.Smoked.Verdict())
	case ev.Failed != nil:
		r.Status, r.Failed = "failed", ev.Failed
	}
}

// Table prints one line a cell, then its checks, the warnings and the reasons of
// failures.
func Table(w io.Writer, rows []Row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "CELL\tDIGEST\tSIZE\tNEW\tTIME\tSTATUS")
	for _, r := range rows {
		status := r.Status
		if r.Failed != nil {
			status = fmt.Sprintf("failed (%s)", r.Failed.Class)
		}
		if r.Digest == "" {
			fmt.Fprintf(t, "%s\t-\t-\t-\t-\t%s\n", r.Cell, status)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Cell, r.Digest, Bytes(r.Size), Bytes(r.New), Seconds(r.Seconds), status)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Smoked != nil {
			fmt.Fprintln(w)
			Checks(w, r.Cell, r.Smoked)
		}
	}
	Warnings(w, rows)
	for _, text := range distinct(rows, func(r Row) []string {
		if r.Failed == nil {
			return nil
		}
		return []string{r.Failed.Reason}
	}) {
		fmt.Fprintf(w, "\nfailed: %s\n", text)
	}
	return nil
}

// Warnings prints the warnings of rows, each once with the cells that have it.
func Warnings(w io.Writer, rows []Row) {
	for _, text := range distinct(rows, func(r Row) []string { return r.Warnings }) {
		fmt.Fprintf(w, "warning: %s\n", text)
	}
}

// distinct lists what rows say, once each, with the cells that say it.
func distinct(rows []Row, pick func(Row) []string) []string {
	var order []string
	cells := map[string][]string{}
	for _, r := range rows {
		for _, text := range pick(r) {
			if cells[text] == nil {
				order = append(order, text)
			}
			cells[text] = append(cells[text], r.Cell)
		}
	}
	for i, text := range order {
		who := cells[text]
		label := who[0]
		if len(who) > 1 {
			label = fmt.Sprintf("%s and %d more", who[0], len(who)-1)
		}
		order[i] = label + ": " + text
	}
	return order
}

// JSON prints the rows as one JSON array.
func JSON(w io.Writer, rows []Row) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)                    // reasons hold floors such as >=525
	return enc.Encode(append([]Row{}, rows...)) // an array also when empty
}

// Bytes prints a size with a binary unit, three digits of it.
func Bytes(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/1024, 0
	for value >= 999.5 && unit < 3 {
		value /= 1024
		unit++
	}
	text := fmt.Sprintf("%.1f", value)
	if value >= 99.95 {
		text = fmt.Sprintf("%.0f", value)
	}
	return text + " " + strings.Split("KiB MiB GiB TiB", " ")[unit]
}

// Seconds prints a duration as a person reads it.
func Seconds(s float64) string {
	if s < 59.95 {
		return fmt.Sprintf("%.1f s", s)
	}
	whole := int(math.Round(s))
	return fmt.Sprintf("%d min %02d s", whole/60, whole%60)
}
