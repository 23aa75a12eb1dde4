package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/matrix"
	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/resolve"
)

// lockFlags are the options of `imgforge lock`.
type lockFlags struct {
	in       inputFlags
	engine   engineFlags
	check    bool
	upgrade  bool
	names    []string // with upgrade: these packages alone
	why      string
	dryRun   bool
	json     bool
	progress string
}

func (a *app) lockCommand() *cobra.Command {
	var f lockFlags
	cmd := &cobra.Command{
		Use:   "lock [NAME...]",
		Short: "Resolve what a matrix needs into its lock",
		Long: `Bring the lock up to date: resolve what is missing, keep what is there, drop
what no cell needs. apt and uv do the resolving, in a container; Debian's Release
files are verified against built-in keys. The lock names files and hashes, and no
host: any mirror can serve them, none can change them. What moved is shown by
package.

  imgforge lock --matrix matrix/universal.yaml              resolve what is missing
  imgforge lock --upgrade numpy pillow                      these anew, all else as it is
  imgforge lock --upgrade --dry-run                         what would move, were all asked anew
  imgforge lock --upgrade --only 'torch=2.4.1'              only what these cells need
  imgforge lock --check                                     is the lock complete? (no network)
  imgforge lock --why markupsafe                            who pulled it in? (no network)

A cell that cannot be locked is named with its reason; the others are locked. A
lock that a merge left with conflicts is mended.`,
		RunE: func(cmd *cobra.Command, names []string) error {
			f.names = names
			if err := f.validate(); err != nil {
				return err
			}
			all, err := f.in.loadAll(a.environment())
			if err != nil {
				return err
			}
			var errs []error
			for _, in := range all {
				errs = append(errs, a.lockOne(cmd.Context(), &f, in))
			}
			return joinExits(errs)
		},
	}
	flags := cmd.Flags()
	f.in.register(flags)
	f.engine.register(flags)
	flags.BoolVar(&f.check, "check", false, "only say what is missing or surplus; exit 1 if anything is")
	flags.BoolVar(&f.upgrade, "upgrade", false, "resolve anew what is locked already: the packages named, else all")
	flags.StringVar(&f.why, "why", "", "only say who pulled a package in")
	flags.BoolVar(&f.dryRun, "dry-run", false, "resolve and show, and write nothing")
	flags.BoolVar(&f.json, "json", false, "print what moved, or why, as JSON")
	progressFlag(flags, &f.progress)
	return cmd
}

// lockOne does to one matrix's lock what the flags say.
func (a *app) lockOne(ctx context.Context, f *lockFlags, in *inputs) error {
	switch {
	case f.check:
		if err := in.inspect(); err != nil {
			return err
		}
		showHoles(a.stderr, in.holes)
		return a.checkLock(in, len(f.in.only) == 0)
	case f.why != "":
		return a.explainLock(in, f.why, f.json)
	case in.shipped && !f.dryRun:
		return fmt.Errorf("matrix %s is built in, and so is its lock; name a file to write with --lock", in.matrix.File)
	}
	return a.lock(ctx, f, in)
}

// validate refuses flags that do not go together, and says what the lock may be.
func (f *lockFlags) validate() error {
	switch {
	case len(f.names) > 0 && !f.upgrade:
		return fmt.Errorf("%q: packages are named with --upgrade, or one with --why", strings.Join(f.names, " "))
	case f.check && (f.upgrade || f.dryRun || f.json || f.why != ""):
		return errors.New("--check goes with none of --upgrade, --dry-run, --json and --why")
	case len(f.in.matrices) > 1 && (f.json || f.why != ""):
		return errors.New("--json and --why take one --matrix")
	case f.why != "" && (f.upgrade || f.dryRun):
		return errors.New("--why goes with neither --upgrade nor --dry-run")
	}
	if err := checkProgress(f.progress); err != nil {
		return err
	}
	f.in.locks = f.why == ""
	f.in.mend = f.in.locks && !f.check
	return nil
}

// checkLock compares needs and entries without changing anything. What is surplus
// can be told only from all cells.
func (a *app) checkLock(in *inputs, all bool) error {
	needs, err := plan.Needs(in.cells, in.recipes)
	if err != nil {
		return err
	}
	missing, surplus := in.lock.Compare(needs, in.recipeHashes(in.cells))
	if !all {
		surplus = nil
	}
	for _, m := range missing {
		fmt.Fprintf(a.stdout, "missing: %s\n", m)
	}
	for _, s := range surplus {
		fmt.Fprintf(a.stdout, "surplus: %s\n", s)
	}
	if len(missing)+len(surplus) > 0 {
		return &exitError{exitCheck, fmt.Errorf("%s is stale; run `imgforge lock`", in.lockPath)}
	}
	fmt.Fprintf(a.stdout, "%s is complete: %d entries for %d cells\n", in.lockPath, len(in.lock.Entries), len(in.cells))
	return nil
}

// recipeHashes are the hashes of the recipes that cells use.
func (in *inputs) recipeHashes(cells []matrix.Cell) map[string]string {
	out := map[string]string{}
	for _, name := range plan.RecipeNames(cells, in.recipes) {
		if rec, ok := in.recipes.Get(name); ok {
			out[name] = rec.Hash
		}
	}
	return out
}

func (a *app) lock(ctx context.Context, f *lockFlags, in *inputs) error {
	bases, err := a.lockBases(ctx, f, in)
	if err != nil {
		return err
	}
	showHoles(a.stderr, in.holes)
	all, err := plan.Needs(in.all, in.recipes)
	if err != nil {
		return err
	}
	selected, err := plan.Needs(in.cells, in.recipes)
	if err != nil {
		return err
	}
	q := question{all: all, selected: selected, locked: in.lock, upgrade: f.upgrade, names: f.names}
	ask, err := q.asked()
	if err != nil {
		return err
	}
	ask = slices.DeleteFunc(ask, madeElsewhere)
	result := &resolve.Result{}
	if len(ask) > 0 {
		if result, err = a.resolve(ctx, f, in, ask); err != nil {
			return err
		}
	}
	result.Answers, result.Failures = slices.Concat(bases.Answers, result.Answers), slices.Concat(bases.Failures, result.Failures)
	next := in.lock.Updated(all, in.recipeHashes(in.all), changeOf(result))
	if !f.dryRun {
		if err := replaceFile(in.lockPath, next.Format()); err != nil {
			return infra(err)
		}
	}
	if err := a.showLocked(f, in, next, &q, result); err != nil {
		return err
	}
	return unresolved(result.Failures)
}

// unresolved is the error of needs that have no answer.
func unresolved(failures []resolve.Failure) error {
	var bad diag.List
	for _, fail := range failures {
		bad.AddErr(fail.Need.Pos, fail.Err)
	}
	return orInfra(bad.Err())
}

// changeOf turns resolve's answers into what the lock takes in. A base that was
// solved anew leaves no old answer of what goes on top of it.
func changeOf(r *resolve.Result) lock.Change {
	c := lock.Change{Archives: r.Archives, Requires: r.Requires, Sets: map[string][]lock.Entry{}}
	if r.Epoch > 0 {
		c.Epoch = strconv.FormatInt(r.Epoch, 10)
	}
	for _, answer := range r.Answers {
		c.Sets[answer.Set] = answer.Entries
	}
	for _, fail := range r.Failures {
		if isDebs(fail.Need) && len(r.Answers) > 0 {
			c.Unsolved = append(c.Unsolved, fail.Need.Set)
		}
	}
	return c
}
