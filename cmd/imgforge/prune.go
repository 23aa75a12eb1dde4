package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/imgforge/imgforge/internal/builder"
)

// pruned is what `imgforge builder prune --json` prints.
type pruned struct {
	Cache    builder.Pruned `json:"cache"`
	Partials builder.Pruned `json:"partials"`
	Free     int64          `json:"free"` // bytes on the disk now
}

func (a *app) builderPruneCommand() *cobra.Command {
	var keep string
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove cached steps and unfinished downloads",
		Long: `Remove what the engine caches, unused for longest first, until it fits; and
downloads that nobody has gone on with for an hour. What a running build uses
stays, and so do downloaded files (store/blobs): without them all are fetched again.

  imgforge builder prune --keep-storage 20GB
  imgforge builder prune --all`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (keep == "") == !all {
				return errors.New("say how much to keep: --keep-storage 20GB, or --all to keep nothing")
			}
			var limit int64
			if keep != "" {
				var err error
				if limit, err = parseSize("--keep-storage", keep); err != nil {
					return err
				}
			}
			return a.builderPrune(cmd.Context(), limit, asJSON)
		},
	}
	cmd.Flags().StringVar(&keep, "keep-storage", "", "what the cache may keep, such as 20GB")
	cmd.Flags().BoolVar(&all, "all", false, "keep nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) builderPrune(ctx context.Context, keep int64, asJSON bool) error {
	state, dir, err := a.engineDir()
	if err != nil {
		return err
	}
	var out pruned
	// First: an engine may need the room to start at all.
	if out.Partials, err = prunedPartials(filepath.Join(state, "store", "partial")); err != nil {
		return infra(err)
	}
	if out.Cache, err = a.pruneCache(ctx, dir, keep); err != nil {
		return orInfra(err)
	}
	out.Free = freeSpace(state)
	if asJSON {
		return writeJSON(a.stdout, out)
	}
	_, err = fmt.Fprintf(a.stdout, "removed %s of cache and %d unfinished downloads (%s); %s are free\n",
		human(out.Cache.Size), out.Partials.Records, human(out.Partials.Size), human(out.Free))
	return err
}

// pruneCache asks the engine that runs, or one started for it. When nothing is to
// be kept and nobody uses it, no engine is needed.
func (a *app) pruneCache(ctx context.Context, dir string, keep int64) (builder.Pruned, error) {
	if _, err := os.Stat(filepath.Join(dir, "root")); errors.Is(err, fs.ErrNotExist) {
		return builder.Pruned{}, nil
	}
	owner, err := builder.FindOwner(dir)
	if err != nil {
		return builder.Pruned{}, err
	}
	if owner != nil {
		if owner.Addr == "" {
			return builder.Pruned{}, fmt.Errorf("the engine of process %d is starting; try again", owner.PID)
		}
		return builder.PruneCache(ctx, owner.Addr, keep)
	}
	if keep == 0 {
		size := diskUse(filepath.Join(dir, "root"))
		return builder.Pruned{Size: size}, builder.RemoveCache(dir)
	}
	paths, err := a.paths("")
	if err != nil {
		return builder.Pruned{}, &exitError{exitInput, err}
	}
	engine, err := builder.Start(ctx, dir, paths)
	if err != nil {
		return builder.Pruned{}, err
	}
	out, err := builder.PruneCache(ctx, engine.Addr, keep)
	return out, errors.Join(err, engine.Close())
}

func (a *app) builderLogsCommand() *cobra.Command {
	var lines int
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs",
		Short: "Print the end of the engine's log",
		Long: `Print the end of BuildKit's own log, of the run that is on or of the last one.
What steps print is in the build's own progress.

  imgforge builder logs --lines 20
  imgforge builder logs --follow`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if lines < 0 {
				return fmt.Errorf("--lines %d: give 0 for all, or how many", lines)
			}
			return a.builderLogs(cmd.Context(), lines, follow)
		},
	}
	cmd.Flags().IntVarP(&lines, "lines", "n", 100, "how many of the last lines; 0 for all")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the engine ends")
	return cmd
}

func (a *app) builderLogs(ctx context.Context, lines int, follow bool) error {
	_, dir, err := a.engineDir()
	if err != nil {
		return err
	}
	file, err := os.Open(filepath.Join(dir, "buildkitd.log"))
	if errors.Is(err, fs.ErrNotExist) {
		_, err = fmt.Fprintf(a.stderr, "no engine has run in %s yet\n", dir)
		return err
	}
	if err != nil {
		return infra(err)
	}
	defer file.Close()
	data, err := io.ReadAll(file)
	if err != nil {
		return infra(err)
	}
	if _, err := a.stdout.Write(lastLines(data, lines)); err != nil || !follow {
		return err
	}
	for {
		owner, err := builder.FindOwner(dir) // before the copy: nothing of the end is missed
		if err != nil {
			return infra(err)
		}
		if _, err := io.Copy(a.stdout, file); err != nil {
			return infra(err)
		}
		if owner == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// lastLines is the end of a text; 0 lines are all of it.
func lastLines(data []byte, lines int) []byte {
	if lines == 0 {
		return data
	}
	at := len(bytes.TrimSuffix(data, []byte("\n")))
	for range lines {
		if at = bytes.LastIndexByte(data[:at], '\n'); at < 0 {
			return data
		}
	}
	return data[at+1:]
}

// freeSpace is what may still be written below a directory that may not exist
// yet, in bytes; 0 when nobody can tell.
func freeSpace(dir string) int64 {
	for {
		var s syscall.Statfs_t
		if err := syscall.Statfs(dir, &s); err == nil {
			return int64(s.Bavail) * s.Bsize
		}
		up := filepath.Dir(dir)
		if up == dir {
			return 0
		}
		dir = up
	}
}

// blocksOf is what a file takes on the disk, in bytes.
func blocksOf(info fs.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Blocks * 512
	}
	return info.Size()
}
