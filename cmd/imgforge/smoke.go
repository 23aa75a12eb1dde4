package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	ocispecs "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/spf13/cobra"

	"github.com/imgforge/imgforge/internal/check"
	"github.com/imgforge/imgforge/internal/image"
	"github.com/imgforge/imgforge/internal/matrix"
	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/record"
	"github.com/imgforge/imgforge/internal/report"
	"github.com/imgforge/imgforge/internal/scan"
	"github.com/imgforge/imgforge/internal/smoke"
)

// testFlags are the options of `imgforge smoke`.
type testFlags struct {
	in       inputFlags
	engine   engineFlags
	smoke    smokeFlags
	progress string
	json     bool
	list     bool
}

func (a *app) smokeCommand() *cobra.Command {
	var f testFlags
	cmd := &cobra.Command{
		Use:   "smoke IMAGE...",
		Short: "Run an image's checks on it",
		Long: `Run the checks of images: static ones on their files, the others in containers of
the build engine. Which checks an image must pass follows from the recipes it was
made with, which its labels name; --matrix adds those of a matrix.

An image is named as ` + image.Forms + `.

  imgforge smoke oci:dist:2.4.1-cuda12.1-py3.11-driver525-debian12
  imgforge smoke dist --check opencv,zsh         some checks only; the image is untested
  imgforge smoke dist --gpu require              fail where there is no GPU
  imgforge smoke dist --list                     which checks there are
  imgforge smoke dist --json --junit smoke.xml

Exit codes: 0 every check passed or was skipped; 1 a check failed; 2 bad usage;
3 a check could not be run.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.smoke(cmd.Context(), &f, args) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.in.matrix, "matrix", "m", "", "matrix whose checks and policy hold too (default: the recipes' alone)")
	flags.StringArrayVar(&f.in.recipes, "recipes", nil, "directory of your own recipes; one of a built-in's name replaces it (repeatable)")
	flags.BoolVar(&f.list, "list", false, "list the checks, and run none")
	f.engine.register(flags)
	f.smoke.register(flags)
	progressFlag(flags, &f.progress)
	flags.BoolVar(&f.json, "json", false, "print the result as JSON on standard output")
	return cmd
}

// subject is an image to test, with its checks.
type subject struct {
	image  *image.Image
	checks []check.Check
	floor  string
}

func (a *app) smoke(ctx context.Context, f *testFlags, refs []string) error {
	if err := errors.Join(checkProgress(f.progress), f.smoke.check()); err != nil {
		return err
	}
	in := &inputs{sources: map[string][]byte{}}
	if err := in.loadRecipes(f.in.recipes); err != nil {
		return err
	}
	policy := matrix.Smoke{GPU: matrix.Policies[0]}
	if f.in.matrix != "" {
		data, _, err := f.in.readMatrix()
		if err != nil {
			return err
		}
		if err := in.parseMatrix(f.in.matrix, data); err != nil {
			return err
		}
		policy = in.matrix.Smoke
	}
	var subjects []subject
	var all []check.Check
	for _, ref := range refs {
		s, err := in.subject(ctx, ref, policy)
		if err != nil {
			return err
		}
		subjects, all = append(subjects, s), append(all, s.checks...)
	}
	if err := f.smoke.known(all); err != nil {
		return err
	}
	if f.list {
		return a.listChecks(f.json, subjects)
	}
	rows, err := a.test(ctx, f, policy, subjects)
	if err != nil {
		return err
	}
	return errors.Join(a.tested(f, rows), f.smoke.writeJUnit(rows))
}

// subject opens an image and finds its checks by its labels.
func (in *inputs) subject(ctx context.Context, ref string, policy matrix.Smoke) (subject, error) {
	img, err := image.Open(ctx, ref)
	if errors.Is(err, image.ErrName) {
		return subject{}, err
	}
	if err != nil {
		return subject{}, infra(err)
	}
	label := func(name string) string { return img.Config.Labels["io.imgforge."+name] }
	cell := matrix.Cell{
		Tag: img.Config.Labels[ocispecs.AnnotationVersion], CUDA: label("cuda"), Torch: label("torch"), Python: label("python"),
		Driver: strings.TrimPrefix(label("driver"), ">="), BaseName: label("base"), Platform: img.Platform, Free: map[string]string{},
	}
	for name, value := range img.Config.Labels {
		if axis, ok := strings.CutPrefix(name, "io.imgforge.axis."); ok {
			cell.Free[axis] = value
		}
	}
	cell.Recipes = named(strings.Fields(img.Config.Labels[plan.RecipesLabel]), ref)
	checks, err := plan.Checks(cell, in.recipes, policy)
	if err != nil {
		return subject{}, fmt.Errorf("image %s: %w", ref, err)
	}
	return subject{image: img, checks: checks, floor: cell.Driver}, nil
}

// test runs the checks of all images, one image after the other.
func (a *app) test(ctx context.Context, f *testFlags, policy matrix.Smoke, subjects []subject) ([]report.Row, error) {
	display, err := newDisplay(a.stderr, f.progress)
	if err != nil {
		return nil, err
	}
	defer display.close()
	work, err := a.openWorkshop(ctx, &f.engine, &inputs{}, display)
	if err != nil {
		return nil, err
	}
	var events []record.Event
	var scans scan.Cache
	for _, s := range subjects {
		smoked, err := testOne(ctx, f, work, &scans, s, f.smoke.policy(policy))
		if err != nil {
			return nil, errors.Join(infra(fmt.Errorf("image %s: %w", s.image.Name, err)), work.close())
		}
		events = append(events, record.Event{Cell: s.image.Name, Smoked: smoked})
	}
	return report.Fold(events), orInfra(work.close())
}

func testOne(ctx context.Context, f *testFlags, work *workshop, scans *scan.Cache, s subject, policy string) (*record.Smoked, error) {
	suite := &smoke.Suite{
		Image: s.image.Digest, Name: "buildkit", Static: staticChecks(scans, s.image.Layers), GPU: policy, Floor: s.floor,
		Only: f.smoke.only, Jobs: runtime.GOMAXPROCS(0), Began: work.display.watch(s.image.Name),
	}
	if s.image.Layout != "" {
		c := s.image.Config
		prover, err := work.builder.ProveLayout(ctx, s.image.Layout, s.image.Digest, s.image.Platform,
			ocispecs.ImageConfig{Env: c.Env, User: c.User, WorkingDir: c.WorkingDir})
		if err != nil {
			return nil, err
		}
		prover.Status = work.display.status
		if prover.Devices, suite.NoGPU, err = engineGPUs(ctx, work.builder, f.smoke.devices); err != nil {
			return nil, err
		}
		suite.Runner = prover
	}
	return suite.Run(ctx, s.checks)
}

// tested prints the results and turns them into an exit code.
func (a *app) tested(f *testFlags, rows []report.Row) error {
	if f.json {
		if err := report.JSON(a.stdout, rows); err != nil {
			return err
		}
	}
	failed := false
	for i, r := range rows {
		if !f.json {
			if i > 0 {
				fmt.Fprintln(a.stdout)
			}
			report.Checks(a.stdout, r.Cell, r.Smoked)
		}
		failed = failed || r.Smoked.Verdict() == record.Broken
	}
	if failed {
		return &exitError{code: exitCheck}
	}
	return nil
}

// listChecks tells which checks images must pass.
func (a *app) listChecks(asJSON bool, subjects []subject) error {
	if asJSON {
		out := map[string][]check.Check{}
		for _, s := range subjects {
			out[s.image.Name] = slices.Clip(s.checks)
		}
		return writeJSON(a.stdout, out)
	}
	for _, s := range subjects {
		fmt.Fprintf(a.stdout, "%s:\n", s.image.Name)
		for _, c := range s.checks {
			what := firstOf(c)
			fmt.Fprintf(a.stdout, "  %-8s%-16s %s\n", c.Kind, c.Name, what)
		}
	}
	return nil
}

// firstOf says in a line what a check does.
func firstOf(c check.Check) string {
	if b, ok := check.Find(c.Use); ok {
		return b.Doc
	}
	line, _, _ := strings.Cut(strings.TrimSpace(c.Run), "\n")
	return line
}
