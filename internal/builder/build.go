package builder

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/moby/buildkit/client"
	"github.com/moby/buildkit/exporter/containerimage/exptypes"
	gateway "github.com/moby/buildkit/frontend/gateway/client"
	"github.com/moby/buildkit/session"
	"github.com/moby/buildkit/solver/pb"
	ocispecs "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/imgforge/imgforge/internal/graph"
	"github.com/imgforge/imgforge/internal/plan"
)

// Image is a built image: its manifest and everything the manifest names.
type Image struct {
	Manifest ocispecs.Descriptor
	Blobs    []ocispecs.Descriptor // config first, then layers, base first
}

// Job is one image to build.
type Job struct {
	Plan        *plan.Plan
	Sources     map[string][]byte // recipe files by name, for error excerpts
	Layout      string            // OCI layout directory that receives the blobs
	Push        string            // repository to push to by digest; may be empty
	Compression string            // one of Compressions; empty for the first
	Status      chan<- *client.SolveStatus
}

// Build compiles the plan, runs it on the engine and exports the image. Every
// blob of the plan must be in the store.
func (b *Builder) Build(ctx context.Context, job Job) (Image, error) {
	if err := b.Runs(ctx, job.Plan.Platform); err != nil {
		return Image{}, err
	}
	root, err := b.bootstrap(ctx, job.Plan)
	if err != nil {
		return Image{}, err
	}
	g, err := graph.Compile(job.Plan, graph.Inputs{Blob: b.source, Image: b.image, Bootstrap: root, Sources: job.Sources})
	if err != nil {
		return Image{}, err
	}
	def, err := g.Marshal(ctx, job.Plan)
	if err != nil {
		return Image{}, err
	}
	layout, err := b.layout(job.Layout)
	if err != nil {
		return Image{}, err
	}
	out := &export{Store: layout}
	resp, err := b.solve(ctx, solveArgs{platform: job.Plan.Platform, exports: b.exports(job, out), status: job.Status}, func(ctx context.Context, gw gateway.Client) (*gateway.Result, error) {
		caps := gw.BuildOpts().LLBCaps
		if err := caps.Supports(pb.CapMergeOp); err != nil {
			return nil, fmt.Errorf("%w: the engine cannot merge layers: %w", ErrNoEngine, err)
		}
		res, err := gw.Solve(ctx, gateway.SolveRequest{Definition: def.ToPB(), Evaluate: true})
		if err != nil {
			return nil, err
		}
		res.AddMeta(exptypes.ExporterImageConfigKey, g.Config)
		out.built.Store(true)
		return res, nil
	})
	if err != nil {
		return Image{}, out.explain(job, err)
	}
	img, err := readImage(ctx, out, resp.ExporterResponse)
	if err == nil && job.Plan.Image != nil {
		err = checkLayers(job, img)
	}
	return img, err
}

// checkLayers holds an image to its base: the base's layers by digest, and the
// others compressed the way that was asked, which an engine that has made them
// before in another way may not do.
func checkLayers(job Job, img Image) error {
	base := job.Plan.Image
	for i, layer := range img.Blobs[1:] {
		_, lazy := layer.Annotations[tocDigest]
		how := "gzip"
		switch {
		case lazy:
			how = "estargz"
		case strings.HasSuffix(layer.MediaType, "+zstd"):
			how = "zstd"
		}
		if i >= base.Layers() {
			if asked := cmp.Or(job.Compression, Compressions[0]); how != asked {
				return fmt.Errorf("%w: it keeps layer %d as %s, not %s; run `imgforge builder prune --all`, then build again", ErrNoEngine, i+1, how, asked)
			}
			continue
		}
		if want := "sha256:" + base.Parts[i+2].SHA256; layer.Digest.String() != want {
			return fmt.Errorf("%w: layer %d of the base was %s and came out as %s", ErrNoEngine, i+1, want, layer.Digest)
		}
	}
	return nil
}

