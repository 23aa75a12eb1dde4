package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/imgforge/imgforge/internal/forge"
	"github.com/imgforge/imgforge/internal/report"
	"github.com/imgforge/imgforge/internal/store"
)

// mirrorsFlags are the options of `imgforge mirrors`.
type mirrorsFlags struct {
	in       inputFlags
	all      bool
	json     bool
	progress string
}

func (a *app) mirrorsCommand() *cobra.Command {
	var f mirrorsFlags
	cmd := &cobra.Command{
		Use:   "mirrors",
		Short: "Ask mirrors whether they have what a lock names, and how fast they are",
		Long: `Ask each mirror profile: does it answer, does it have the files of the lock, how
fast is it. Nothing is kept. A sample of the files of each kind is asked for, or
with --all every one; one download of at most 8 MB is timed.

  imgforge mirrors --matrix matrix/universal.yaml           the matrix's own mirrors
  imgforge mirrors --mirrors aliyun,tsinghua,sjtu,host      which of these, in which order?
  imgforge mirrors --mirror-file office.yaml --mirrors office --all
  imgforge mirrors --only torch=2.4.1 --json

Exit code 1 when there is a file that none of the mirrors has.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.mirrors(cmd.Context(), &f) },
	}
	flags := cmd.Flags()
	f.in.register(flags)
	flags.BoolVar(&f.all, "all", false, "ask for every file, not for a sample")
	flags.BoolVar(&f.json, "json", false, "print the answers as JSON")
	progressFlag(flags, &f.progress)
	return cmd
}

func (a *app) mirrors(ctx context.Context, f *mirrorsFlags) error {
	in, err := f.in.load(a.environment())
	if err != nil {
		return err
	}
	display, err := newDisplay(a.stderr, f.progress)
	if err != nil {
		return err
	}
	defer display.close()
	blobs, unplanned := blobsOf(planCells(in))
	fetcher := &store.Fetcher{Profiles: in.mirrors, Env: a.environment(), Stall: 10 * time.Second, Snapshot: time.Unix(in.lock.Epoch(), 0)}
	t := display.begin(fmt.Sprintf("ask %d mirrors", len(in.mirrors)))
	result, err := fetcher.Probe(ctx, blobs, f.all, t.counter("answers"))
	t.end(err)
	display.close()
	if err != nil {
		return err
	}
	result.Order = slices.DeleteFunc(result.Order, func(name string) bool { // not for --mirrors
		return !slices.ContainsFunc(in.mirrors[:in.chosen], func(p store.Profile) bool { return p.Name == name })
	})
	if f.json {
		err = writeJSON(a.stdout, result)
	} else {
		err = a.showMirrors(result)
	}
	if err != nil {
		return err
	}
	if unplanned > 0 {
		fmt.Fprintf(a.stderr, "%d of %d cells are not locked, so their files were not asked for; see `imgforge lock --check`\n", unplanned, len(in.cells))
	}
	if len(result.Nowhere) > 0 || len(result.Order) == 0 {
		return &exitError{code: exitCheck}
	}
	return nil
}

// rank puts the mirrors in the order a probe recommends.
func (w *workshop) rank(ctx context.Context, cells []forge.Cell) error {
	blobs, _ := blobsOf(cells)
	t := w.display.begin("ask the mirrors how fast they are")
	err := w.fetcher.Rank(ctx, blobs)
	for _, p := range w.fetcher.Profiles {
		t.say("%s", p.Name)
	}
	t.end(err)
	return err
}

// showMirrors prints a line a mirror, then what each lacks, then what to do.
func (a *app) showMirrors(r *store.ProbeResult) error {
	t := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "MIRROR\tANSWERS\tHAS\tSPEED\tLACKS")
	for _, p := range r.Mirrors {
		answers, speed, lacks := "no", "-", "-"
		if p.Reachable {
			answers = "yes"
		}
		if p.Speed > 0 {
			speed = report.Bytes(int64(p.Speed)) + "/s"
		}
		if len(p.Lacks) > 0 {
			lacks = p.Lacks[0].Reason
			if more := len(p.Lacks) - 1; more > 0 {
				lacks += fmt.Sprintf(" (and %d more reasons)", more)
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%d/%d\t%s\t%s\n", p.Mirror, answers, p.Has, r.Asked, speed, lacks)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	a.adviseMirrors(r)
	return nil
}

// adviseMirrors says what each mirror lacks, how much was asked, and what to do.
func (a *app) adviseMirrors(r *store.ProbeResult) {
	for _, p := range r.Mirrors {
		for _, l := range p.Lacks {
			if len(l.Files) > 0 {
				fmt.Fprintf(a.stdout, "  %s: %s: %s\n", p.Mirror, l.Reason, some(l.Files))
			}
		}
	}
	asked := fmt.Sprintf("%d files", r.Asked)
	if r.Asked < r.Files {
		asked = fmt.Sprintf("a sample of %d of %d files (--all asks for each)", r.Asked, r.Files)
	}
	fmt.Fprintf(a.stdout, "Asked for %s.\n", asked)
	if len(r.Nowhere) > 0 {
		fmt.Fprintf(a.stdout, "No mirror has %d of them: %s\nName more mirrors, or `imgforge lock --upgrade` where they were replaced.\n", len(r.Nowhere), some(r.Nowhere))
	}
	if len(r.Order) > 0 {
		fmt.Fprintf(a.stdout, "Recommended: --mirrors %s\n", strings.Join(r.Order, ","))
	} else {
		fmt.Fprintln(a.stdout, "None of these mirrors is of use here.")
	}
}

// some is the first few of many names.
func some(names []string) string {
	const few = 5
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}
