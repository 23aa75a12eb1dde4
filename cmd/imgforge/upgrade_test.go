package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// A recipe that asks otherwise moves what it must and nothing else; when it asks
// as before, all stays; --upgrade NAME then moves NAME alone. And the lock itself
// knows who wants it.
func TestUpgradeMovesOneAlone(t *testing.T) {
	w := locked(t)
	before := wheelsOf(t, w.lock)
	w = w.with(t, "bound", "", "limits: [\"pillow<11\"]\n")
	bound := wheelsOf(t, w.lock)
	only(t, "a limit on pillow", before, bound, "wheel pillow-")

	recipe := w.recipes[len(w.recipes)-1] + "/bound.yaml"
	if err := os.WriteFile(recipe, []byte("name: bound\nsummary: a test's own, without its limit\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	again := imgforge(t, w.args("lock")...).wants(t, exitDone)
	if !strings.Contains(again.stdout, " 0 new, 0 gone;") || !slices.Equal(wheelsOf(t, w.lock), bound) {
		t.Errorf("without the limit, something moves:\n%s", again.stdout)
	}
	kept, err := os.ReadFile(w.lock)
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Written bool
		Moved   []struct{ Package, Old, New string }
	}
	dry := imgforge(t, w.args("lock", "--upgrade", "Pillow", "--dry-run", "--json")...).wants(t, exitDone)
	if err := json.Unmarshal([]byte(dry.stdout), &report); err != nil {
		t.Fatalf("%v\n%s", err, dry.stdout)
	}
	if len(report.Moved) != 1 || report.Moved[0].Package != "pillow" || !strings.HasPrefix(report.Moved[0].Old, "10.") || report.Written {
		t.Errorf("an upgrade of pillow says %+v", report)
	}
	if now, _ := os.ReadFile(w.lock); string(now) != string(kept) {
		t.Error("--dry-run wrote the lock")
	}
	why := imgforge(t, w.args("lock", "--why", "pillow")...).wants(t, exitDone)
	if !strings.Contains(why.stdout, "recipe matplotlib-agg asks for matplotlib -> pillow") {
		t.Errorf("--why says %q", why.stdout)
	}
}

// wheelsOf are the lines of a lock's wheels.
func wheelsOf(t *testing.T, file string) []string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "wheel ") {
			out = append(out, line)
		}
	}
	return out
}

// only holds that two lists differ, and in lines that begin so alone.
func only(t *testing.T, what string, before, after []string, begin string) {
	t.Helper()
	differ := 0
	for _, pair := range [][2][]string{{before, after}, {after, before}} {
		for _, line := range pair[0] {
			if slices.Contains(pair[1], line) {
				continue
			}
			differ++
			if !strings.HasPrefix(line, begin) {
				t.Errorf("%s moves %s", what, line)
			}
		}
	}
	if differ != 2 {
		t.Errorf("%s moves %d lines, want one for another", what, differ)
	}
}
