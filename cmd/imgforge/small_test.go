package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/imgforge/imgforge/internal/imagetest"
	"github.com/imgforge/imgforge/internal/record"
	"github.com/imgforge/imgforge/internal/report"
)

// The cells of testdata/small, in its order.
const (
	cellA = "small-driver525-tqdm4.67.1"
	cellB = "small-driver535-tqdm4.67.1" // differs from A in the driver floor
	cellC = "small-driver535-tqdm4.66.5" // differs from B in one light wheel
)

// world is a matrix with the files beside it and a state directory.
type world struct {
	matrix, lock string
	recipes      []string
	state, dist  string
	smoke        bool // builds run the checks too
}

// args are a command with the world's own flags.
func (w world) args(command string, more ...string) []string {
	out := []string{command, "--matrix", w.matrix, "--lock", w.lock, "--state", w.state, "--mirrors", "host"}
	for _, dir := range w.recipes {
		out = append(out, "--recipes", dir)
	}
	if command == "build" {
		out = append(out, "--output", w.dist, "--progress", "plain")
		if !w.smoke {
			out = append(out, "--no-smoke")
		}
	}
	return append(out, more...)
}

// small is the shared world; locked and built are made by whoever needs them first.
func small() world {
	return world{
		matrix: repository("testdata", "small", "matrix.yaml"), lock: filepath.Join(scratch, "small.lock"),
		recipes: []string{repository("testdata", "small", "recipes")},
		state:   filepath.Join(scratch, "state"), dist: filepath.Join(scratch, "dist"),
	}
}

var (
	lockOnce, buildOnce sync.Once
	lockRun, buildRun   result
)

// locked is the small world with a lock made afresh.
func locked(t *testing.T) world {
	t.Helper()
	needsEngine(t)
	w := small()
	lockOnce.Do(func() { lockRun = imgforge(t, w.args("lock", "--progress", "plain")...) })
	lockRun.wants(t, exitDone)
	return w
}

// built is the small world with all its cells in dist.
func built(t *testing.T) (world, []report.Row) {
	t.Helper()
	w := locked(t)
	buildOnce.Do(func() { buildRun = imgforge(t, w.args("build", "--json", "--jobs", "2")...) })
	return w, rows(t, buildRun.wants(t, exitDone))
}

// rows are the cells of a run that printed JSON.
func rows(t *testing.T, r result) []report.Row {
	t.Helper()
	var out []report.Row
	if err := json.Unmarshal([]byte(r.stdout), &out); err != nil {
		t.Fatalf("not JSON: %v\n%s\n%s", err, r.stdout, tail(r.stderr, 30))
	}
	return out
}

func digests(rows []report.Row) map[string]string {
	out := map[string]string{}
	for _, r := range rows {
		out[r.Cell] = r.Digest
	}
	return out
}

// cellImage is a built cell of the small world.
func cellImage(t *testing.T, tag string) *imagetest.Image {
	t.Helper()
	w, _ := built(t)
	return imagetest.Find(t, imagetest.Open(t, w.dist), tag)
}

// failedAs checks that a cell failed in a class, and returns the reason.
func failedAs(t *testing.T, rows []report.Row, cell string, class record.Class) string {
	t.Helper()
	i := slices.IndexFunc(rows, func(r report.Row) bool { return r.Cell == cell })
	if i < 0 || rows[i].Failed == nil {
		t.Fatalf("%s did not fail: %+v", cell, rows)
	}
	if rows[i].Failed.Class != class {
		t.Errorf("%s failed as %s, want %s: %s", cell, rows[i].Failed.Class, class, rows[i].Failed.Reason)
	}
	return rows[i].Failed.Reason
}

// with is the locked world with one recipe more, in all cells or in those that
// match when, and files of testdata below its files/; building it takes no more
// than that recipe does.
func (w world) with(t *testing.T, name, when, recipe string, files ...string) world {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	read := func(path string) string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for _, file := range files {
		write("recipes/"+file, read(filepath.Join("testdata", filepath.Base(file))))
	}
	entry := "  - {name: " + name
	if when != "" {
		entry += ", when: {" + when + "}"
	}
	write("matrix.yaml", strings.Replace(read(w.matrix), "  - note\n", "  - note\n"+entry+"}\n", 1))
	write("matrix.lock", read(w.lock))
	write("recipes/"+name+".yaml", "name: "+name+"\nsummary: a test's own\n"+recipe)
	w.matrix, w.lock, w.dist = filepath.Join(dir, "matrix.yaml"), filepath.Join(dir, "matrix.lock"), filepath.Join(dir, "dist")
	w.recipes = append(slices.Clone(w.recipes), filepath.Join(dir, "recipes"))
	imgforge(t, w.args("lock")...).wants(t, exitDone)
	return w
}
