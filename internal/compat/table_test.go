package compat

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/diag"
)

func TestTablesParse(t *testing.T) {
	parsed, err := parse()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{
		"floors": len(parsed.floors), "releases": len(parsed.releases), "builds": len(parsed.builds), "archs": len(parsed.archs),
		"gpus": len(parsed.gpus), "updates": len(parsed.updates), "images": len(parsed.images), "branches": len(parsed.branches), "limits": len(parsed.limits), "rules": len(parsed.rules), "conflicts": len(parsed.conflicts),
		"wheels": len(parsed.wheels), "requires": len(parsed.requires), "distributions": len(parsed.distributions),
	}
	names, err := fs.Glob(files, "data/*.csv")
	if err != nil || len(names) != len(counts) {
		t.Errorf("%d tables are embedded and %d are parsed: %v, %v", len(names), len(counts), names, err)
	}
	for name, n := range counts {
		if n == 0 {
			t.Errorf("%s is empty", name)
		}
	}
}

// TestEveryTableNamesItsSource: by column, or in its header where one holds for all.
func TestEveryTableNamesItsSource(t *testing.T) {
	names, _ := fs.Glob(files, "data/*.csv")
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), ",source\n") && !strings.Contains(string(text), "\n# Source: ") {
			t.Errorf("%s says nowhere what it is from", name)
		}
	}
}

// TestTablesAgree: no row speaks of what another table does not know, and no
// build or release stands twice.
func TestTablesAgree(t *testing.T) {
	tabs := known()
	seen := map[string]bool{}
	for _, b := range tabs.builds {
		hits := 0
		for _, torch := range Torches() {
			if applies(torch, b.torches) {
				hits++
				key := torch + " x " + b.cuda
				if seen[key] {
					t.Errorf("%s stands twice", key)
				}
				seen[key] = true
			}
		}
		if hits == 0 {
			t.Errorf("build %q matches no release", b.torches)
		}
	}
	for i, a := range tabs.archs {
		if !slices.ContainsFunc(Torches(), func(torch string) bool { return applies(torch, a.torches) && seen[torch+" x "+a.cuda] }) {
			t.Errorf("row %d of archs.csv (%s, %s) matches no build", i, a.torches, a.cuda)
		}
	}
	for _, r := range tabs.releases {
		if r.plain == "" || !seen[r.torch+" x "+r.plain] {
			t.Errorf("torch %s: its plain wheel has CUDA %q, which is no build", r.torch, r.plain)
		}
	}
	for _, r := range tabs.requires {
		for _, torch := range r.torches {
			if !seen[torch+" x "+r.cuda] {
				t.Errorf("requires.csv speaks of torch %s for CUDA %s, which is no build", torch, r.cuda)
			}
		}
	}
}

func TestMalformedRows(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"an empty field", "cuda,compat,strict,shipped,branch,source\n12.1,525,,,,x\n", `f.csv:2: column "branch" is empty`},
		{"a bad driver", "# note\ncuda,compat,strict,shipped,branch,source\n12.1,five,,,R530,x\n", `f.csv:3: "five" is not a driver version`},
		{"a bad CUDA", "cuda,compat,strict,shipped,branch,source\ncu121,525,,,R530,x\n", `f.csv:2: "cu121" is not a CUDA version`},
		{"a missing column", "cuda,compat\n12.1,525\n", `no column "strict"`},
		{"too few fields", "cuda,compat\n12.1\n", "wrong number of fields"},
		{"no header", "", "begins with the names of its columns"},
	} {
		var bad diag.List
		if got := parseRows(&bad, "f.csv", c.text, (*row).floor); len(got) != 0 {
			t.Errorf("%s: taken as %+v", c.name, got)
		}
		if err := bad.Err(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want %q in %v", c.name, c.want, err)
		}
	}
	var bad diag.List
	parseRows(&bad, "w.csv", "file,sha256,size,agree,source\ntorch.whl,abc,-1,0,x\n", (*row).wheel)
	if len(bad) != 4 {
		t.Errorf("a wheel with four mistakes: %v", bad.Err())
	}
	bad = nil
	parseRows(&bad, "b.csv", "torch,cuda,cudnn,nccl,bundled,source\nlatest,12.1,,,maybe,x\n", (*row).build)
	if len(bad) != 2 || !strings.Contains(bad.Error(), "allowed: yes, no") {
		t.Errorf("a build with two mistakes: %v", bad.Err())
	}
}
