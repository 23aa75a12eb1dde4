package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/imgforge/imgforge/internal/compat"
	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/matrix"
	versions "github.com/imgforge/imgforge/internal/version"
)

// compatFlags is a question as the command line asks it.
type compatFlags struct {
	gpu, driver         string // the machine
	torch, cuda, python string // what is to run there
	matrix              string // judge its cells instead of every build
	json                bool
}

func (a *app) compatCommand() *cobra.Command {
	var f compatFlags
	cmd := &cobra.Command{
		Use:   "compat",
		Short: "Which torch, CUDA, driver and GPU go together, and why the others do not",
		Long: `Search the tables that imgforge judges cells by: every CUDA since 11.0, every
torch since 2.0, their drivers, and NVIDIA's GPUs. Reads no network.

Name what you have, and get what goes with it. --gpu and --driver are the
machine: each build is judged for it, and what does not run there says why.
--torch, --cuda and --python narrow what is listed; they take ranges.

  imgforge compat                                   every CUDA: its drivers, torches and GPUs
  imgforge compat --gpu "RTX 4090" --driver 535     what runs on this machine?
  imgforge compat --driver 470.57.02                what does this driver allow?
  imgforge compat --cuda 12.1 --driver 535          which torch for this CUDA and driver?
  imgforge compat --torch 2.3.1                     what does this torch need?
  imgforge compat --matrix universal --gpu H20      which of my cells serve an H20?
  imgforge compat gpus rtx 40                       GPUs by name, with what serves them
  imgforge compat drivers                           driver branches, with what they run

A GPU is named loosely (4090, rtx4090, "NVIDIA A100-SXM4-80GB"), or by its
compute capability (8.9). A driver is a version, or a branch (535), which
stands for its newest. Exit code 1: nothing serves.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%q says not what it is: write --gpu, --driver, --torch, --cuda or --python before it, or one of the commands gpus and drivers", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := noneEmpty(cmd.Flags()); err != nil {
				return err
			}
			return a.compat(f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.gpu, "gpu", "", "the GPU of the machine, such as \"RTX 4090\" or H20")
	flags.StringVar(&f.driver, "driver", "", "the NVIDIA driver of the machine: 535.104.05, or the branch 535")
	flags.StringVar(&f.torch, "torch", "", "only these torches: 2.3.1, ~2.3")
	flags.StringVar(&f.cuda, "cuda", "", "only these CUDAs: 12.1, \">=12.1\"")
	flags.StringVar(&f.python, "python", "", "judge for this Python: 3.11")
	flags.StringVarP(&f.matrix, "matrix", "m", "", "judge the cells of this matrix, a file or one that is shipped, instead of every build")
	cmd.PersistentFlags().BoolVar(&f.json, "json", false, "print the answer as JSON, each finding with its source")
	cmd.AddCommand(a.compatGPUsCommand(&f), a.compatDriversCommand(&f))
	return cmd
}

// noneEmpty refuses flags that are given and say nothing, such as of an unset variable.
func noneEmpty(flags *pflag.FlagSet) error {
	var bad diag.List
	flags.Visit(func(flag *pflag.Flag) {
		if flag.Value.String() == "" {
			bad.Add(diag.Pos{File: "--" + flag.Name}, "leave it out, or give it a value", "it is empty")
		}
	})
	return bad.Err()
}

// compat answers a question: a table or JSON, and exit code 1 when nothing serves.
func (a *app) compat(f compatFlags) error {
	q, err := f.question()
	if err != nil {
		return err
	}
	var rows []compatRow
	if f.matrix != "" {
		rows, err = f.cellRows(q)
	} else {
		rows, err = f.buildRows(q)
	}
	if err != nil {
		return err
	}
	show := compatView{facts: factsOf(q), rows: rows, detailed: f.torch+f.cuda != ""}
	show.judged = f.gpu+f.driver+f.python+f.matrix != "" || slices.ContainsFunc(rows, func(r compatRow) bool { return r.Serves == "no" })
	if f.json {
		err = show.json(a.stdout)
	} else {
		err = show.text(a.stdout)
	}
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(rows, compatRow.serves) {
		return &exitError{code: exitCheck}
	}
	return nil
}

// question reads the flags; the problems of all are reported together.
func (f compatFlags) question() (compat.Question, error) {
	q := compat.Question{Torch: f.torch, CUDA: f.cuda, Python: f.python}
	var bad diag.List
	var err error
	if f.gpu != "" {
		q.Host.GPU, err = compat.FindGPU(f.gpu)
		bad.AddErr(diag.Pos{File: "--gpu"}, err)
	}
	if f.driver != "" {
		q.Host.Driver, err = compat.ParseHostDriver(f.driver)
		bad.AddErr(diag.Pos{File: "--driver"}, err)
	}
	bad.AddErr(diag.Pos{}, q.Check())
	return q, bad.Err()
}

// compatRow is a build, a cell, or a CUDA that has no torch.
type compatRow struct {
	Cell     string             `json:"cell,omitempty"`
	CUDA     string             `json:"cuda"`
	Torch    string             `json:"torch,omitempty"`
	Serves   string             `json:"serves,omitempty"` // yes, limited or no
	Findings []compat.Judgement `json:"findings,omitempty"`
	Build    *buildFacts        `json:"build,omitempty"`
}

// buildFacts is what a build brings and needs.
type buildFacts struct {
	compat.Torch
	Requirement string       `json:"requirement"` // for pip
	Lockable    []string     `json:"lockable"`    // the Pythons that it can be locked for
	Driver      compat.Floor `json:"driver"`
	Archs       []string     `json:"archs"`
	Platforms   []string     `json:"platforms"`
}

func factsOfBuild(b compat.Torch) *buildFacts {
	floor, _ := compat.FloorOf(b.CUDA)
	lockable := b.Pythons
	if plain, _ := compat.PlainCUDA(b.Version); plain != b.CUDA {
		lockable = slices.DeleteFunc(slices.Clone(b.Pythons), func(python string) bool {
			_, known := compat.IndexWheel(b.Version, b.CUDA, python)
			return !known
		})
	}
	if len(lockable) == 0 {
		lockable = nil
	}
	return &buildFacts{
		Lockable: lockable,
		Torch:    b, Requirement: compat.TorchRequirement(b.Version, b.CUDA), Driver: floor,
		Archs: compat.Archs(b.Version, b.CUDA), Platforms: compat.Platforms(b.Version, b.CUDA),
	}
}

func (r compatRow) serves() bool { return r.Torch != "" && r.Serves != "no" }

// verdict tells whether what is known lets it run.
func verdict(findings []compat.Judgement) string {
	switch compat.Worst(findings) {
	case compat.Error:
		return "no"
	case compat.Warning:
		return "limited"
	}
	return "yes"
}

// buildRows judges every build that the question is about. With no question at
// all, the CUDAs without a torch are listed too.
func (f compatFlags) buildRows(q compat.Question) ([]compatRow, error) {
	answers, err := q.Answers()
	if err != nil {
		return nil, err
	}
	var rows []compatRow
	for _, answer := range answers {
		b := answer.Build
		row := compatRow{CUDA: b.CUDA, Torch: b.Version, Serves: verdict(answer.Findings), Findings: answer.Findings}
		if b.Source != "" {
			row.Build = factsOfBuild(b)
		}
		rows = append(rows, row)
	}
	if f == (compatFlags{json: f.json}) {
		for _, floor := range compat.Floors() {
			if !slices.Contains(compat.CUDAs(), floor.CUDA) {
				rows = append(rows, compatRow{CUDA: floor.CUDA})
			}
		}
	}
	slices.SortStableFunc(rows, func(x, y compatRow) int {
		m, _ := versions.ParseCUDA(x.CUDA)
		n, _ := versions.ParseCUDA(y.CUDA)
		return m.Compare(n)
	})
	return rows, nil
}

// cellRows judges the cells of the matrix that the question is about: for the
// machine, or without one as planning does.
func (f compatFlags) cellRows(q compat.Question) ([]compatRow, error) {
	in := inputFlags{matrix: f.matrix}
	data, _, err := in.readMatrix()
	if err != nil {
		return nil, err
	}
	m, err := matrix.Parse(f.matrix, data)
	if err != nil {
		return nil, err
	}
	made, err := m.Expand()
	if err != nil {
		return nil, err
	}
	var rows []compatRow
	for _, c := range made.Cells {
		if !inRange(c.CUDA, f.cuda) || !inRange(c.Torch, f.torch) || !inRange(c.Python, f.python) {
			continue
		}
		s := compat.Subject{CUDA: c.CUDA, Torch: c.Torch, Python: c.Python, Driver: c.Driver, Platform: c.Platform}
		findings := compat.Fit(s, q.Host)
		if f.gpu+f.driver == "" {
			findings = compat.Judge(s)
		}
		rows = append(rows, compatRow{Cell: c.Tag, CUDA: c.CUDA, Torch: c.Torch, Serves: verdict(findings), Findings: findings})
	}
	if rows == nil {
		return nil, errors.New("no cell of " + f.matrix + " is within " + strings.Join(f.narrowed(), " "))
	}
	return rows, nil
}

// inRange tells whether a version is in a range that was checked; none holds for all.
func inRange(v, constraint string) bool {
	in, _ := versions.InRange(v, cmp.Or(constraint, "*"))
	return in
}

// narrowed lists the flags that leave rows out.
func (f compatFlags) narrowed() []string {
	var out []string
	for _, flag := range [][2]string{{"--cuda", f.cuda}, {"--torch", f.torch}, {"--python", f.python}} {
		if flag[1] != "" {
			out = append(out, fmt.Sprintf("%s %s", flag[0], flag[1]))
		}
	}
	return out
}
