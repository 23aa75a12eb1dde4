package graph_test

import (
	"context"
	"encoding/csv"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/store"
)

// Wheels that reach out of the environment, are bombs, hold links or devices, or
// differ from their RECORD are refused with the member's name; wheel.py says so
// itself, run by this machine's Python with the pinned installer.
func TestWheelProgram(t *testing.T) {
	cmd := exec.Command("python3", "testdata/wheel_test.py", "files/wheel.py")
	cmd.Env = append(os.Environ(), "PYTHONPATH="+installer(t), "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "\nOK") {
		t.Errorf("%v\n%s", err, out)
	}
}

// installer fetches the wheel of the tool that installs wheels from this machine's
// own index, and returns its path.
func installer(t *testing.T) string {
	t.Helper()
	table, err := os.ReadFile("../resolve/data/tools.csv")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(string(table))).ReadAll()
	i := slices.IndexFunc(rows, func(row []string) bool { return row[0] == "install" })
	if err != nil || i < 0 {
		t.Fatalf("no tool to install with: %v", err)
	}
	row := rows[i]
	size, err := strconv.ParseInt(row[5], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	blob := plan.Blob{Name: row[3], Origin: "pypi:" + row[1] + "==" + row[2], SHA256: row[4], Size: size}
	dir := t.TempDir()
	s, err := store.Open(filepath.Join(dir, "store"))
	if err != nil {
		t.Fatal(err)
	}
	profiles, err := store.LoadProfiles([]diag.Str{{Value: "host"}}, nil, hostEnvironment())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (&store.Fetcher{Store: s, Profiles: profiles}).Fetch(t.Context(), []plan.Blob{blob}); err != nil {
		t.Fatal(err)
	}
	return s.Path(blob.SHA256)
}

func hostEnvironment() store.Environment {
	env := map[string]string{}
	for _, kv := range os.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	run := func(ctx context.Context, name string, args ...string) ([]byte, error) {
		return exec.CommandContext(ctx, name, args...).Output()
	}
	return store.Environment{Env: env, Root: "/", Run: run}
}
