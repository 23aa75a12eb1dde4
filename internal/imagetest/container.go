package imagetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Container is an unpacked image in which commands run, with no network.
type Container struct {
	Root  string   // its root file system
	Env   []string // the image's
	Dir   string   // the image's working directory
	Mount string   // a directory of the host, seen read-only at /mnt; may be empty

	bundles string
	count   atomic.Int32
}

// Result is what a command printed and how it ended.
type Result struct {
	Stdout, Stderr string
	Code           int
}

// Unpack extracts an image into a directory of the test.
func Unpack(t testing.TB, i *Image, mount string) *Container {
	t.Helper()
	dir := t.TempDir()
	c := &Container{
		Root: filepath.Join(dir, "root"), Env: i.Config.Config.Env, Dir: i.Config.Config.WorkingDir,
		Mount: mount, bundles: filepath.Join(dir, "bundles"),
	}
	i.Extract(t, c.Root)
	return c
}

// Run runs a command as a user, with variables added to the image's.
func (c *Container) Run(t testing.TB, uid uint32, env []string, args ...string) Result {
	t.Helper()
	id := fmt.Sprintf("imgforge-%d-%d", os.Getpid(), c.count.Add(1))
	bundle := filepath.Join(c.bundles, id)
	must(t, os.MkdirAll(bundle, 0o755))
	data, err := json.Marshal(c.spec(uid, env, args))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(bundle, "config.json"), data, 0o644))
	cmd := exec.CommandContext(t.Context(), "runc", "--root", filepath.Join(c.bundles, "state"), "run", "--bundle", bundle, id)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("runc: %v", err)
	}
	return Result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// Output runs a command that must end well and returns what it printed.
func (c *Container) Output(t testing.TB, uid uint32, args ...string) string {
	t.Helper()
	r := c.Run(t, uid, nil, args...)
	if r.Code != 0 {
		t.Fatalf("%s: exit code %d\n%s%s", strings.Join(args, " "), r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// capabilities are what docker gives a container.
var capabilities = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_MKNOD", "CAP_SETGID", "CAP_SETUID",
	"CAP_SETFCAP", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_KILL",
}

func (c *Container) spec(uid uint32, env, args []string) *specs.Spec {
	s := &specs.Spec{
		Version:  "1.0.2",
		Root:     &specs.Root{Path: c.Root},
		Hostname: "container",
		Process: &specs.Process{
			User: specs.User{UID: uid, GID: uid}, Cwd: c.Dir, Args: args,
			Env:             append(slices.Clone(c.Env), env...),
			NoNewPrivileges: true,
			Capabilities:    &specs.LinuxCapabilities{},
		},
		Mounts: []specs.Mount{
			{Destination: "/proc", Type: "proc", Source: "proc"},
			{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "mode=755"}},
			{Destination: "/dev/shm", Type: "tmpfs", Source: "shm"},
			{Destination: "/tmp", Type: "tmpfs", Source: "tmpfs", Options: []string{"mode=1777"}},
		},
		Linux: &specs.Linux{},
	}
	if uid == 0 {
		s.Process.Capabilities = &specs.LinuxCapabilities{Bounding: capabilities, Effective: capabilities, Permitted: capabilities}
	}
	for _, kind := range []specs.LinuxNamespaceType{specs.PIDNamespace, specs.MountNamespace, specs.IPCNamespace, specs.UTSNamespace, specs.NetworkNamespace} {
		s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: kind})
	}
	if c.Mount != "" {
		s.Mounts = append(s.Mounts, specs.Mount{Destination: "/mnt", Type: "bind", Source: c.Mount, Options: []string{"bind", "ro"}})
	}
	return s
}
