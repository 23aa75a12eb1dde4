package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// process is a running imgforge, the real program.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr *syncBuffer
	done           chan struct{}
}

// start runs the real program; wrap may put another command before it.
func start(t *testing.T, wrap []string, env []string, args ...string) *process {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	line := append(append(append([]string{}, wrap...), path), args...)
	p := &process{cmd: exec.Command(line[0], line[1:]...), stdout: &syncBuffer{}, stderr: &syncBuffer{}, done: make(chan struct{})}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = env, p.stdout, p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
	})
	return p
}

// result waits for the end.
func (p *process) result(t *testing.T) result {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(5 * time.Minute):
		t.Fatalf("imgforge does not end:\n%s", tail(p.stderr.String(), 40))
	}
	return result{p.stdout.String(), p.stderr.String(), p.cmd.ProcessState.ExitCode()}
}

// until waits for something, or ends the test.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 1200 {
		if ok() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("gave up waiting for: %s", what)
}

// says waits for the program to print a text on standard error.
func (p *process) says(t *testing.T, text string) {
	t.Helper()
	until(t, "imgforge to say "+text, func() bool {
		select {
		case <-p.done:
			t.Fatalf("imgforge has ended:\n%s\n%s", p.stdout, tail(p.stderr.String(), 40))
		default:
		}
		return strings.Contains(p.stderr.String(), text)
	})
}

// engine is the process of the program's buildkitd.
func (p *process) engine(t *testing.T) int {
	t.Helper()
	for _, pid := range processes() {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		_, rest, _ := bytes.Cut(stat, []byte(") "))
		fields := strings.Fields(string(rest))
		if len(fields) > 1 && fields[1] == strconv.Itoa(p.cmd.Process.Pid) && strings.Contains(commandLine(pid), "buildkitd") {
			return pid
		}
	}
	t.Fatal("imgforge has no buildkitd")
	return 0
}

func processes() (out []int) {
	names, _ := filepath.Glob("/proc/[0-9]*")
	for _, name := range names {
		if pid, err := strconv.Atoi(filepath.Base(name)); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

func commandLine(pid int) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.ReplaceAll(string(data), "\x00", " ")
}

// running lists the processes whose command line holds a text.
func running(text string) (out []string) {
	for _, pid := range processes() {
		if line := commandLine(pid); pid != os.Getpid() && strings.Contains(line, text) {
			out = append(out, fmt.Sprintf("%d: %s", pid, line))
		}
	}
	return out
}

func ended(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return strings.HasPrefix(string(rest), "Z") // its parent does not care
}

// nothingLeft checks that no process and no mount of a state directory is left.
func nothingLeft(t *testing.T, w world, step string) {
	t.Helper()
	until(t, "the step's own process to end: "+strings.Join(running(step), "; "), func() bool { return len(running(step)) == 0 })
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, w.state) {
			t.Errorf("still mounted: %s", line)
		}
	}
	if len(running(w.state)) > 0 {
		t.Errorf("still running: %v", running(w.state))
	}
}

// sleeper is a world whose last step sleeps longer than any test waits; all steps
// before it are built.
func sleeper(t *testing.T, seconds string) world {
	t.Helper()
	w, _ := built(t)
	return w.with(t, "sleeper", "", "run:\n  - name: sleep\n    run: |\n      echo now sleeping\n      exec sleep "+seconds+"\n")
}

// startSleeping runs the program until its step sleeps.
func startSleeping(t *testing.T, w world, more ...string) *process {
	t.Helper()
	p := start(t, nil, environ(), w.args("build", append([]string{"--only", "driver=525", "--json"}, more...)...)...)
	p.says(t, "now sleeping")
	return p
}

// worksAgain checks that the next run on the same state is as good as any.
func worksAgain(t *testing.T) {
	t.Helper()
	w, before := built(t)
	w.dist = filepath.Join(t.TempDir(), "dist")
	r := imgforge(t, w.args("build", "--only", "driver=525", "--json")...).wants(t, exitDone)
	if got, want := rows(t, r)[0].Digest, digests(before)[cellA]; got != want {
		t.Errorf("the next run gives %s, want %s", got, want)
	}
}

func (p *process) signal(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatal(err)
	}
}

// command runs a program and returns what it printed.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(context.WithoutCancel(t.Context()), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}
