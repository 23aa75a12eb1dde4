package builder

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An engine that runs is found by its lock, answers for its cache, and is
// configured with its budget; one that has ended is not found.
func TestOwnerAndCache(t *testing.T) {
	dir := t.TempDir()
	if o, err := FindOwner(dir); o != nil || err != nil {
		t.Fatalf("before: %v %v", o, err)
	}
	p := paths(t)
	p.Budget = 5 << 30
	e, err := Start(context.Background(), dir, p)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	o, err := FindOwner(dir)
	if err != nil || o == nil || o.PID != os.Getpid() || o.Addr != e.Addr || o.Engine != e.cmd.Process.Pid {
		t.Errorf("owner %+v, %v", o, err)
	}
	c, err := ReadCache(t.Context(), e.Addr)
	if err != nil || c.Version == "" || c.Builds != 0 {
		t.Errorf("cache %+v, %v", c, err)
	}
	if _, err := PruneCache(t.Context(), e.Addr, 0); err != nil {
		t.Error(err)
	}
	if err := e.KeepBudget(t.Context()); err != nil {
		t.Error(err)
	}
	config, err := os.ReadFile(filepath.Join(dir, "buildkitd.toml"))
	if err != nil || !strings.Contains(string(config), "maxUsedSpace = \"5368709120\"") {
		t.Errorf("%v\n%s", err, config)
	}
	if _, err := os.Stat(e.traces()); err == nil {
		t.Error("steps could find the trace socket")
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if o, err := FindOwner(dir); o != nil || err != nil {
		t.Errorf("after: %v %v", o, err)
	}
}

func TestLayoutHasOneWriter(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dist")
	unlock, err := LockLayout(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := LockLayout(dir); err == nil || !strings.Contains(err.Error(), "another imgforge is writing to "+dir) {
		t.Errorf("a second writer: %v", err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	again, err := LockLayout(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := again(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left in the layout: %v", left)
	}
}
