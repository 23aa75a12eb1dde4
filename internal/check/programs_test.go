package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// trial is a built-in's program in an environment of stand-ins.
type trial struct {
	name    string
	with    string            // options: "floor=525.60.13 gpu=A100"
	has     string            // stand-ins that are there: modules, and nvidia-smi
	fake    string            // what they do, as JSON without its braces: see testdata/fake
	dists   []string          // distributions: "name version", then what each requires, after semicolons
	files   map[string]string // into site-packages
	env     []string
	prepare string   // shell that runs first, in a mount namespace of its own
	says    []string // all in one problem with its meaning and what to do; nil: it passes
	more    int      // problems beside that one; -1: any
}

// try runs trials of one check, each beside the others.
func try(t *testing.T, check string, trials []trial) {
	t.Helper()
	for _, c := range trials {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.judge(t, c.run(t, check))
		})
	}
}

// run is the program, as an image would run it, and its result.
func (c trial) run(t *testing.T, check string) Result {
	t.Helper()
	with := map[string]string{}
	for option := range strings.FieldsSeq(c.with) {
		name, value, _ := strings.Cut(option, "=")
		with[name] = strings.ReplaceAll(value, "_", " ")
	}
	args, err := Program(check, with)
	if err != nil {
		t.Fatal(err)
	}
	dir := c.environment(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if c.prepare != "" {
		args = append([]string{"sh", "-euc", c.prepare + "\n" + `exec "$@"`, "prepare"}, args...)
	}
	cmd := exec.CommandContext(ctx, "/usr/bin/env", args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Dir = &stdout, &stderr, filepath.Join(dir, "workspace")
	cmd.Env = append([]string{"PATH=" + dir + "/bin", "HOME=" + dir + "/home", "FAKE={" + c.fake + "}", "TEST_DIR=" + dir}, c.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if c.prepare != "" {
		cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS
	}
	cmd.WaitDelay = time.Second // what it leaves running holds standard error
	err = cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // its own group; mostly gone
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		t.Fatal(err)
	}
	if stdout.Len() > 0 && bytes.Count(stdout.Bytes(), []byte("\n")) != 1 {
		t.Errorf("more than a line on standard output:\n%s", stdout.String())
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("standard error:\n%s", stderr.String())
		}
	})
	return Check{Use: check, Timeout: time.Minute}.Judge(Output{Exit: cmd.ProcessState.ExitCode(), Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), TimedOut: ctx.Err() != nil})
}

func (c trial) judge(t *testing.T, got Result) {
	t.Helper()
	if c.says == nil {
		if !got.OK {
			t.Errorf("it fails: %+v", got)
		}
		return
	}
	found := false
	for _, p := range got.Problems {
		text, all := fmt.Sprintf("%s | %s | %s", p.Problem, p.Meaning, strings.Join(p.Do, "; ")), true
		for _, want := range c.says {
			all = all && strings.Contains(text, want)
		}
		found = found || all
	}
	if got.OK || !found {
		t.Errorf("ok: %t; no problem says %q:\n%+v", got.OK, c.says, got.Problems)
	}
	if found && c.more >= 0 && len(got.Problems) != 1+c.more {
		t.Errorf("%d problems, not %d:\n%+v", len(got.Problems), 1+c.more, got.Problems)
	}
}

// environment makes a virtual environment without pip, as images have it, from
// Debian's Python and stand-ins alone.
func (c trial) environment(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	site := filepath.Join(dir, "lib", python(t), "site-packages")
	err := errors.Join(os.Mkdir(filepath.Join(dir, "bin"), 0o755), os.Mkdir(filepath.Join(dir, "workspace"), 0o755), os.Mkdir(filepath.Join(dir, "home"), 0o755),
		os.MkdirAll(site, 0o755), os.Symlink("/usr/bin/python3", filepath.Join(dir, "bin", "python3")))
	write := func(path, text string) {
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755))
	}
	write(filepath.Join(dir, "pyvenv.cfg"), "home = /usr/bin\ninclude-system-site-packages = false\n")
	fakes, absErr := filepath.Abs("testdata/fake")
	err = errors.Join(err, absErr)
	for name := range strings.FieldsSeq("fakes.py " + c.has) {
		from, into := filepath.Join(fakes, name), site
		switch name {
		case "nvidia-smi", "cc":
			into = filepath.Join(dir, "bin")
		case "pip":
			from = pip(t)
		case "gcc", "jupyter-lab":
			from, into = "/bin/true", filepath.Join(dir, "bin")
		}
		err = errors.Join(err, os.Symlink(from, filepath.Join(into, name)))
	}
	for _, dist := range c.dists {
		parts := strings.Split(dist, "; ")
		name, version, _ := strings.Cut(parts[0], " ")
		meta := "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n"
		for _, requirement := range parts[1:] {
			meta += "Requires-Dist: " + strings.ReplaceAll(requirement, " @ ", "; ") + "\n"
		}
		write(filepath.Join(site, strings.ReplaceAll(name, "-", "_")+"-"+version+".dist-info", "METADATA"), meta)
	}
	for path, text := range c.files {
		write(filepath.Join(site, path), text)
	}
	for d := dir; len(d) > len(os.TempDir()); d = filepath.Dir(d) { // other users may enter
		err = errors.Join(err, os.Chmod(d, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// python is the directory of Debian's Python below lib.
var pythonOnce = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("/usr/bin/python3", "-c", `import sys; print("python%d.%d" % sys.version_info[:2])`).Output()
	return strings.TrimSpace(string(out)), err
})

func python(t *testing.T) string {
	t.Helper()
	name, err := pythonOnce()
	if err != nil {
		t.Fatalf("%v (`make setup` installs what tests need)", err)
	}
	return name
}