// tocDigest marks a layer that is estargz.
const tocDigest = "containerd.io/snapshot/stargz/toc.digest"

// exports are the layout, and the registry when asked. The options make an
// image the same wherever it is built; none rewrites what a layer holds.
func (b *Builder) exports(job Job, out content.Store) []client.ExportEntry {
	attrs := map[string]string{
		"compression":       cmp.Or(job.Compression, Compressions[0]),
		"force-compression": strconv.FormatBool(job.Plan.Image == nil), // a base image's layers stay as they are
		"oci-mediatypes":    "true",
		"source-date-epoch": strconv.FormatInt(job.Plan.Epoch, 10),
	}
	for name, value := range job.Plan.Config.Labels {
		if strings.HasPrefix(name, "org.opencontainers.image.") {
			attrs["annotation."+name] = value
		}
	}
	exports := []client.ExportEntry{{Type: client.ExporterOCI, Attrs: maps.Clone(attrs), OutputStore: out}}
	exports[0].Attrs["tar"] = "false"
	if job.Push != "" {
		push := maps.Clone(attrs)
		push["name"] = job.Push
		push["push"] = "true"
		push["push-by-digest"] = "true"
		if isLoopback(job.Push) {
			push["registry.insecure"] = "true"
		}
		exports = append(exports, client.ExportEntry{Type: client.ExporterImage, Attrs: push})
	}
	return exports
}

// solveArgs is what solves differ in.
type solveArgs struct {
	platform string // of what is exported; else the engine warns that it is not its own
	exports  []client.ExportEntry
	status   chan<- *client.SolveStatus
	secrets  session.Attachable       // may be nil
	stores   map[string]content.Store // served beside the blobs, by id
	devices  []string                 // CDI names that steps may use
}

// solve runs one build and turns its failure into the step that failed.
func (b *Builder) solve(ctx context.Context, args solveArgs, build gateway.BuildFunc) (*client.SolveResponse, error) {
	events := make(chan *client.SolveStatus)
	watch := newWatch()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ev := range events {
			watch.see(ev)
			if args.status != nil {
				args.status <- ev
			}
		}
	}()
	opt := client.SolveOpt{Exports: args.exports, OCIStores: map[string]content.Store{storeID: b.content}, Session: b.attachables()}
	if args.platform != "" {
		opt.FrontendAttrs = map[string]string{"platform": args.platform}
	}
	maps.Copy(opt.OCIStores, args.stores)
	for _, name := range args.devices {
		opt.AllowedEntitlements = append(opt.AllowedEntitlements, "device="+name)
	}
	if args.secrets != nil {
		opt.Session = append(opt.Session, args.secrets)
	}
	var failed error // of build; the engine may answer with what came of it
	resp, err := b.client.Build(ctx, opt, "imgforge", func(ctx context.Context, gw gateway.Client) (*gateway.Result, error) {
		var res *gateway.Result
		res, failed = build(ctx, gw)
		return res, failed
	}, events)
	<-done
	if err != nil {
		return nil, watch.explain(ctx, cmp.Or(failed, err))
	}
	return resp, nil
}

// readImage reads back what the exporter wrote.
func readImage(ctx context.Context, out content.Store, resp map[string]string) (Image, error) {
	var img Image
	raw, err := decodeDescriptor(resp)
	if err != nil {
		return img, err
	}
	img.Manifest = raw
	data, err := content.ReadBlob(ctx, out, raw)
	if err != nil {
		return img, fmt.Errorf("cannot read back the manifest: %w", err)
	}
	var m ocispecs.Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return img, fmt.Errorf("cannot read back the manifest: %w", err)
	}
	if len(m.Layers) == 0 {
		return img, errors.New("the engine exported something that is not a plain image manifest")
	}
	img.Blobs = slices.Concat([]ocispecs.Descriptor{m.Config}, m.Layers)
	return img, nil
}
