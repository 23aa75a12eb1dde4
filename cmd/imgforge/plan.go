package main

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/imgforge/imgforge/internal/forge"
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
  imgforge plan --only 'cuda=12.1,torch=2.4.1' --json    every file with its sha256`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			loaded, err := in.load(a.environment())
			if err != nil {
				return err
			}
			return a.showPlans(planCells(loaded), asJSON)
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

func (a *app) showPlans(cells []forge.Cell, asJSON bool) error {
	failed := 0
	if asJSON {
		enc := json.NewEncoder(a.stdout)
		enc.SetIndent("", "  ")
		plans := []*plan.Plan{}
		for _, c := range cells {
			if c.Err == nil {
				plans = append(plans, c.Plan)
			}
		}
		if err := enc.Encode(plans); err != nil {
			return err
		}
	} else {
		t := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "CELL\tDEBS\tWHEELS\tLAYERS\tDOWNLOAD\tPLAN")
		for _, c := range cells {
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
	}
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
