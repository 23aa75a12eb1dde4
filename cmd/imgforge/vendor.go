package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/record"
	"github.com/imgforge/imgforge/internal/registry"
	"github.com/imgforge/imgforge/internal/report"
	"github.com/imgforge/imgforge/internal/store"
)

// How --mirrors names a place that `imgforge vendor` has filled.
const (
	keptInDir      = "vendor:"
	keptInRegistry = "oci://"
)

// vendorFlags are the options of `imgforge vendor`.
type vendorFlags struct {
	in       inputFlags
	to       string
	json     bool
	progress string
}

func (a *app) vendorCommand() *cobra.Command {
	var f vendorFlags
	cmd := &cobra.Command{
		Use:   "vendor --to DIR|oci://REGISTRY/REPOSITORY",
		Short: "Keep every locked file in a directory or registry of your own",
		Long: `Fetch every file that the lock of a matrix names, verify it, and keep it in a
directory or as blobs of a repository. A build can then do with that place alone,
whatever its origin deletes.

  imgforge vendor --to /srv/vendor --matrix matrix/universal.yaml
  imgforge build --mirrors vendor:/srv/vendor --matrix matrix/universal.yaml

  imgforge vendor --to oci://registry.example.com/team/vendor --only torch=2.4.1
  imgforge build --mirrors oci://registry.example.com/team/vendor --only torch=2.4.1

What is there already is not sent again, so it may be run at any time, and goes on
where it was interrupted. A registry is logged in to as docker is.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.vendor(cmd.Context(), &f) },
	}
	flags := cmd.Flags()
	f.in.register(flags)
	flags.StringVar(&f.to, "to", "", "directory, or oci://REGISTRY/REPOSITORY (plain http only on loopback)")
	flags.BoolVar(&f.json, "json", false, "print the result as JSON")
	progressFlag(flags, &f.progress)
	return cmd
}

// vendored is what `imgforge vendor` did.
type vendored struct {
	To    string `json:"to"`
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
	New   int    `json:"new"` // that were not there before
}

func (a *app) vendor(ctx context.Context, f *vendorFlags) error {
	repository, isRegistry := strings.CutPrefix(f.to, keptInRegistry)
	if err := checkTo(f.to, repository, isRegistry); err != nil {
		return err
	}
	in, err := f.in.load(a.environment())
	if err != nil {
		return err
	}
	blobs, err := lockedBlobs(in)
	if err != nil {
		return err
	}
	display, err := newDisplay(a.stderr, f.progress)
	if err != nil {
		return err
	}
	defer display.close()
	work, _, err := a.openStore(in, display)
	if err != nil {
		return err
	}
	work.fetcher.Snapshot = time.Unix(in.lock.Epoch(), 0)
	if _, err := work.Fetch(ctx, blobs); err != nil {
		if classify(err) == record.ClassPlan {
			return err
		}
		return infra(err)
	}
	out, err := a.keep(ctx, work, f.to, blobs)
	display.close()
	if err != nil {
		return infra(err)
	}
	if f.json {
		return json.NewEncoder(a.stdout).Encode(out)
	}
	mirror := f.to
	if !isRegistry {
		mirror = keptInDir + f.to
	}
	_, err = fmt.Fprintf(a.stdout, "%s: %d files (%s), %d new\nBuild from it with --mirrors %s\n", out.To, out.Files, report.Bytes(out.Bytes), out.New, mirror)
	return err
}

// lockedBlobs are the files of all selected cells, sorted by hash. A cell that is
// not locked is an error.
func lockedBlobs(in *inputs) ([]plan.Blob, error) {
	cells := planCells(in)
	blobs, unplanned := blobsOf(cells)
	for _, c := range cells {
		if c.Err != nil {
			return nil, fmt.Errorf("%d of %d cells are not locked, such as %s: %w; lock them, or choose others with --only", unplanned, len(cells), c.Tag, c.Err)
		}
	}
	slices.SortFunc(blobs, func(x, y plan.Blob) int { return cmp.Compare(x.SHA256, y.SHA256) })
	return blobs, nil
}

// keep copies stored files to a directory or a registry.
func (a *app) keep(ctx context.Context, work *workshop, to string, blobs []plan.Blob) (out vendored, err error) {
	out = vendored{To: to, Files: len(blobs)}
	for _, b := range blobs {
		if info, err := os.Stat(work.store.Path(b.SHA256)); err == nil {
			out.Bytes += info.Size()
		}
	}
	t := work.display.begin(fmt.Sprintf("keep %d files in %s", len(blobs), to))
	count := t.counter("files")
	said := func(done int) { count(done, len(blobs)) }
	if repository, ok := strings.CutPrefix(to, keptInRegistry); ok {
		client := &registry.Client{Base: a.environment().Transport()}
		out.New, err = client.Keep(ctx, repository, registryFiles(work.store, blobs), said)
	} else {
		out.New, err = work.store.Keep(ctx, to, blobs, said)
	}
	t.end(err)
	return out, err
}

// checkTo refuses a place that cannot be written to, before anything is fetched.
func checkTo(to, repository string, isRegistry bool) error {
	const help = "name a directory, or oci://REGISTRY/REPOSITORY"
	switch {
	case to == "":
		return errors.New("--to is missing; " + help)
	case isRegistry:
		if registry.Secret(repository) {
			return fmt.Errorf("--to: %w", registry.ErrPassword)
		}
		if _, err := name.NewRepository(repository, name.StrictValidation); err != nil {
			return fmt.Errorf("--to %q: %w; %s, without a tag", to, err, help)
		}
		return nil
	case strings.Contains(to, "://"), strings.HasPrefix(to, keptInDir):
		return fmt.Errorf("--to %q is neither; %s", to, help)
	}
	if info, err := os.Stat(to); err == nil && !info.IsDir() || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--to %s is no directory; %s", to, help)
	}
	return nil
}

// registryFiles are stored files as a registry keeps them.
func registryFiles(s *store.Store, blobs []plan.Blob) []registry.File {
	out := make([]registry.File, len(blobs))
	for i, b := range blobs {
		out[i] = registry.File{Name: b.Name, SHA256: b.SHA256, Path: s.Path(b.SHA256)}
	}
	return out
}

// keptProfiles are the profiles of names that stand for places of one's own.
func keptProfiles(names []diag.Str, env store.Environment) ([]store.Profile, error) {
	var out []store.Profile
	var bad diag.List
	for _, n := range names {
		if dir, ok := strings.CutPrefix(n.Value, keptInDir); ok {
			p, err := store.Kept(n.Value, dir)
			if err != nil {
				bad.Add(n.Pos, "fill one with `imgforge vendor --to DIR`", "mirror %s: %s", n.Value, err)
			}
			out = append(out, p)
		} else if repository, ok := strings.CutPrefix(n.Value, keptInRegistry); ok {
			address, err := registry.Kept(repository)
			if err != nil {
				bad.Add(n.Pos, "write oci://REGISTRY/REPOSITORY, without a tag", "mirror %s: %s", n.Value, err)
			}
			out = append(out, store.Profile{
				Name: n.Value, AnyHost: true,
				File:   func(b plan.Blob) string { return address(b.SHA256) },
				Client: &http.Client{Transport: &registry.Client{Base: env.Transport()}},
			})
		}
	}
	return out, bad.Err()
}
