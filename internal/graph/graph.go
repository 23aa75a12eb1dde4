// Package graph compiles a plan to BuildKit LLB and an image configuration. It
// decides nothing: every byte is named by the plan, every exec is offline, and
// equal plans give equal ops.
package graph

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moby/buildkit/client/llb"
	"github.com/moby/buildkit/solver/pb"

	"github.com/imgforge/imgforge/internal/plan"
)

// Source gives a state that holds the blob as a file, under its name, at the root.
type Source func(plan.Blob) llb.State

// Inputs is what a plan does not say: where bytes come from.
type Inputs struct {
	Blob      Source
	Image     func(*plan.Image) llb.State // a base image, its layers as they are
	Bootstrap plan.Blob                   // root tar made of the base's .debs or tarball
	Sources   map[string][]byte           // recipe files by name, to show the line that failed
}

// Graph is an image as BuildKit builds it.
type Graph struct {
	State  llb.State
	Config []byte // OCI image configuration, without rootfs
	Layers int    // layers the image will have
}

// MaxLayers is the most layers an image may have; container engines give up at 127.
const MaxLayers = 100

var (
	//go:embed files/base.sh
	baseScript []byte
	//go:embed files/debs.sh
	debsScript []byte
	//go:embed files/finish.sh
	finishScript []byte
	//go:embed files/strip.sh
	stripScript []byte
	//go:embed files/venv.sh
	venvScript []byte
	//go:embed files/wheel.py
	wheelScript []byte
)

// compiler is one compilation: the plan, the inputs, and the layers so far.
type compiler struct {
	plan   *plan.Plan
	in     Inputs
	layers []string // what made each layer, base first: the image's history
}

// Compile lowers p. It fails only when the image would have too many layers.
func Compile(p *plan.Plan, in Inputs) (*Graph, error) {
	c := &compiler{plan: p, in: in}
	base := c.base()
	root := base
	if len(p.Debs) > 0 {
		root = c.layer(c.debs(base), "apt: "+strconv.Itoa(len(p.Debs))+" .debs")
	}
	if p.Python3 != nil {
		base = root // its Python may be one of the .debs
	}
	parts := []llb.State{root}
	if len(p.Wheels) > 0 {
		parts = append(parts, c.layer(c.venv(base), "venv: /opt/venv"))
	}
	for _, w := range p.Wheels {
		parts = append(parts, c.layer(c.wheels(base, w), "wheels: "+w.Name))
	}
	for _, s := range p.Steps {
		if len(s.Files) > 0 {
			parts = append(parts, c.layer(c.files(s), "recipe: "+s.Recipe))
		}
	}
	image := parts[0]
	if len(parts) > 1 {
		image = llb.Merge(parts, llb.WithCustomName("merge layers"))
	}
	for _, s := range p.Steps {
		for _, r := range s.Run {
			image = c.layer(c.run(image, s, r), "recipe: "+s.Recipe+": "+r.Name)
		}
	}
	if len(c.layers) > MaxLayers {
		return nil, fmt.Errorf("%s: %d layers, more than the %d an image may have; list fewer recipes", p.Tag, len(c.layers), MaxLayers)
	}
	config, err := imageConfig(p, c.layers)
	if err != nil {
		return nil, err
	}
	return &Graph{State: image, Config: config, Layers: len(c.layers)}, nil
}

// base is the root that all else goes on, without what the image must not have.
func (c *compiler) base() llb.State {
	p := c.plan
	root := c.root()
	switch {
	case p.Image != nil:
		for n := range p.Image.Layers() {
			c.layer(root, fmt.Sprintf("base: %s@%s: layer %d", p.Image.Repository, p.Image.Digest(), n+1))
		}
	case p.Rootfs != nil:
		c.layer(root, "base: "+p.Rootfs.Name)
	default:
		c.layer(root, "base: "+strconv.Itoa(len(p.Base))+" .debs")
	}
	if p.Image != nil && len(p.Strip) > 0 {
		return c.layer(c.strip(root), "base: hide "+strings.Join(p.Strip, " "))
	}
	return root
}

