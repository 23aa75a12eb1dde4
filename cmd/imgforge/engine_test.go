package main

import (
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/imgforge/imgforge/internal/record"
)

// One state directory has one owner: a second run is told who, and the first
// goes on.
func TestSecondOwner(t *testing.T) {
	w := sleeper(t, "311.5")
	p := startSleeping(t, w)
	r := imgforge(t, small().args("build")...).wants(t, exitInfra)
	if !strings.Contains(r.stderr, "another imgforge (process "+strconv.Itoa(p.cmd.Process.Pid)+")") || !strings.Contains(r.stderr, "--state") {
		t.Errorf("the owner and the way out are not named:\n%s", r.stderr)
	}
	if len(running("sleep 311.5")) == 0 {
		t.Error("the first run's step has ended")
	}
	p.signal(t, p.cmd.Process.Pid, syscall.SIGTERM)
	p.result(t).wants(t, exitInfra)
	nothingLeft(t, w, "sleep 311.5")
}

// Ctrl-C ends the run, the engine and the step, and says that nothing is lost.
func TestInterrupt(t *testing.T) {
	w := sleeper(t, "312.5")
	p := startSleeping(t, w)
	engine := p.engine(t)
	p.signal(t, p.cmd.Process.Pid, syscall.SIGINT)
	r := p.result(t).wants(t, exitInfra)
	if reason := failedAs(t, rows(t, r), cellA, record.ClassCancel); !strings.Contains(reason, "goes on from here") {
		t.Errorf("it does not say that the build can be resumed: %q", reason)
	}
	if !ended(engine) {
		t.Error("buildkitd outlives imgforge")
	}
	nothingLeft(t, w, "sleep 312.5")
	worksAgain(t)
}

// An engine that dies ends its cells as such, and the next run starts another.
func TestEngineKilled(t *testing.T) {
	w := sleeper(t, "313.5")
	p := startSleeping(t, w)
	p.signal(t, p.engine(t), syscall.SIGKILL)
	r := p.result(t).wants(t, exitInfra)
	failedAs(t, rows(t, r), cellA, record.ClassEngine)
	nothingLeft(t, w, "sleep 313.5")
	worksAgain(t)
}

// When imgforge is killed, its engine ends by itself and leaves nothing.
func TestProgramKilled(t *testing.T) {
	w := sleeper(t, "314.5")
	p := startSleeping(t, w)
	engine := p.engine(t)
	p.signal(t, p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.done
	until(t, "buildkitd to end by itself", func() bool { return ended(engine) })
	nothingLeft(t, w, "sleep 314.5")
	worksAgain(t)
}

// What cannot start an engine says what is missing.
func TestNoEngine(t *testing.T) {
	w := locked(t)
	w.state = t.TempDir()
	r := call(t, append(environ(), "IMGFORGE_BUILDKITD=/bin/false"), w.args("build")...).wants(t, exitInfra)
	if !strings.Contains(r.stderr, "buildkitd ended at once") {
		t.Errorf("stderr:\n%s", tail(r.stderr, 20))
	}
	r = call(t, append(environ(), "IMGFORGE_RUNC=/bin/true"), w.args("build")...).wants(t, exitInfra)
	if !strings.Contains(r.stderr, "/bin/true is neither runc nor crun") {
		t.Errorf("stderr:\n%s", tail(r.stderr, 20))
	}
	r = imgforge(t, w.args("build", "--builder", "unix://"+w.state+"/none.sock")...).wants(t, exitInfra)
	if !strings.Contains(r.stderr, "does not answer") || !strings.Contains(r.stderr, "none.sock") {
		t.Errorf("stderr:\n%s", tail(r.stderr, 20))
	}
}

// When both are killed at once, nobody is left to tidy up but the next run.
func TestBothKilled(t *testing.T) {
	w := sleeper(t, "315.5")
	p := startSleeping(t, w)
	engine := p.engine(t)
	p.signal(t, p.cmd.Process.Pid, syscall.SIGSTOP) // or it would tidy up after the other
	p.signal(t, engine, syscall.SIGKILL)
	p.signal(t, p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.done
	worksAgain(t)
	nothingLeft(t, w, "sleep 315.5")
}
