package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/imgforge/imgforge/internal/forge"
	"github.com/imgforge/imgforge/internal/matrix"
	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/report"
)

// plannedCell is a cell as plan prints it: its plan, and what building it here
// would take.
type plannedCell struct {
	Tag      string      `json:"tag"`
	Digest   string      `json:"digest,omitempty"` // of the plan
	Error    string      `json:"error,omitempty"`  // why there is no plan
	Warnings []string    `json:"warnings"`
	Volume   *cellVolume `json:"volume,omitempty"` // differs from machine to machine
	*plan.Plan
}

// cellVolume is a volume whose files are counted as shared where an earlier cell
// has them, else as stored or to download.
type cellVolume struct {
	volume
	Shared int64 `json:"shared"`
}

// weigh tells for each cell how much of it is new.
func (a *app) weigh(cells []forge.Cell) []plannedCell {
	out := make([]plannedCell, len(cells))
	has, seen := a.stored(), map[string]bool{}
	for i, c := range cells {
		out[i] = plannedCell{Tag: c.Tag, Warnings: append([]string{}, c.Warnings...)}
		if c.Err != nil {
			out[i].Error = c.Err.Error()
			continue
		}
		v := &cellVolume{}
		for _, b := range c.Plan.Blobs() {
			if seen[b.SHA256] {
				v.Files++
				v.Bytes += b.Size
				v.Shared += b.Size
				continue
			}
			seen[b.SHA256] = true
			v.add(b, has(b))
		}
		out[i].Digest, out[i].Volume, out[i].Plan = c.Plan.Digest(), v, c.Plan
	}
	return out
}

// MarshalJSON has lists where the plan has none, so that programs need not ask.
func (c plannedCell) MarshalJSON() ([]byte, error) {
	if c.Plan != nil {
		whole := *c.Plan
		whole.Base, whole.Debs, whole.Tools = listed(whole.Base), listed(whole.Debs), listed(whole.Tools)
		whole.Wheels, whole.Steps = listed(whole.Wheels), listed(whole.Steps)
		whole.Config.Env, whole.Config.Cmd = listed(whole.Config.Env), listed(whole.Config.Cmd)
		c.Plan = &whole
	}
	type plain plannedCell
	return json.Marshal(plain(c))
}

func listed[T any](in []T) []T {
	if in == nil {
		return []T{}
	}
	return in
}

// showPlanTable prints one line a cell, what is to be said of them, and the sum.
func (a *app) showPlanTable(cells []plannedCell, holes []matrix.Hole) error {
	t := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "CELL\tDEBS\tWHEELS\tLAYERS\tFILES\tSHARED\tSTORED\tDOWNLOAD\tPLAN")
	var sum volume
	rows := make([]report.Row, len(cells))
	for i, c := range cells {
		rows[i] = report.Row{Cell: c.Tag, Warnings: c.Warnings}
		if c.Plan == nil {
			fmt.Fprintf(t, "%s\t-\t-\t-\t-\t-\t-\t-\tnot locked\n", c.Tag)
			continue
		}
		wheels, v := 0, c.Volume
		for _, l := range c.Wheels {
			wheels += len(l.Wheels)
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n", c.Tag, len(c.Base)+len(c.Debs), wheels, len(c.Wheels),
			report.Bytes(v.Bytes), report.Bytes(v.Shared), report.Bytes(v.Stored), v.download(), c.Digest[:19])
		sum.Stored, sum.Download, sum.Unsized = sum.Stored+v.Stored, sum.Download+v.Download, sum.Unsized+v.Unsized
	}
	if err := t.Flush(); err != nil {
		return err
	}
	report.Warnings(a.stdout, rows)
	showHoles(a.stdout, holes)
	fmt.Fprintf(a.stdout, "to download: %s; %s is in the store\n", sum.download(), report.Bytes(sum.Stored))
	return nil
}

// showHoles names the cells that a matrix skips, with the reason.
func showHoles(w io.Writer, holes []matrix.Hole) {
	for _, h := range holes {
		fmt.Fprintf(w, "skipped %s: %s\n", h.Cell, strings.Join(h.Reasons, "; "))
	}
}

// showPlanJSON writes plans one by one: all of them may be more than memory.
func (a *app) showPlanJSON(cells []plannedCell, holes []matrix.Hole) error {
	out := bufio.NewWriter(a.stdout)
	fmt.Fprint(out, "{\n  \"plans\": [")
	for i, c := range cells {
		text, err := json.MarshalIndent(c, "    ", "  ")
		if err != nil {
			return err
		}
		if i > 0 {
			fmt.Fprint(out, ",")
		}
		fmt.Fprintf(out, "\n    %s", text)
	}
	text, err := json.MarshalIndent(listed(holes), "  ", "  ")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n  ],\n  \"holes\": %s\n}\n", text)
	return out.Flush()
}