// root is the base's file system: an image as it is; else one layer, squashed.
func (c *compiler) root() llb.State {
	if c.plan.Image != nil {
		return c.in.Image(c.plan.Image)
	}
	unpacked := llb.Scratch().File(llb.Copy(c.in.Blob(c.in.Bootstrap), c.in.Bootstrap.Name, "/", &llb.CopyInfo{
		AttemptUnpack: true, CreateDestPath: true,
	}), llb.WithCustomName("base: unpack"))
	configured := c.configure(unpacked)
	return llb.Scratch().File(llb.Copy(configured, "/", "/", &llb.CopyInfo{CopyDirContentsOnly: true}),
		llb.WithCustomName("base: one layer"))
}

// configure lets dpkg install every package properly; in a tarball someone's dpkg
// has done so.
func (c *compiler) configure(unpacked llb.State) llb.State {
	if c.plan.Rootfs != nil {
		return c.strip(unpacked)
	}
	return unpacked.Run(c.offline("base: configure", []string{"sh", "/imgforge/base.sh"},
		c.script("base.sh", baseScript), c.debMount(c.plan.Base))...).Root()
}

// strip removes paths of the base, where they are, and what differs from machine
// to machine.
func (c *compiler) strip(root llb.State) llb.State {
	return root.Run(c.offline("base: hide what the image must not have", append([]string{"sh", "/imgforge/strip.sh"}, c.plan.Strip...),
		c.script("strip.sh", stripScript))...).Root()
}

func (c *compiler) debs(base llb.State) llb.State {
	return base.Run(c.offline("apt: install", []string{"sh", "/imgforge/debs.sh"},
		c.script("debs.sh", debsScript), c.debMount(c.plan.Debs))...).Root()
}

func (c *compiler) venv(base llb.State) llb.State {
	args := []string{"sh", "/imgforge/venv.sh", c.python()}
	if p := c.plan.Python3; p != nil && p.Keep {
		args = append(args, "--system-site-packages")
	}
	run := base.Run(c.offline("venv: create", args, c.script("venv.sh", venvScript))...)
	return run.AddMount("/out", llb.Scratch())
}

// wheels installs a layer's wheels from a read-only mount to a scratch mount, so
// that the layer holds their files and nothing else.
func (c *compiler) wheels(base llb.State, l plan.Layer) llb.State {
	args := []string{c.python(), "/imgforge/wheel.py", "/out", strconv.FormatInt(c.plan.Epoch, 10)}
	for _, w := range l.Wheels {
		args = append(args, "/wheels/"+w.Name)
	}
	run := base.Run(c.offline("wheels: "+l.Name, args,
		c.script("wheel.py", wheelScript),
		llb.AddMount("/wheels", c.gather(l.Wheels, "wheels: "+l.Name), llb.Readonly),
		llb.AddMount("/tools", c.gather(c.plan.Tools, "tools"), llb.Readonly),
		llb.AddEnv("PYTHONPATH", toolPath(c.plan.Tools)),
		llb.ReadonlyRootFS(),
	)...)
	return run.AddMount("/out", llb.Scratch())
}

// python is the interpreter that the environment is made with.
func (c *compiler) python() string {
	if c.plan.Python3 != nil {
		return c.plan.Python3.Path
	}
	return "python3"
}

// toolPath puts wheels on sys.path as they are: a wheel of pure Python is a zip.
func toolPath(tools []plan.Blob) string {
	paths := make([]string, len(tools))
	for i, t := range tools {
		paths[i] = "/tools/" + t.Name
	}
	return strings.Join(paths, ":")
}

