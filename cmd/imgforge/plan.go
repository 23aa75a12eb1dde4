package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/imgforge/imgforge/internal/forge"
	"github.com/imgforge/imgforge/internal/matrix"
	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/report"
)

func (a *app) planCommand() *cobra.Command {
	var in inputFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show what a build would make, to the last byte, without making it",
		Long: `Expand the matrix, join each cell with its recipes and the lock, and show the
plans. Reads files only: no network, no engine.

  imgforge plan --matrix matrix/universal.yaml
  imgforge plan --only 'cuda=12.1,torch=2.4.1' --json    every file with its sha256
  imgforge plan -m base.yaml -m nightly.yaml             several at once, no tag twice`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			all, err := in.loadAll(a.environment())
			if err != nil {
				return err
			}
			var cells []forge.Cell
			var holes []matrix.Hole
			for _, one := range all {
				cells, holes = append(cells, planCells(one)...), append(holes, one.holes...)
			}
			return a.showPlans(cells, holes, asJSON)
		},
	}
	in.register(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the plans as JSON")
	return cmd
}

// planCells makes a plan of every selected cell; a cell without one keeps the reason.
func planCells(in *inputs) []forge.Cell {
	out := make([]forge.Cell, len(in.cells))
	for i, made := range plan.All(in.cells, in.recipes, in.lock) {
		out[i] = forge.Cell{Tag: in.cells[i].Tag, Plan: made.Plan, Warnings: in.cells[i].Warnings, Err: made.Err}
	}
	return out
}

// showPlans prints plans, the cells that were skipped and, as errors, the cells
// that have no plan.
func (a *app) showPlans(cells []forge.Cell, holes []matrix.Hole, asJSON bool) error {
	show := showPlanTable
	if asJSON {
		show = showPlanJSON
	}
	if err := show(a.stdout, cells, holes); err != nil {
		return err
	}
	failed := 0
	for _, c := range cells {
		if c.Err != nil {
			failed++
			fmt.Fprintf(a.stderr, "%s: %v\n", c.Tag, c.Err)
		}
	}
	if failed > 0 {
		return &exitError{exitInput, fmt.Errorf("%d of %d cells have no plan", failed, len(cells))}
	}
	return nil
}

func showPlanTable(w io.Writer, cells []forge.Cell, holes []matrix.Hole) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "CELL\tDEBS\tWHEELS\tLAYERS\tDOWNLOAD\tPLAN")
	warned := make([]report.Row, len(cells))
	for i, c := range cells {
		warned[i] = report.Row{Cell: c.Tag, Warnings: c.Warnings}
		if c.Err != nil {
			fmt.Fprintf(t, "%s\t-\t-\t-\t-\tnot locked\n", c.Tag)
			continue
		}
		wheels, bytes := 0, int64(0)
		for _, l := range c.Plan.Wheels {
			wheels += len(l.Wheels)
		}
		for _, b := range c.Plan.Blobs() {
			bytes += b.Size
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%s\t%s\n", c.Tag, len(c.Plan.Base)+len(c.Plan.Debs), wheels,
			len(c.Plan.Wheels), report.Bytes(bytes), c.Plan.Digest()[:19])
	}
	if err := t.Flush(); err != nil {
		return err
	}
	report.Warnings(w, warned)
	showHoles(w, holes)
	return nil
}

// showHoles names the cells that a matrix skips, with the reason.
func showHoles(w io.Writer, holes []matrix.Hole) {
	for _, h := range holes {
		fmt.Fprintf(w, "skipped %s: %s\n", h.Cell, strings.Join(h.Reasons, "; "))
	}
}

// showPlanJSON writes plans one by one: all of them may be more than memory.
func showPlanJSON(w io.Writer, cells []forge.Cell, holes []matrix.Hole) error {
	out := bufio.NewWriter(w)
	before := "{\n  \"plans\": ["
	for _, c := range cells {
		if c.Err != nil {
			continue
		}
		text, err := json.MarshalIndent(c.Plan, "    ", "  ")
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s\n    %s", before, text)
		before = ","
	}
	if before != "," {
		fmt.Fprint(out, before)
	}
	text, err := json.MarshalIndent(append([]matrix.Hole{}, holes...), "  ", "  ")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n  ],\n  \"holes\": %s\n}\n", text)
	return out.Flush()
}
