package graph

import (
	"maps"
	"path"
	"slices"
	"time"

	"github.com/moby/buildkit/client/llb"

	"github.com/imgforge/imgforge/internal/plan"
)

// Command is one command in a Debian container, for resolving a lock. It is the
// only thing here that may have a network.
type Command struct {
	Name    string
	Root    *plan.Plan           // its base and .debs, Epoch and Platform make the root
	Files   map[string][]byte    // by path under /in
	Blobs   map[string]plan.Blob // by path under /in
	Args    []string
	Env     []string // NAME=value
	Network bool     // also: run it each time, whatever the cache holds
	Secrets []string // ids, mounted as files in /run/secrets
	Proxy   llb.ProxyEnv
}

// Compile lowers the command; the state holds what it left in /out.
func (cmd Command) Compile(in Inputs) llb.State {
	c := &compiler{plan: cmd.Root, in: in}
	exec := c.offline
	if cmd.Network {
		exec = c.exec
	}
	opts := exec(cmd.Name, cmd.Args, llb.AddMount("/in", cmd.input(c), llb.Readonly))
	for _, kv := range cmd.Env {
		name, value := cut(kv)
		opts = append(opts, llb.AddEnv(name, value))
	}
	if cmd.Network {
		opts = append(opts, llb.Network(llb.NetModeSandbox), llb.IgnoreCache, llb.WithProxy(cmd.Proxy))
	}
	for _, id := range cmd.Secrets {
		opts = append(opts, llb.AddSecret("/run/secrets/"+id, llb.SecretID(id)))
	}
	root := c.root()
	if len(c.plan.Debs) > 0 {
		root = c.debs(root)
	}
	return root.Run(opts...).AddMount("/out", llb.Scratch())
}

// input lays out /in.
func (cmd Command) input(c *compiler) llb.State {
	when := llb.WithCreatedTime(time.Unix(c.plan.Epoch, 0).UTC())
	small := llb.Mkdir("/", 0o755, when)
	made := map[string]bool{"/": true}
	for _, name := range slices.Sorted(maps.Keys(cmd.Files)) {
		for _, dir := range parents(path.Join("/", name)) {
			if !made[dir] {
				small = small.Mkdir(dir, 0o755, when)
				made[dir] = true
			}
		}
		small = small.Mkfile(path.Join("/", name), 0o644, cmd.Files[name], when)
	}
	states := []llb.State{llb.Scratch().File(small, llb.WithCustomName(cmd.Name+": input"))}
	for _, name := range slices.Sorted(maps.Keys(cmd.Blobs)) {
		b := cmd.Blobs[name]
		states = append(states, llb.Scratch().File(
			llb.Copy(c.in.Blob(b), b.Name, path.Join("/", name), &llb.CopyInfo{CreateDestPath: true}),
			llb.WithCustomName(cmd.Name+": input "+b.Name)))
	}
	if len(states) == 1 {
		return states[0]
	}
	return llb.Merge(states, llb.WithCustomName(cmd.Name+": inputs"))
}
