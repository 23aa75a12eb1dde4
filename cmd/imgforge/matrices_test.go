package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/imagetest"
)

// Two matrices in one run end in one table and one layout, and lock beside
// themselves.
func TestSeveralMatrices(t *testing.T) {
	w, before := built(t)
	dir := t.TempDir()
	copyTo := func(from, to string, edit ...string) {
		t.Helper()
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), []byte(strings.NewReplacer(edit...).Replace(string(data))), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	copyTo(w.matrix, "one.yaml")
	copyTo(w.matrix, "two.yaml", "name: small", "name: two", `tag: "small-`, `tag: "two-`)
	copyTo(w.lock, "one.lock")
	copyTo(w.lock, "two.lock")
	w.dist = filepath.Join(dir, "dist")
	args := slices.DeleteFunc(w.args("build", "--json", "--matrix", filepath.Join(dir, "one.yaml"), "--matrix", filepath.Join(dir, "two.yaml")),
		func(arg string) bool { return arg == "--lock" || arg == w.lock || arg == w.matrix })
	args = slices.Delete(args, 1, 2) // the --matrix of the small world
	after := rows(t, imgforge(t, args...).wants(t, exitDone))
	if len(after) != 2*len(before) {
		t.Fatalf("%d rows, want %d", len(after), 2*len(before))
	}
	for i, row := range before {
		if again := after[i]; again.Cell != row.Cell || again.Digest != row.Digest {
			t.Errorf("%s is %s, alone it was %s %s", again.Cell, again.Digest, row.Cell, row.Digest)
		}
		other := after[len(before)+i]
		if want := strings.Replace(row.Cell, "small-", "two-", 1); other.Cell != want {
			t.Errorf("row %s, want %s", other.Cell, want)
		}
		imagetest.Find(t, imagetest.Open(t, w.dist), other.Cell)
	}
}
