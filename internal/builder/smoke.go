package builder

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/containerd/v2/core/content"
	contentlocal "github.com/containerd/containerd/v2/plugins/content/local"
	"github.com/moby/buildkit/client"
	"github.com/moby/buildkit/client/llb"
	gateway "github.com/moby/buildkit/frontend/gateway/client"
	ocispecs "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/imgforge/imgforge/internal/check"
	"github.com/imgforge/imgforge/internal/graph"
)

// Prover runs programs in one image on the engine.
type Prover struct {
	Devices []string // CDI names of the GPUs to give
	Status  chan<- *client.SolveStatus

	b      *Builder
	image  *llb.Definition
	config ocispecs.ImageConfig
	stores map[string]content.Store
	spec   string // platform
}

// ProveBuilt is for the image that the job has built: its steps are the engine's
// already, and nothing is moved.
func (b *Builder) ProveBuilt(ctx context.Context, job Job) (*Prover, error) {
	root, err := b.bootstrap(ctx, job.Plan)
	if err != nil {
		return nil, err
	}
	g, err := graph.Compile(job.Plan, graph.Inputs{Blob: b.source, Image: b.image, Bootstrap: root, Sources: job.Sources})
	if err != nil {
		return nil, err
	}
	def, err := g.Marshal(ctx, job.Plan)
	if err != nil {
		return nil, err
	}
	c := job.Plan.Config
	return &Prover{b: b, image: def, Status: job.Status, spec: job.Plan.Platform,
		config: ocispecs.ImageConfig{Env: c.Env, WorkingDir: c.WorkingDir}}, nil
}

// layoutID names the session's content store that serves an image to test.
const layoutID = "imgforge-image"

// ProveLayout is for an image of an OCI layout directory, which the engine gets over
// the session.
func (b *Builder) ProveLayout(ctx context.Context, dir, digest, platform string, config ocispecs.ImageConfig) (*Prover, error) {
	if err := b.Runs(ctx, platform); err != nil {
		return nil, err
	}
	layout, err := contentlocal.NewStore(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read the OCI layout: %w", err)
	}
	state := llb.OCILayout("imgforge/image@"+digest, llb.OCIStore("", layoutID), llb.WithCustomName("image: "+digest))
	def, err := (&graph.Graph{State: state}).MarshalFor(ctx, platform)
	if err != nil {
		return nil, err
	}
	return &Prover{b: b, image: def, config: config, spec: platform, stores: map[string]content.Store{layoutID: layout}}, nil
}

// late is how long the engine may take beyond a program's own time-out, which is
// kept inside the image, until it is stopped from outside.
const late = 2 * time.Minute

// errLate is why a program was stopped from outside.
var errLate = errors.New("time-out")

// Run runs one program. An error is the engine's; how the program ended is in the
// output.
func (p *Prover) Run(ctx context.Context, e check.Exec) (check.Output, error) {
	var devices []string
	if e.GPU {
		if len(p.Devices) == 0 {
			return check.Output{}, fmt.Errorf("%w: it has no GPU to give; %s", ErrNoEngine, cdiCure)
		}
		devices = p.Devices
	}
	image, err := llb.NewDefinitionOp(p.image.ToPB())
	if err != nil {
		return check.Output{}, err
	}
	state := graph.Smoke{
		Exec: e, Env: p.config.Env, User: p.config.User, Dir: p.config.WorkingDir, Devices: devices, Nonce: rand.Text(),
	}.Compile(llb.NewState(image))
	def, err := (&graph.Graph{State: state}).MarshalFor(ctx, p.spec)
	if err != nil {
		return check.Output{}, err
	}
	inside, cancel := context.WithTimeoutCause(ctx, e.Timeout+late, errLate)
	defer cancel()
	start := time.Now()
	files := map[string][]byte{}
	args := solveArgs{status: p.Status, stores: p.stores, devices: devices}
	_, err = p.b.solve(inside, args, func(ctx context.Context, gw gateway.Client) (*gateway.Result, error) {
		res, err := gw.Solve(ctx, gateway.SolveRequest{Definition: def.ToPB(), Evaluate: true})
		if err != nil {
			return nil, err
		}
		ref, err := res.SingleRef()
		if err != nil {
			return nil, err
		}
		return gateway.NewResult(), collect(ctx, ref, graph.SmokeOut, files)
	})
	took := time.Since(start)
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(inside), errLate) {
		return check.Output{TimedOut: true, Seconds: took.Seconds()}, nil
	}
	if err != nil {
		return check.Output{}, explainProof(err)
	}
	return outputOf(files, e.Timeout, took)
}

// outputOf reads what smoke.sh left.
func outputOf(files map[string][]byte, timeout, took time.Duration) (check.Output, error) {
	file := func(name string) []byte { return files[path.Join(graph.SmokeOut, name)[1:]] }
	code, err := strconv.Atoi(strings.TrimSpace(string(file("exit"))))
	if err != nil {
		return check.Output{}, fmt.Errorf("the image cannot run checks: it needs sh, timeout, head and tail; %s", strings.TrimSpace(string(file("stderr"))))
	}
	out := check.Output{Exit: code, Seconds: took.Seconds()}
	const half = check.OutputLimit / 2
	for name, into := range map[string]*[]byte{"stdout": &out.Stdout, "stderr": &out.Stderr} {
		start, end := file(name), file(name+".end")
		if len(end) >= half {
			out.Cut = true
			start = append(slices.Clip(start), "\n[...]\n"...)
		}
		*into = append(slices.Clip(start), end...)
	}
	if (code == 124 || code == 137) && took >= timeout {
		out.TimedOut = true
	}
	return out, nil
}

// explainProof makes a step that could not be started an error of the image or of the
// engine: a check that ran and failed is none.
func explainProof(err error) error {
	var step *StepError
	if !errors.As(err, &step) {
		return err
	}
	if strings.Contains(err.Error(), "CDI device") || strings.Contains(err.Error(), "unresolvable CDI") {
		return fmt.Errorf("%w: %s; %s", ErrNoEngine, reason(step.Err), cdiCure)
	}
	return fmt.Errorf("the image cannot run checks (they need sh, timeout, head and tail): %w", err)
}

// GPUKind is the CDI kind of NVIDIA's GPUs.
const GPUKind = "nvidia.com/gpu"

const cdiCure = "on the engine's machine: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml, then restart the engine"

// GPUs are the CDI names of the engine's GPUs.
func (b *Builder) GPUs(ctx context.Context) ([]string, error) {
	workers, err := b.client.ListWorkers(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: the engine does not say what it runs: %w", ErrNoEngine, err)
	}
	var out []string
	for _, w := range workers {
		for _, d := range w.CDIDevices {
			if strings.HasPrefix(d.Name, GPUKind+"=") && !slices.Contains(out, d.Name) {
				out = append(out, d.Name)
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// AllGPUs picks, of an engine's GPUs, the one name that stands for all, else each.
func AllGPUs(names []string) []string {
	if all := GPUKind + "=all"; slices.Contains(names, all) {
		return []string{all}
	}
	return names
}
