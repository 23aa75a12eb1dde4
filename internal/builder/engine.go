// Package builder runs graphs on a BuildKit engine: one that is dialled by URL,
// or a buildkitd of its own that it starts, watches and stops.
package builder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/moby/buildkit/client"
)

// Engine is a running buildkitd child. It owns its state directory until closed.
type Engine struct {
	Addr string // unix:// address of its private socket
	Log  string // path of its log

	cmd    *exec.Cmd
	done   chan struct{} // closed when the child has ended
	exit   error         // how it ended; read only after done
	lock   *flock.Flock
	socket string
	budget int64
}

// Paths names the programs an engine is made of; empty fields are looked up.
type Paths struct {
	Buildkitd string // beside imgforge, then on PATH
	Runc      string // beside imgforge, then on PATH

	Budget int64 // bytes its cache may take; 0 for BuildKit's own limits
}

// ErrNoEngine is wrapped when no engine can be started here at all: the cure is
// to install something or to name an engine elsewhere.
var ErrNoEngine = errors.New("no build engine")

const elsewhere = "or name an engine elsewhere with --builder URL or BUILDKIT_HOST"

// Start runs a buildkitd whose whole state lies in dir and waits until it
// answers. One directory has one owner at a time.
func Start(ctx context.Context, dir string, paths Paths) (started *Engine, err error) {
	defer func() { err = noRoom(err, "") }()
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("%w: the embedded engine mounts overlayfs and runs containers, which needs root; run as root, %s", ErrNoEngine, elsewhere)
	}
	buildkitd, runc, err := findPrograms(paths)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the engine's state directory: %w", err)
	}
	e := &Engine{Log: filepath.Join(dir, "buildkitd.log"), done: make(chan struct{}), lock: flock.New(lockFile(dir)), budget: paths.Budget}
	if err := e.own(dir); err != nil {
		return nil, err
	}
	if err := e.spawn(dir, buildkitd, runc); err != nil {
		return nil, errors.Join(err, e.lock.Unlock())
	}
	if err := e.ready(ctx); err != nil {
		_ = e.cmd.Process.Kill() // it may not listen to signals yet
		return nil, errors.Join(err, e.Close())
	}
	if err := writeOwner(dir, Owner{PID: os.Getpid(), Engine: e.cmd.Process.Pid, Addr: e.Addr}); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// own takes the directory, or says who has it.
func (e *Engine) own(dir string) error {
	got, err := e.lock.TryLock()
	if err != nil {
		return fmt.Errorf("cannot lock %s: %w", dir, err)
	}
	if !got {
		return fmt.Errorf("%w: another imgforge (process %d) is using %s; wait for it, see `imgforge builder status`, or give this run its own --state directory",
			ErrNoEngine, readOwner(dir).PID, dir)
	}
	return writeOwner(dir, Owner{PID: os.Getpid()})
}

// spawn starts the child with mount and process namespaces of its own, so that
// whatever it mounted and whatever its steps run ends with it, however it ends.
func (e *Engine) spawn(dir, buildkitd, runc string) error {
	if err := e.listenAt(dir); err != nil {
		return err
	}
	config := filepath.Join(dir, "buildkitd.toml")
	if err := os.WriteFile(config, e.config(dir, runc), 0o600); err != nil {
		return err
	}
	tmp := filepath.Join(dir, "tmp") // what a killed engine leaves behind is swept here
	if err := errors.Join(os.RemoveAll(tmp), os.MkdirAll(tmp, 0o700)); err != nil {
		return err
	}
	log, err := os.Create(e.Log)
	if err != nil {
		return fmt.Errorf("cannot write the engine's log: %w", err)
	}
	e.cmd = exec.Command("sh", "-c", `mount -t proc proc /proc && exec "$@"`, "sh", buildkitd, "--config", config)
	e.cmd.Env = slices.Concat(collector, os.Environ(), []string{"TMPDIR=" + tmp})
	e.cmd.Stdout, e.cmd.Stderr = log, log
	e.cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid:      true,            // Ctrl-C is ours to pass on
		Pdeathsig:    syscall.SIGKILL, // the first process of a namespace may ignore any other
		Cloneflags:   syscall.CLONE_NEWPID,
		Unshareflags: syscall.CLONE_NEWNS,
	}
	started := make(chan error)
	go func() {
		// The parent-death signal follows the thread that forked, so keep it.
		runtime.LockOSThread()
		defer log.Close()
		err := e.cmd.Start()
		started <- err
		if err == nil {
			e.exit = e.cmd.Wait()
			close(e.done)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("%w: cannot start %s: %w", ErrNoEngine, buildkitd, err)
	}
	return nil
}

