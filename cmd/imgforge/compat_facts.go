package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/imgforge/imgforge/internal/compat"
)

// factsOf says what is known of each thing that the question names.
func factsOf(q compat.Question) []fact {
	var out []fact
	if g := q.Host.GPU; g.Capability != "" {
		out = append(out, fact{g.Name, gpuFact(g)})
	}
	if d := q.Host.Driver; d.Known() {
		out = append(out, fact{"driver " + d.String(), driverFact(d)})
	}
	if f, ok := compat.FloorOf(q.CUDA); ok {
		out = append(out, fact{"CUDA " + f.CUDA, cudaFact(f)})
	}
	if slices.Contains(compat.Torches(), q.Torch) {
		out = append(out, fact{"torch " + q.Torch, torchFact(q.Torch)})
		out = append(out, limitFacts(q.Torch)...)
	}
	return out
}

// limitFacts says what an environment with that torch needs, one line a reason.
func limitFacts(torch string) []fact {
	var out []fact
	for _, l := range compat.Limits(torch, "", "") {
		if i := slices.IndexFunc(out, func(f fact) bool { return f.Known == l.Why }); i >= 0 {
			out[i].Of += ", " + l.Requirement
			continue
		}
		out = append(out, fact{"needs " + l.Requirement, l.Why})
	}
	return out
}

func gpuFact(g compat.GPU) string {
	text := fmt.Sprintf("compute capability %s, known to CUDA since %s", g.Capability, g.CUDA)
	if from := g.From(); from != "" {
		text += ", runs on drivers from " + from
	}
	if g.Last != "" {
		text += ", the last that runs it is of branch R" + g.Last
	}
	if g.Platform != compat.AMD64 {
		text += ", part of a " + g.Platform + " machine"
	}
	return text
}

func driverFact(d compat.HostDriver) string {
	b := compat.BranchOf(d.Major())
	text := "branch " + b.Name
	if life := branchLife(b); life != "-" {
		text += " (" + life + ")"
	}
	if b.CUDA != nil {
		text += " of CUDA " + strings.Join(b.CUDA, ", ")
	}
	some, all := runsCUDAs(d)
	if some == nil {
		return text + "; runs no CUDA of the tables"
	}
	return fmt.Sprintf("%s; runs CUDA %s, all of it up to %s", text, span(some), lastOr(all, "none"))
}

// branchLife is the kind of a branch and when its support ends.
func branchLife(b compat.Branch) string {
	switch {
	case b.End == "":
		return "-"
	case b.End == "ended":
		return "support has ended"
	case b.Kind == "":
		return "until " + b.End
	}
	return b.Kind + ", until " + b.End
}

// runsCUDAs lists the CUDAs that a driver runs, and those it has all of.
func runsCUDAs(d compat.HostDriver) (some, all []string) {
	for _, f := range compat.Floors() {
		s, a := d.Runs(f)
		if s {
			some = append(some, f.CUDA)
		}
		if a {
			all = append(all, f.CUDA)
		}
	}
	return some, all
}

func lastOr(list []string, none string) string {
	if len(list) == 0 {
		return none
	}
	return list[len(list)-1]
}

func cudaFact(f compat.Floor) string {
	text := fmt.Sprintf("runs on drivers from %s", f.Compat)
	if f.Strict != "" {
		text += fmt.Sprintf(", all of it from %s (branch %s)", f.Strict, f.Branch)
	} else {
		text += fmt.Sprintf(", all of it on branch %s", f.Branch)
	}
	if updates := compat.Updates(f.CUDA); updates != nil {
		text += "; updates " + strings.Join(updates, ", ")
	}
	var images []string
	for _, i := range compat.BaseImages(f.CUDA) {
		images = append(images, fmt.Sprintf("%s (cuDNN %s; Ubuntu %s)", i.Update, i.CuDNN, strings.Join(i.Ubuntus, ", ")))
	}
	if images != nil {
		text += "; nvidia/cuda has " + strings.Join(images, ", ")
	}
	return text
}

func torchFact(torch string) string {
	var text string
	plain, _ := compat.PlainCUDA(torch)
	if t, err := compat.Lookup(torch, plain); err == nil {
		text = fmt.Sprintf("goes with torchvision %s and torchaudio %s", t.Torchvision, t.Torchaudio)
	}
	if e := compat.Experimental(torch); e != "" {
		text += "; Python " + e + " is experimental"
	}
	text += "; its plain wheel has CUDA " + plain
	for _, cuda := range compat.CUDAs() {
		if slices.Contains(compat.Platforms(torch, cuda), compat.ARM64) {
			text += "; " + compat.ARM64 + " has CUDA " + cuda
		}
	}
	return text
}

func (a *app) compatGPUsCommand(f *compatFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "gpus [NAME]",
		Short: "List GPUs: compute capability, oldest driver, and the CUDAs whose torch runs on them",
		Long: `List the GPUs that are known by name, or those whose name has the words given.

  imgforge compat gpus
  imgforge compat gpus rtx 40
  imgforge compat gpus 9.0       by compute capability`,
		RunE: func(_ *cobra.Command, args []string) error { return a.listGPUs(strings.Join(args, " "), f.json) },
	}
}

func (a *app) listGPUs(name string, asJSON bool) error {
	gpus := compat.SearchGPUs(name)
	if len(gpus) == 0 {
		_, err := compat.FindGPU(name)
		return err
	}
	type row struct {
		compat.GPU
		ServedBy []string `json:"served_by"`
	}
	var rows []row
	for _, g := range gpus {
		rows = append(rows, row{g, compat.ServedBy(g)})
	}
	if asJSON {
		return writeJSON(a.stdout, rows)
	}
	lines := [][]string{{"GPU", "CAPABILITY", "DRIVERS", "MACHINE", "TORCH RUNS ON IT WITH CUDA"}}
	for _, r := range rows {
		drivers := "any"
		if from := r.From(); from != "" {
			drivers = "from " + from
		}
		if r.Last != "" {
			drivers = "to R" + r.Last
		}
		lines = append(lines, []string{r.Name, r.Capability, drivers, r.Platform, strings.Join(r.ServedBy, " ")})
	}
	return table(a.stdout, lines)
}

func (a *app) compatDriversCommand(f *compatFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "drivers",
		Short: "List driver branches: how long they are supported, and the CUDAs they run",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return a.listDrivers(f.json) },
	}
}

func (a *app) listDrivers(asJSON bool) error {
	branches := compat.Branches()
	if asJSON {
		return writeJSON(a.stdout, branches)
	}
	lines := [][]string{{"BRANCH", "SUPPORT", "OF CUDA", "RUNS CUDA", "ALL OF IT UP TO"}}
	for _, b := range branches {
		d, err := compat.ParseHostDriver(b.Name)
		if err != nil {
			return err
		}
		some, all := runsCUDAs(d)
		shipped := "-"
		if b.CUDA != nil {
			shipped = strings.Join(b.CUDA, " ")
		}
		lines = append(lines, []string{b.Name, branchLife(b), shipped, span(some), lastOr(all, "-")})
	}
	return table(a.stdout, lines)
}
