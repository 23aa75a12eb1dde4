package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/imgforge/imgforge/internal/builder"
	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/store"
)

// finding is something the doctor has to say about this machine.
type finding struct {
	Check string `json:"check"`
	Level string `json:"level"` // one of the levels
	What  string `json:"what"`
	Cure  string `json:"cure,omitempty"`
}

// The levels of a finding.
const (
	levelOK      = "ok"
	levelNote    = "note"    // nothing is wrong
	levelWarning = "warning" // something may fail
	levelError   = "error"   // builds fail
)

func (a *app) doctorCommand() *cobra.Command {
	var in inputFlags
	var engine engineFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what keeps this machine from building, and say how to mend it",
		Long: `Look at this machine: root, runc, cgroups, overlayfs, disk, BuildKit, mirrors,
proxy and certificates, DNS, clock, and the NVIDIA driver: which cells of the matrix
can run here. Each finding has its cure. Nothing is changed.

  imgforge doctor
  imgforge doctor --matrix my.yaml --mirrors aliyun,host
  imgforge doctor --builder tcp://builder:1234 --json

Exit code 1 when there is an error among the findings.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := a.doctor(cmd.Context(), &in, &engine)
			if err != nil {
				return err
			}
			return a.showFindings(found, asJSON)
		},
	}
	in.register(cmd.Flags())
	engine.register(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	return cmd
}

// doctor looks at this machine. A matrix that cannot be read is a finding: the
// machine is looked at all the same.
func (a *app) doctor(ctx context.Context, f *inputFlags, e *engineFlags) ([]finding, error) {
	state, err := a.stateDir()
	if err != nil {
		return nil, err
	}
	p := &patient{machine: a.thisMachine(), state: state, remote: e.builder}
	if p.remote == "" {
		p.remote = a.env["BUILDKIT_HOST"]
	}
	p.tls = e.tls
	in, err := f.load(a.environment())
	if err != nil {
		p.inputs = err
	} else {
		p.cells, p.mirrors, p.epoch = in.cells, in.mirrors, in.lock.Epoch()
		p.indexes = (&store.Fetcher{Profiles: in.mirrors, Env: a.environment()}).Indexes()
		p.need = needed(in, filepath.Join(state, "store", "blobs", "sha256"), p.machine.exists)
	}
	return p.examine(ctx), nil
}

// need is what a build still takes of the disk, in bytes.
type need struct {
	download int64 // files that the store lacks
	all      int64 // of all locked files
}

func needed(in *inputs, blobs string, exists func(path string) bool) need {
	var n need
	seen := map[string]bool{}
	for _, made := range plan.All(in.cells, in.recipes, in.lock) {
		if made.Err != nil {
			continue
		}
		for _, b := range made.Plan.Blobs() {
			if seen[b.SHA256] {
				continue
			}
			seen[b.SHA256] = true
			n.all += b.Size
			if !exists(filepath.Join(blobs, b.SHA256)) {
				n.download += b.Size
			}
		}
	}
	return n
}

// examine runs every check.
func (p *patient) examine(ctx context.Context) []finding {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var out []finding
	for _, c := range looks {
		for _, f := range c.look(ctx, p) {
			f.Check = c.name
			out = append(out, f)
		}
	}
	return out
}

// showFindings prints them, errors with their cures, and makes an exit code.
func (a *app) showFindings(found []finding, asJSON bool) error {
	errs := 0
	for _, f := range found {
		if f.Level == levelError {
			errs++
		}
	}
	if asJSON {
		if err := writeJSON(a.stdout, found); err != nil {
			return err
		}
	} else {
		for _, f := range found {
			fmt.Fprintf(a.stdout, "%-8s %-9s %s\n", f.Level, f.Check, strings.ReplaceAll(f.What, "\n", "\n                   "))
			if f.Cure != "" {
				fmt.Fprintf(a.stdout, "%18s cure: %s\n", "", f.Cure)
			}
		}
	}
	if errs > 0 {
		return &exitError{code: exitCheck}
	}
	return nil
}

// dial tries an engine elsewhere.
func dial(ctx context.Context, addr, tls string) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	err := builder.Try(ctx, addr, tls)
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("no answer within 15 seconds")
	}
	return err
}
