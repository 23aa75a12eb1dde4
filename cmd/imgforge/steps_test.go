package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/imgforge/imgforge/internal/imagetest"
	"github.com/imgforge/imgforge/internal/record"
)

// A step of a recipe that tries the network reaches nothing: not this machine's
// loopback, not the engine's own server of blobs, not an address outside.
func TestStepsHaveNoNetwork(t *testing.T) {
	w := locked(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var calls atomic.Int32
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			calls.Add(1)
			conn.Close()
		}
	}()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	// The step fails if it finds a network, and says in the image what it found.
	w = w.with(t, "prober", `driver: ">=525.60.13"`, `
files:
  - path: /usr/local/bin/probe
    from: files/probe.py
    mode: "0755"
run:
  - name: try the network
    run: python /usr/local/bin/probe `+port+`
`, "files/probe.py")
	r := imgforge(t, w.args("build", "--only", "driver=525", "--json")...)
	if r.code != exitDone {
		t.Fatalf("the step found a network, or could not run:\n%s\n%s", r.stdout, tail(r.stderr, 40))
	}
	if n := calls.Load(); n > 0 {
		t.Errorf("the host's loopback saw %d connections", n)
	}
	if !strings.Contains(r.stderr, "probed 4 addresses, reached none") {
		t.Errorf("the step did not say that it tried:\n%s", tail(r.stderr, 60))
	}
}

// A step that fails is shown with the line it was written on and the end of what
// it printed; cells without it are built.
func TestFailingStep(t *testing.T) {
	w := locked(t).with(t, "broken", `tqdm: "4.66.5"`, `run:
  - name: works
    run: "true"
  - name: breaks
    run: |
      echo this went well
      echo but this did not >&2
      exit 7
`)
	r := imgforge(t, w.args("build", "--only", "driver=535", "--json")...).wants(t, exitCheck)
	all := rows(t, r)
	reason := failedAs(t, all, cellC, record.ClassBuild)
	where := regexp.MustCompile(regexp.QuoteMeta(filepath.Dir(w.matrix)) + `/recipes/broken\.yaml:(\d+)`).FindStringSubmatch(reason)
	text, err := os.ReadFile(filepath.Join(filepath.Dir(w.matrix), "recipes", "broken.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	var line int
	if where == nil {
		t.Errorf("no file and line in %q", reason)
	} else if fmt.Sscan(where[1], &line); !strings.Contains(strings.Join(lines[line-1:line+1], "\n"), "breaks") && !strings.Contains(lines[line-1], "run: |") {
		t.Errorf("line %d is %q, want that of the step that breaks", line, lines[line-1])
	}
	for _, want := range []string{"recipe: broken: breaks", "exit code: 7", "| this went well", "| but this did not"} {
		if !strings.Contains(reason, want) {
			t.Errorf("no %q in %q", want, reason)
		}
	}
	if digest := digests(all)[cellB]; digest == "" {
		t.Errorf("%s was not built though its steps are fine: %+v", cellB, all)
	}
}

// Who edits a recipe and forgets the lock is told which, and nothing is built.
func TestStaleLock(t *testing.T) {
	w := locked(t).with(t, "extra", "", "env: {EXTRA: \"1\"}\n")
	path := filepath.Join(filepath.Dir(w.matrix), "recipes", "extra.yaml")
	if err := os.WriteFile(path, []byte("name: extra\nsummary: a test's own\nenv: {EXTRA: \"2\"}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := imgforge(t, w.args("build", "--json")...).wants(t, exitInput)
	for _, cell := range []string{cellA, cellB, cellC} {
		if reason := failedAs(t, rows(t, r), cell, record.ClassPlan); !strings.Contains(reason, "extra") {
			t.Errorf("the recipe is not named: %q", reason)
		}
	}
	if strings.Contains(r.stderr, "start the engine") {
		t.Error("an engine was started for nothing")
	}
}

// docker/buildx#414, #3878: what cells share is run once, also when they are built
// at the same time. The step writes other bytes each time it runs, so cells that
// have it in common have the same bytes only if it ran for one of them.
func TestSharedStepRunsOnce(t *testing.T) {
	w := locked(t).with(t, "chance", "", `run:
  - name: throw dice
    run: od -An -N16 -tx1 /dev/urandom > /dice
`)
	imgforge(t, w.args("build", "--json", "--jobs", "3")...).wants(t, exitDone)
	images := imagetest.Open(t, w.dist)
	dice := func(tag string) string {
		img := imagetest.Find(t, images, tag)
		for i, h := range img.Config.History {
			if h.CreatedBy == "recipe: chance: throw dice" {
				return img.LayerDigests()[i]
			}
		}
		t.Fatalf("%s has no such step: %+v", tag, img.Config.History)
		return ""
	}
	if a, b := dice(cellA), dice(cellB); a != b {
		t.Errorf("two cells that share a step have %s and %s: it ran twice", a, b)
	}
	if b, c := dice(cellB), dice(cellC); b == c {
		t.Error("the dice show the same twice, so this test shows nothing")
	}
}
