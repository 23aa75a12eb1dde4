package graph

import (
	_ "embed"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/moby/buildkit/client/llb"

	"github.com/imgforge/imgforge/internal/check"
)

//go:embed files/smoke.sh
var smokeScript []byte

// Smoke is one program run in a finished image, as its user would run it: with the
// environment, user and directory of its configuration, and without a network.
type Smoke struct {
	Exec    check.Exec
	Env     []string // of the image's configuration
	User    string   // of the image's configuration
	Dir     string   // of the image's configuration
	Devices []string // CDI names of the GPUs, for a program that needs them
	Nonce   string   // another one each time: what ran before does not count
}

// SmokeOut is where the program's files stand in what Compile gives: exit, stdout,
// stdout.end, stderr, stderr.end.
const SmokeOut = "/out"

// shm is /dev/shm beside a GPU, in bytes: NCCL and loaders of data share memory.
const shm = 2 << 30

// Compile runs the program on the image; the state holds SmokeOut.
func (s Smoke) Compile(image llb.State) llb.State {
	half := strconv.Itoa(check.OutputLimit / 2)
	seconds := strconv.FormatFloat(s.Exec.Timeout.Seconds(), 'f', -1, 64)
	tools := llb.Scratch().File(llb.Mkfile("/smoke.sh", 0o644, smokeScript, llb.WithCreatedTime(time.Unix(0, 0))), llb.WithCustomName("script: smoke.sh"))
	out := llb.Scratch().File(llb.Mkdir(SmokeOut, 0o777), llb.WithCustomName("check: output"))
	opts := []llb.RunOption{
		llb.Args(untraced(append([]string{"sh", "/imgforge/smoke.sh", half, seconds}, s.Exec.Args...))),
		llb.WithCustomName("check: " + s.Exec.Name),
		llb.Network(llb.NetModeNone),
		llb.Hostname(hostname),
		llb.AddMount("/imgforge", tools, llb.Readonly),
		llb.AddEnv("IMGFORGE_NONCE", s.Nonce),
		llb.IgnoreCache,
	}
	path := systemPath
	for _, kv := range append(append([]string{}, s.Env...), s.Exec.Env...) {
		name, value := cut(kv)
		if name == "PATH" {
			path = value
			continue
		}
		opts = append(opts, llb.AddEnv(name, value))
	}
	opts = append(opts, llb.AddEnv("PATH", path), llb.Dir(s.dir()))
	if user := s.user(); user != "" {
		opts = append(opts, llb.User(user))
	}
	if s.Exec.GPU {
		opts = append(opts, llb.AddMount("/dev/shm", llb.Scratch(), llb.Tmpfs(llb.TmpfsSize(shm))))
		for _, name := range s.Devices {
			opts = append(opts, llb.AddCDIDevice(llb.CDIDeviceName(name)))
		}
	}
	return image.Run(opts...).AddMount(SmokeOut, out, llb.SourcePath(SmokeOut))
}

func (s Smoke) dir() string {
	if path.IsAbs(s.Dir) {
		return s.Dir
	}
	return "/" + strings.TrimPrefix(s.Dir, "/")
}

func (s Smoke) user() string {
	if s.Exec.User != "" {
		return s.Exec.User
	}
	return s.User
}
