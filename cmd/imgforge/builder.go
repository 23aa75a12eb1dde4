package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"github.com/imgforge/imgforge/internal/builder"
)

func (a *app) builderCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "builder",
		Short: "See and tidy the embedded build engine of a state directory",
		Long: `See and tidy the embedded build engine and the store of a state directory. All of
it works whether the engine runs or not. For an engine elsewhere use its own
tools, such as buildctl.

  imgforge builder status                      who uses it, and what lies there
  imgforge builder prune --keep-storage 20GB   make room
  imgforge builder logs -f                     what BuildKit says
  imgforge builder stop --force                end the run that uses it`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.builderStatusCommand(), a.builderPruneCommand(), a.builderLogsCommand(), a.builderStopCommand())
	return cmd
}

// engineDir is where the embedded engine of the state directory lives.
func (a *app) engineDir() (state, engine string, err error) {
	state, err = a.stateDir()
	return state, filepath.Join(state, "engine"), err
}

// builderStatus is what `imgforge builder status --json` prints.
type builderStatus struct {
	State   string         `json:"state"`
	Running bool           `json:"running"`
	Owner   *builder.Owner `json:"owner,omitempty"`
	Cache   *builder.Cache `json:"cache,omitempty"` // while it runs
	Budget  int64          `json:"budget"`          // bytes; 0 for BuildKit's own limits
	Sizes   []size         `json:"sizes"`
	Free    int64          `json:"free"` // bytes on its disk
}

type size struct {
	Path  string `json:"path"` // below the state directory
	What  string `json:"what"`
	Bytes int64  `json:"bytes"`
}

func (a *app) builderStatusCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show who uses the engine, its version, and what the state directory holds",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.builderStatus(cmd.Context())
			if err != nil {
				return orInfra(err)
			}
			if asJSON {
				return writeJSON(a.stdout, s)
			}
			return a.printStatus(s)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) builderStatus(ctx context.Context) (*builderStatus, error) {
	state, dir, err := a.engineDir()
	if err != nil {
		return nil, err
	}
	paths, err := a.paths("")
	if err != nil {
		return nil, &exitError{exitInput, err}
	}
	s := &builderStatus{State: state, Budget: paths.Budget, Free: freeSpace(state)}
	if s.Owner, err = builder.FindOwner(dir); err != nil {
		return nil, err
	}
	s.Running = s.Owner != nil
	if s.Running && s.Owner.Addr != "" {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		if s.Cache, err = builder.ReadCache(ctx, s.Owner.Addr); err != nil {
			return nil, fmt.Errorf("the engine of process %d does not answer: %w", s.Owner.PID, err)
		}
	}
	for _, part := range []size{
		{Path: "engine/root", What: "cached steps and layers"},
		{Path: "store/blobs", What: "downloaded files"},
		{Path: "store/partial", What: "unfinished downloads"},
	} {
		part.Bytes = diskUse(filepath.Join(state, filepath.FromSlash(part.Path)))
		s.Sizes = append(s.Sizes, part)
	}
	return s, nil
}

func (a *app) printStatus(s *builderStatus) error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(w, name+"\t"+format+"\n", args...) }
	row("state", "%s", s.State)
	switch {
	case !s.Running:
		row("engine", "not running")
	case s.Cache == nil:
		row("engine", "starting, for process %d", s.Owner.PID)
	default:
		row("engine", "running, BuildKit %s, %d builds", s.Cache.Version, s.Cache.Builds)
		row("owner", "process %d (buildkitd is %d)", s.Owner.PID, s.Owner.Engine)
		row("address", "%s", s.Owner.Addr)
		row("cache", "%d records, %s, %s in use", s.Cache.Records, human(s.Cache.Size), human(s.Cache.InUse))
	}
	if s.Budget > 0 {
		row("budget", "%s", human(s.Budget))
	} else {
		row("budget", "BuildKit's own; set one with --cache-budget or IMGFORGE_CACHE_BUDGET")
	}
	for _, part := range s.Sizes {
		row(part.Path, "%s of %s", human(part.Bytes), part.What)
	}
	row("free", "%s on its disk", human(s.Free))
	return w.Flush()
}

func human(n int64) string { return units.BytesSize(float64(n)) }

// diskUse is what the files below a directory take, in bytes; what vanishes while
// it looks counts as nothing.
func diskUse(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := d.Info(); err == nil && !d.IsDir() {
			n += blocksOf(info)
		}
		return nil
	})
	return n
}

func (a *app) builderStopCommand() *cobra.Command {
	var force, asJSON bool
	cmd := &cobra.Command{
		Use:   "stop",
		Short: "End the run that uses the engine",
		Long: `End the imgforge that uses the engine, as Ctrl-C in its terminal would, and the
engine with it. It loses nothing: its downloads resume and finished steps are
cached. An engine only runs for a run, so this needs --force. When nothing runs,
there is nothing to do.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.builderStop(cmd.Context(), force, asJSON) },
	}
	cmd.Flags().BoolVar(&force, "force", false, "end it though it is at work")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) builderStop(ctx context.Context, force, asJSON bool) error {
	_, dir, err := a.engineDir()
	if err != nil {
		return err
	}
	owner, err := builder.FindOwner(dir)
	if err != nil {
		return infra(err)
	}
	if owner != nil {
		if !force {
			return &exitError{exitCheck, fmt.Errorf("process %d is at work with the engine; wait for it, or end it with --force: it can go on later from where it was", owner.PID)}
		}
		if err := owner.Stop(dir, 30*time.Second); err != nil {
			return infra(err)
		}
	}
	if asJSON {
		return writeJSON(a.stdout, struct {
			Stopped *builder.Owner `json:"stopped"`
		}{owner})
	}
	if owner == nil {
		_, err = fmt.Fprintln(a.stdout, "nothing runs")
	} else {
		_, err = fmt.Fprintf(a.stdout, "stopped process %d and its engine\n", owner.PID)
	}
	return err
}

// prunedPartials removes unfinished downloads that nobody has touched for a while.
func prunedPartials(dir string) (builder.Pruned, error) {
	var out builder.Pruned
	var errs []error
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return out, err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || time.Since(info.ModTime()) < partialAge {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			errs = append(errs, err)
			continue
		}
		out.Records++
		out.Size += blocksOf(info)
	}
	return out, errors.Join(errs...)
}

// partialAge is how long an unfinished download is left for its run to go on.
const partialAge = time.Hour
