package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func readStatus(t *testing.T, w world) builderStatus {
	t.Helper()
	var s builderStatus
	r := imgforge(t, "builder", "status", "--json", "--state", w.state).wants(t, exitDone)
	if err := json.Unmarshal([]byte(r.stdout), &s); err != nil {
		t.Fatalf("%v\n%s", err, r.stdout)
	}
	return s
}

// While a build runs: it is seen, it outlives a prune and a polite stop, and a
// forced stop ends it as Ctrl-C would.
func TestBuilderOfARun(t *testing.T) {
	w := sleeper(t, "318.5")
	p := startSleeping(t, w)
	s := readStatus(t, w)
	if !s.Running || s.Owner.PID != p.cmd.Process.Pid || s.Owner.Engine != p.engine(t) || s.Cache.Builds != 1 || s.Cache.Records == 0 || s.Cache.Version == "" {
		t.Errorf("status %+v, owner %+v, cache %+v", s, s.Owner, s.Cache)
	}
	if s.Sizes[0].Bytes == 0 || s.Sizes[1].Bytes == 0 || s.Free == 0 {
		t.Errorf("sizes %+v, free %d", s.Sizes, s.Free)
	}
	imgforge(t, "builder", "prune", "--keep-storage", "100GB", "--state", w.state).wants(t, exitDone)
	r := imgforge(t, "builder", "stop", "--state", w.state).wants(t, exitCheck)
	if !strings.Contains(r.stderr, "--force") || len(running("sleep 318.5")) == 0 {
		t.Errorf("stop without --force: %s", r.stderr)
	}
	imgforge(t, "builder", "stop", "--force", "--state", w.state).wants(t, exitDone)
	p.result(t).wants(t, exitInfra)
	nothingLeft(t, w, "sleep 318.5")
	if s := readStatus(t, w); s.Running || s.Owner != nil {
		t.Errorf("after the stop: %+v", s)
	}
	if r := imgforge(t, "builder", "logs", "--lines", "0", "--state", w.state).wants(t, exitDone); !strings.Contains(r.stdout, "running server on") {
		t.Errorf("log:\n%s", tail(r.stdout, 10))
	}
}

// Unfinished downloads go once nobody goes on with them.
func TestPrunePartials(t *testing.T) {
	state := t.TempDir()
	dir := filepath.Join(state, "store", "partial")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, age := range map[string]time.Duration{"old": 2 * time.Hour, "new": 0} {
		path, when := filepath.Join(dir, name), time.Now().Add(-age)
		if err := os.WriteFile(path, []byte("half"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
	}
	r := imgforge(t, "builder", "prune", "--all", "--json", "--state", state).wants(t, exitDone)
	var out pruned
	if err := json.Unmarshal([]byte(r.stdout), &out); err != nil || out.Partials.Records != 1 {
		t.Errorf("%v %s", err, r.stdout)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 || left[0].Name() != "new" {
		t.Errorf("left: %v", left)
	}
}