// listenAt picks the socket: in dir, or in a short temporary directory when the
// path would be longer than a unix socket's may be.
func (e *Engine) listenAt(dir string) error {
	e.socket = filepath.Join(dir, "buildkitd.sock")
	if len(e.socket) > 100 {
		short, err := os.MkdirTemp("", "imgforge-")
		if err != nil {
			return err
		}
		e.socket = filepath.Join(short, "buildkitd.sock")
	}
	for _, left := range []string{e.socket, e.traces()} {
		if err := os.Remove(left); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	e.Addr = "unix://" + e.socket
	return nil
}

func (e *Engine) config(dir, runc string) []byte {
	budget := ""
	if e.budget > 0 {
		budget = fmt.Sprintf("  maxUsedSpace = \"%d\"\n", e.budget)
	}
	return fmt.Appendf(nil, `root = %q
[grpc]
  address = [%q]
[otel]
  socketPath = %q
[worker.oci]
  enabled = true
  gc = true
%s  binary = %q
[worker.containerd]
  enabled = false
`, filepath.Join(dir, "root"), e.Addr, e.traces(), budget, runc)
}

// traces is a socket on which steps could reach buildkitd. It gives them one
// where it finds one, so it is removed before the first step.
func (e *Engine) traces() string { return filepath.Join(filepath.Dir(e.socket), "otel.sock") }

// ready waits for the child to answer, or for its end.
func (e *Engine) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	// Plain dials first: a gRPC client that is refused once waits a whole second.
	for {
		conn, err := net.Dial("unix", e.socket)
		if err == nil {
			_ = conn.Close()
			break
		}
		select {
		case <-e.done:
			return fmt.Errorf("%w: buildkitd ended at once (%v); the end of %s:\n%s", ErrNoEngine, e.exit, e.Log, tail(e.Log, 12))
		case <-ctx.Done():
			return e.silent(ctx, context.Cause(ctx))
		case <-time.After(10 * time.Millisecond):
		}
	}
	c, err := client.New(ctx, e.Addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Info(ctx); err != nil {
		return e.silent(ctx, err)
	}
	return os.Remove(e.traces())
}

func (e *Engine) silent(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.DeadlineExceeded) {
		return cause // it was not given the time
	}
	return fmt.Errorf("%w: buildkitd does not answer on %s; see %s: %w", ErrNoEngine, e.Addr, e.Log, err)
}

// Blobs is the directory of the layers and manifests that the engine has made, laid
// out as an OCI layout's blobs/. It is empty where that directory is not known.
func (e *Engine) Blobs() string {
	workers, _ := filepath.Glob(filepath.Join(filepath.Dir(e.Log), "root", "runc-*", "content"))
	if len(workers) != 1 {
		return ""
	}
	return filepath.Join(workers[0], "blobs")
}

// Ended reports whether the child has ended on its own.
func (e *Engine) Ended() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// KeepBudget prunes the cache to its budget. The engine's own collection comes a
// minute after a build, when it has mostly ended.
func (e *Engine) KeepBudget(ctx context.Context) error {
	if e.budget == 0 || e.Ended() {
		return nil
	}
	_, err := PruneCache(ctx, e.Addr, e.budget)
	return err
}

// collector has the engine collect garbage less often: packing layers makes much of
// it and keeps little. What the environment says of it comes later and wins.
var collector = []string{"GOGC=400", "GOMEMLIMIT=1GiB"}

// Close stops the child, politely and then not, and gives the directory back.
func (e *Engine) Close() error {
	if e.cmd.Process != nil && !e.Ended() {
		_ = e.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-e.done:
		case <-time.After(20 * time.Second):
			_ = e.cmd.Process.Kill()
			<-e.done
		}
	}
	_, _ = os.Remove(e.socket), os.Remove(e.traces())
	if dir := filepath.Dir(e.socket); strings.HasPrefix(filepath.Base(dir), "imgforge-") {
		_ = os.Remove(dir)
	}
	return e.lock.Unlock()
}

// tail returns the last n lines of a file.
func tail(path string, n int) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > 64<<10 {
		_, _ = f.Seek(-64<<10, io.SeekEnd)
	}
	data, _ := io.ReadAll(f)
	lines := bytes.Split(bytes.TrimRight(data, "\n"), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-n):], []byte("\n")))
}
