// Package smoke runs the checks of an image: the static ones on its files, the others
// in containers, by one of several runners.
package smoke

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/imgforge/imgforge/internal/check"
	"github.com/imgforge/imgforge/internal/record"
	"github.com/imgforge/imgforge/internal/version"
)

// Runner runs one program in the image it is for. An error is the runner's own; how
// the program ended is in the output.
type Runner interface {
	Run(ctx context.Context, e check.Exec) (check.Output, error)
}

// Suite is how an image is tested.
type Suite struct {
	Image  string // digest
	Name   string // of the runner
	Runner Runner // of cpu and gpu checks; nil: they are skipped
	Static func(context.Context, check.Check) (check.Result, error)
	GPU    string                        // policy: auto, require or skip
	NoGPU  string                        // why the runner has no GPU; empty: it has
	Floor  string                        // oldest driver the image supports; may be empty
	Only   []string                      // names of checks to run, the others are skipped; empty: all
	Jobs   int                           // checks that run at once
	Began  func(name string) func(error) // tells that a check began, and then that it ended; may be nil
}

// Run runs the checks and says what came of each, in their order. Static and cpu
// checks run beside each other; then gpu checks, one after the other, since each
// must find the GPUs free. An error is one of the machine: nothing is known then.
func (s *Suite) Run(ctx context.Context, checks []check.Check) (*record.Smoked, error) {
	start := time.Now()
	out := &record.Smoked{Image: s.Image, Runner: s.Name, Policy: s.GPU, Floor: s.Floor, Checks: make([]record.Check, len(checks))}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := make(chan struct{}, max(1, s.Jobs))
	var all sync.WaitGroup
	for i, c := range checks {
		if c.Kind == check.GPU {
			continue
		}
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			s.one(ctx, c, &out.Checks[i], cancel)
		})
	}
	all.Wait()
	for i, c := range checks {
		if c.Kind == check.GPU {
			s.one(ctx, c, &out.Checks[i], cancel)
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	out.Host = hostOf(out.Checks)
	out.Findings = s.findings(out)
	out.Seconds = time.Since(start).Seconds()
	return out, nil
}

// one runs one check. What keeps it from running ends all.
func (s *Suite) one(ctx context.Context, c check.Check, into *record.Check, stop context.CancelCauseFunc) {
	*into = record.Check{Name: c.Name, Kind: string(c.Kind)}
	if ctx.Err() != nil {
		return
	}
	why, fails := s.without(c)
	if why != "" && !fails {
		into.Status, into.Summary = record.CheckSkipped, why
		return
	}
	ended := func(error) {}
	if s.Began != nil {
		ended = s.Began(c.Name)
	}
	start := time.Now()
	var r check.Result
	var err error
	switch {
	case fails:
		r = check.Result{Summary: why, Problems: []check.Problem{{Problem: why, Do: []string{"run it where there is a GPU", "or say `gpu: skip`: the image is untested then, and not promoted"}}}}
	case c.Kind == check.Static:
		r, err = s.Static(ctx, c)
	default:
		r, err = s.program(ctx, c)
	}
	ended(err)
	if err != nil {
		stop(fmt.Errorf("check %s: %w", c.Name, err))
		return
	}
	into.Seconds = time.Since(start).Seconds()
	into.Summary, into.Problems, into.Facts = r.Summary, r.Problems, r.Facts
	switch {
	case r.OK:
		into.Status = record.CheckPassed
	case c.Severity == check.Warning:
		into.Status = record.CheckWarned
	default:
		into.Status = record.CheckFailed
	}
}

// without says why a check does not run, and whether that fails it.
func (s *Suite) without(c check.Check) (why string, fails bool) {
	switch {
	case len(s.Only) > 0 && !slices.Contains(s.Only, c.Name):
		return "not selected", false
	case c.Kind == check.Static && s.Static == nil:
		return "the runner has no image whose files could be read", false
	case c.Kind != check.Static && s.Runner == nil:
		return "no runner", false
	case c.Kind == check.GPU && s.GPU == "skip":
		return "GPU checks are skipped", false
	case c.Kind == check.GPU && s.NoGPU != "":
		return s.NoGPU, s.GPU == "require"
	}
	return "", false
}

func (s *Suite) program(ctx context.Context, c check.Check) (check.Result, error) {
	e := check.Exec{Name: c.Name, User: c.User, GPU: c.Kind == check.GPU, Timeout: c.Timeout}
	if c.Use == "" {
		e.Args = []string{"sh", "-euc", c.Run}
	} else {
		var err error
		if e.Args, err = check.Program(c.Use, c.With); err != nil {
			return check.Result{}, err
		}
	}
	out, err := s.Runner.Run(ctx, e)
	if err != nil {
		return check.Result{}, err
	}
	return c.Judge(out), nil
}

// hostOf reads what nvidia-smi's check found.
func hostOf(checks []record.Check) record.Host {
	var h record.Host
	for _, c := range checks {
		if c.Name != "nvidia-smi" || c.Facts == nil {
			continue
		}
		var facts struct {
			Driver string `json:"driver"`
			GPUs   []struct {
				Name, UUID, Capability string
				Memory                 int64 `json:"memory_total"`
			} `json:"gpus"`
		}
		data, err := json.Marshal(c.Facts)
		if err == nil && json.Unmarshal(data, &facts) == nil {
			h.Driver = facts.Driver
			for _, g := range facts.GPUs {
				h.GPUs = append(h.GPUs, record.GPU{Name: g.Name, UUID: g.UUID, Capability: g.Capability, Memory: g.Memory})
			}
		}
	}
	return h
}

// findings judges the test itself.
func (s *Suite) findings(r *record.Smoked) []record.Finding {
	passed := slices.ContainsFunc(r.Checks, func(c record.Check) bool { return c.Kind == string(check.GPU) && c.Status == record.CheckPassed })
	if s.Floor == "" || !passed {
		return nil
	}
	floor, err := version.ParseFloor(s.Floor)
	if err != nil {
		return nil
	}
	on, err := version.ParseDriver(r.Host.Driver)
	switch {
	case err != nil:
		return []record.Finding{{Rule: FloorUnproven, Text: "the driver of the host is not known, so nothing is shown of the floor " + s.Floor}}
	case on.Major() != floor.Major():
		return []record.Finding{{Rule: FloorUnproven, Text: fmt.Sprintf("a pass on driver %s shows nothing of the floor %s; run the checks on a host with a driver of branch %d", r.Host.Driver, s.Floor, floor.Major())}}
	}
	return nil
}

// FloorUnproven is the rule of images whose floor no pass has shown.
const FloorUnproven = "floor-unproven"

// Names lists checks by name, for messages.
func Names(checks []check.Check) []string {
	names := map[string]bool{}
	for _, c := range checks {
		names[c.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}
