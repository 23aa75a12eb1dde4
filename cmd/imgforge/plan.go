package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/imgforge/imgforge/internal/forge"
	"github.com/imgforge/imgforge/internal/matrix"
	"github.com/imgforge/imgforge/internal/plan"
)

// planFlags are the options of `imgforge plan`.
type planFlags struct {
	in      inputFlags
	format  string
	json    bool
	hosts   bool
	push    string
	builder string
}

var planFormats = []string{"table", "json", "github", "dot"}

func (a *app) planCommand() *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show what a build would make, to the last byte, without making it",
		Long: `Expand the matrix, join each cell with its recipes and the lock, and show the
plans: what is judged of each cell, how much it has in common with the cells before
it, how much is in the store, and how much is to be downloaded. Reads files only:
no network, no engine.

  imgforge plan --matrix matrix/universal.yaml
  imgforge plan --only 'cuda=12.1,torch=2.4.1' --json    every file with its sha256
  imgforge plan --hosts --push registry.example/torch    whom a build would talk to
  imgforge plan --format github                          a matrix for GitHub Actions
  imgforge plan --format dot | dot -Tsvg > plan.svg      which cells share which layers
  imgforge plan -m base.yaml -m nightly.yaml             several at once, no tag twice`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.validate(cmd.Flags().Changed("format")); err != nil {
				return err
			}
			all, err := f.in.loadAll(a.environment())
			if err != nil {
				return err
			}
			out := &planned{}
			for _, in := range all {
				out.add(in)
			}
			if err := a.showPlans(&f, out); err != nil {
				return err
			}
			return a.unplanned(out.cells)
		},
	}
	flags := cmd.Flags()
	f.in.register(flags)
	flags.StringVar(&f.format, "format", "table", "table, json, github (a matrix for GitHub Actions) or dot (for graphviz)")
	flags.BoolVar(&f.json, "json", false, "the same as --format json")
	flags.BoolVar(&f.hosts, "hosts", false, "list the hosts and image references that a build would contact")
	flags.StringVar(&f.push, "push", "", "with --hosts: the repository that the build would push to")
	flags.StringVar(&f.builder, "builder", "", "with --hosts: the BuildKit that the build would use (default $BUILDKIT_HOST, else one of our own)")
	return cmd
}

// validate refuses formats that do not exist or do not go together.
func (f *planFlags) validate(chosen bool) error {
	if f.json {
		if chosen && f.format != "json" {
			return fmt.Errorf("--json and --format %s: choose one", f.format)
		}
		f.format = "json"
	}
	if !slices.Contains(planFormats, f.format) {
		return fmt.Errorf("--format %q: use %s", f.format, strings.Join(planFormats, ", "))
	}
	if f.hosts && f.format != "table" && f.format != "json" {
		return fmt.Errorf("--hosts is printed as a table or as json, not as %s", f.format)
	}
	if !f.hosts && (f.push != "" || f.builder != "") {
		return fmt.Errorf("--push and --builder go with --hosts: a plan is the same wherever it is built and pushed")
	}
	return checkPush(f.push)
}

// planCells makes a plan of every selected cell; a cell without one keeps the reason.
func planCells(in *inputs) []forge.Cell {
	out := make([]forge.Cell, len(in.cells))
	for i, made := range plan.All(in.cells, in.recipes, in.lock) {
		cell := in.cells[i]
		out[i] = forge.Cell{Tag: cell.Tag, Plan: made.Plan, Warnings: cell.Warnings, Floor: cell.Driver, Err: made.Err}
		if made.Err == nil {
			out[i].Checks, out[i].Err = plan.Checks(cell, in.recipes, in.matrix.Smoke)
		}
	}
	return out
}

// blobsOf are the files of all plans, once each, and how many cells have none.
func blobsOf(cells []forge.Cell) (blobs []plan.Blob, unplanned int) {
	seen := map[string]bool{}
	for _, c := range cells {
		if c.Err != nil {
			unplanned++
			continue
		}
		for _, b := range c.Plan.Blobs() {
			if !seen[b.SHA256] {
				seen[b.SHA256] = true
				blobs = append(blobs, b)
			}
		}
	}
	return blobs, unplanned
}

// planned are the cells of all matrices of a run.
type planned struct {
	all   []*inputs
	cells []forge.Cell
	of    []*inputs     // the matrix of each cell
	asked []matrix.Cell // each cell as its matrix has it
	holes []matrix.Hole
}

func (p *planned) add(in *inputs) {
	p.all = append(p.all, in)
	p.holes = append(p.holes, in.holes...)
	p.cells = append(p.cells, planCells(in)...)
	p.asked = append(p.asked, in.cells...)
	for range in.cells {
		p.of = append(p.of, in)
	}
}

func (a *app) showPlans(f *planFlags, p *planned) error {
	switch {
	case f.hosts:
		return a.showHosts(f, p)
	case f.format == "github":
		return a.showGitHub(p)
	case f.format == "dot":
		return a.showDot(p)
	case f.format == "json":
		return a.showPlanJSON(a.weigh(p.cells), p.holes)
	}
	return a.showPlanTable(a.weigh(p.cells), p.holes)
}

// unplanned says why cells have no plan.
func (a *app) unplanned(cells []forge.Cell) error {
	failed := 0
	var reasons []string
	tags := map[string][]string{} // by reason
	for _, c := range cells {
		if c.Err == nil {
			continue
		}
		failed++
		reason := c.Err.Error()
		if tags[reason] == nil {
			reasons = append(reasons, reason)
		}
		tags[reason] = append(tags[reason], c.Tag)
	}
	for _, reason := range reasons { // once, however many cells it strikes
		more := ""
		if n := len(tags[reason]); n > 1 {
			more = fmt.Sprintf(" and %d more", n-1)
		}
		fmt.Fprintf(a.stderr, "%s%s: %s\n", tags[reason][0], more, reason)
	}
	if failed > 0 {
		return &exitError{exitInput, fmt.Errorf("%d of %d cells have no plan", failed, len(cells))}
	}
	return nil
}