// files writes a recipe's files to an empty layer, parents first.
func (c *compiler) files(s plan.Step) llb.State {
	when := llb.WithCreatedTime(time.Unix(c.plan.Epoch, 0).UTC())
	action := llb.Mkdir("/", 0o755, when) // there already; a start to chain from
	made := map[string]bool{"/": true}
	mkdir := func(dir string, mode uint32) {
		if !made[dir] {
			action = action.Mkdir(dir, fileMode(mode), when)
			made[dir] = true
		}
	}
	files := slices.SortedStableFunc(slices.Values(s.Files), func(a, b plan.File) int { return cmp.Compare(a.Path, b.Path) })
	for _, f := range files {
		for _, dir := range parents(f.Path) {
			mkdir(dir, parentMode(dir))
		}
		switch {
		case f.Dir:
			mkdir(f.Path, f.Mode)
		case f.Link != "":
			action = action.Symlink(f.Link, f.Path, when)
		default:
			action = action.Mkfile(f.Path, fileMode(f.Mode), f.Content, when)
		}
	}
	tree := llb.Scratch().File(action, llb.WithCustomName("recipe: "+s.Recipe))
	// Writing into a directory moves its time; copying sets all of them at last.
	epoch := time.Unix(c.plan.Epoch, 0).UTC()
	return llb.Scratch().File(llb.Copy(tree, "/", "/", &llb.CopyInfo{CopyDirContentsOnly: true, CreatedTime: &epoch}),
		llb.WithCustomName("recipe: "+s.Recipe+": set times"))
}

// run executes one recipe command on the whole image and cleans up behind it.
func (c *compiler) run(image llb.State, s plan.Step, r plan.Run) llb.State {
	script := "set -eu\n" + r.Command + "\n"
	opts := c.offline("recipe: "+s.Recipe+": "+r.Name, []string{"sh", "-c", "sh /imgforge/run.sh && exec sh /imgforge/finish.sh"},
		c.script("run.sh", []byte(script)), llb.AddEnv("PATH", pathOf(c.plan)))
	if data, ok := c.in.Sources[r.Pos.File]; ok && r.Pos.Line > 0 {
		at := pb.Position{Line: int32(r.Pos.Line)}
		opts = append(opts, llb.NewSourceMap(nil, r.Pos.File, "yaml", data).Location([]*pb.Range{{Start: &at, End: &at}}))
	}
	return image.Run(opts...).Root()
}

// script mounts a script, and the clean-up every script ends with, at /imgforge.
func (c *compiler) script(name string, content []byte) llb.RunOption {
	when := llb.WithCreatedTime(time.Unix(c.plan.Epoch, 0).UTC())
	dir := llb.Scratch().File(llb.Mkfile("/"+name, 0o644, content, when).
		Mkfile("/finish.sh", 0o644, finishScript, when), llb.WithCustomName("script: "+name))
	return llb.AddMount("/imgforge", dir, llb.Readonly)
}

func (c *compiler) debMount(debs []plan.Blob) llb.RunOption {
	return llb.AddMount("/debs", c.gather(debs, "debs"), llb.Readonly)
}

// gather puts blobs into one directory.
func (c *compiler) gather(blobs []plan.Blob, name string) llb.State {
	states := make([]llb.State, len(blobs))
	for i, b := range blobs {
		states[i] = c.in.Blob(b)
	}
	if len(states) == 1 {
		return states[0]
	}
	return llb.Merge(states, llb.WithCustomName("gather "+name))
}

// layer notes what the next layer of the image is made of.
func (c *compiler) layer(s llb.State, what string) llb.State {
	c.layers = append(c.layers, what)
	return s
}

// parents lists the directories above p, outermost first, without the root.
func parents(p string) []string {
	var dirs []string
	for dir := path.Dir(p); dir != "/" && dir != "."; dir = path.Dir(dir) {
		dirs = append([]string{dir}, dirs...)
	}
	return dirs
}

// Marshal turns the graph into a definition for one platform.
func (g *Graph) Marshal(ctx context.Context, p *plan.Plan) (*llb.Definition, error) {
	return g.MarshalFor(ctx, p.Platform)
}

// MarshalFor is Marshal where there is no plan.
func (g *Graph) MarshalFor(ctx context.Context, platform string) (*llb.Definition, error) {
	return g.State.Marshal(ctx, platformOf(platform))
}
