package main

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/buildkit/client"
)

// Building again what is built runs no step and gives the same.
func TestUnchangedRebuild(t *testing.T) {
	w, before := built(t)
	w.dist = filepath.Join(t.TempDir(), "dist")
	r := imgforge(t, w.args("build", "--json", "--progress", "json")...).wants(t, exitDone)
	if got := digests(rows(t, r)); !maps.Equal(got, digests(before)) {
		t.Errorf("the second build gives\n%v\nthe first gave\n%v", got, digests(before))
	}
	cached := map[string]bool{} // by name of the step
	ran := map[string]bool{}
	for line := range strings.Lines(r.stderr) {
		var status client.SolveStatus
		if err := json.Unmarshal([]byte(line), &status); err != nil {
			t.Fatalf("--progress json prints %q", line)
		}
		for _, v := range status.Vertexes {
			if v.Completed == nil || !isStep(v.Name) {
				continue
			}
			if v.Cached {
				cached[v.Name] = true
			} else {
				ran[v.Name] = true
			}
		}
		if len(status.Logs) > 0 {
			t.Errorf("a step prints: %s", status.Logs[0].Data)
		}
	}
	if len(ran) > 0 {
		t.Errorf("these ran again: %v", ran)
	}
	for _, name := range []string{"apt: install", "venv: create", "wheels: numpy", "recipe: note: write the note"} {
		if !cached[name] {
			t.Errorf("%s is not among the cached steps %v", name, cached)
		}
	}
	for _, row := range rows(t, r) {
		if row.Fetched != 0 {
			t.Errorf("%s downloaded %d bytes", row.Cell, row.Fetched)
		}
	}
}

// isStep tells whether a vertex runs a command in a container.
func isStep(name string) bool {
	for _, prefix := range []string{"base: configure", "apt: ", "venv: ", "wheels: "} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return strings.HasPrefix(name, "recipe: ") && strings.Count(name, ": ") == 2 && !strings.HasSuffix(name, ": set times")
}
