// Package internal_test holds the rules that bind all packages together.
package internal_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/imgforge/imgforge"

// rank orders the packages: each may import only those of a lower rank.
var rank = map[string]float64{
	"internal/diag": 0, "internal/version": 0, "internal/record": 0, "internal/golden": 0,
	"internal/compat": 1, "internal/yamlpos": 1, "internal/lock": 1,
	"internal/check":  1.5,
	"internal/matrix": 2, "internal/recipe": 2, "internal/inspect": 2, "internal/scan": 2,
	"internal/plan": 3, "internal/report": 3,
	"internal/graph": 4, "internal/forge": 4, "internal/rootfs": 4,
	"internal/resolve": 5, "internal/store": 5, "internal/store/storetest": 5, "internal/builder": 5, "internal/smoke": 5, "internal/archive": 5, "internal/registry": 5, "internal/image": 5.5, "internal/imagetest": 5,
	"cmd/imgforge": 6, "internal/bench": 6,
}

// data packages hold embedded files and no logic; anyone may import them.
var data = []string{"recipes", "matrix", "internal"}

// impure may not be reached by the pure packages, even through others.
var impure = []string{"net/http", "os/exec"}

func TestRanks(t *testing.T) {
	for pkg, imports := range listImports(t) {
		mine, known := rank[pkg]
		if !known {
			if !slices.Contains(data, pkg) {
				t.Errorf("%s has no rank: add it to the table, or move it", pkg)
			}
			continue
		}
		for _, imp := range imports {
			other, known := rank[imp]
			if known && other >= mine {
				t.Errorf("%s (rank %v) imports %s (rank %v): imports must go down", pkg, mine, imp, other)
			}
		}
	}
}

func TestPureMiddle(t *testing.T) {
	for pkg, r := range rank {
		if r > 3 && pkg != "internal/forge" {
			continue
		}
		deps := strings.Fields(run(t, "go", "list", "-deps", module+"/"+pkg))
		for _, bad := range impure {
			if slices.Contains(deps, bad) {
				t.Errorf("%s reaches %s; see `go mod why` or `go list -deps`", pkg, bad)
			}
		}
	}
}

// listImports maps each package of the module to what it imports of the module,
// both without the module's path.
func listImports(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for line := range strings.Lines(run(t, "go", "list", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", module+"/...")) {
		fields := strings.Fields(line)
		var own []string
		for _, imp := range fields[1:] {
			if rest, ok := strings.CutPrefix(imp, module+"/"); ok {
				own = append(own, rest)
			}
		}
		out[strings.TrimPrefix(fields[0], module+"/")] = own
	}
	if len(out) < 5 {
		t.Fatalf("go list found only %d packages", len(out))
	}
	return out
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}
