package compat

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/golden"
)

func show(s Subject) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%+v\n", s)
	for _, j := range Judge(s) {
		fmt.Fprintf(&b, "  %s: %s\n    [%s]\n", j.Level, j, j.Source)
	}
	return b.String()
}

// TestUniversalCells judges the cells that the universal matrix has.
func TestUniversalCells(t *testing.T) {
	floors := map[string][]string{"11.8": {"450.80.02", "520.61.05"}, "12.1": {"525.60.13", "535.54.03"}}
	var b strings.Builder
	for _, cuda := range []string{"11.8", "12.1"} {
		for _, torch := range []string{"2.1.2", "2.2.2", "2.3.1", "2.4.1", "2.5.1"} {
			for _, driver := range floors[cuda] {
				s := Subject{CUDA: cuda, Torch: torch, Python: "3.11", Driver: driver, Suite: "bookworm"}
				b.WriteString(show(s))
				for _, j := range Judge(s) {
					if j.Level == Error {
						t.Errorf("%+v is refused: %s", s, j)
					}
				}
			}
		}
	}
	golden.Check(t, "testdata/universal.golden", b.String())
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name string
		s    Subject
		want []string // "level: part of the text", each of which must be there
		not  []string
	}{
		{"nothing to judge", Subject{}, nil, []string{"error", "warning", "note"}},
		{"no such build (cog#390)", Subject{CUDA: "12.1", Torch: "2.6.0"},
			[]string{"error: torch 2.6.0 has no build for CUDA 12.1", "error: CUDA 12.1 has torch 2.1.0 to 2.5.1", "error: torch 2.6.0 has CUDA 11.8, 12.4, 12.6", "error: data/builds.csv"}, nil},
		{"too old a torch (cog#390)", Subject{CUDA: "12.1", Torch: "2.0.1"}, []string{"error: torch 2.0.1 has CUDA 11.7, 11.8"}, nil},
		{"no wheel", Subject{CUDA: "12.1", Torch: "2.1.2", Python: "3.12"}, []string{"error: torch 2.1.2 has no wheel for Python 3.12: it has wheels for Python 3.8, 3.9, 3.10, 3.11"}, []string{"warning"}},
		{"experimental Python", Subject{CUDA: "12.1", Torch: "2.3.1", Python: "3.12"},
			[]string{"warning: Python 3.12 is experimental for torch 2.3.1", "warning: torch.compile does not work on Python 3.12"}, []string{"error"}},
		{"3.12 is at home in 2.4", Subject{CUDA: "12.1", Torch: "2.4.0", Python: "3.12"}, nil, []string{"error", "warning"}},
		{"3.13 in 2.5", Subject{CUDA: "12.1", Torch: "2.5.1", Python: "3.13"}, []string{"warning: torch.compile does not work on Python 3.13"}, []string{"error"}},
		{"another Python than the suite's", Subject{Python: "3.10", Suite: "bookworm"}, []string{"error: bookworm has Python 3.11, not 3.10"}, nil},
		{"unknown suite", Subject{Suite: "buster"}, []string{"error: known: bullseye, bookworm, trixie"}, nil},
		{"under the compat floor", Subject{CUDA: "12.1", Driver: "450.80.02"}, []string{"error: driver floor 450.80.02 is older than CUDA 12.1", "error: compat floor, is 525.60.13", "error: strict floor, is 530.30.02"}, []string{"warning"}},
		{"just under it", Subject{CUDA: "11.8", Driver: "450.80.01"}, []string{"error: compat floor, is 450.80.02"}, nil},
		{"between the floors", Subject{CUDA: "12.1", Driver: ">=525.60.13"}, []string{"warning: minor-version compatibility", "note: PTX of CUDA 12.1", "note: 530.30.02"}, []string{"error"}},
		{"at the strict floor", Subject{CUDA: "12.1", Driver: "530.30.02"}, nil, []string{"error", "warning", "note"}},
		{"strict floor not known", Subject{CUDA: "13.4", Driver: "610"}, []string{"warning: of branch R615"}, []string{"error"}},
		{"not a floor", Subject{CUDA: "12.1", Driver: "<=525"}, []string{"error: no other operator is allowed"}, []string{"warning", "note"}},
		{"torch.compile (pytorch#119054)", Subject{CUDA: "11.8", Torch: "2.1.2", Driver: "450.80.02"}, []string{"warning: torch.compile fails on drivers before 525", "warning: TRITON_PTXAS_PATH"}, []string{"error"}},
		{"and at its upper end", Subject{CUDA: "11.8", Torch: "2.2.0", Driver: "520.61.05"}, []string{"warning: TRITON_PTXAS_PATH"}, nil},
		{"not after it", Subject{CUDA: "11.8", Torch: "2.2.1", Driver: "520.61.05"}, []string{"note: torch.compile on drivers before 525 is expected to work"}, []string{"warning: torch.compile"}},
		{"not on 525", Subject{CUDA: "11.8", Torch: "2.1.2", Driver: "525.60.13"}, nil, []string{"torch.compile"}},
		{"not for 12.1", Subject{CUDA: "12.1", Torch: "2.1.2", Driver: "525.60.13"}, nil, []string{"torch.compile"}},
		{"not without a floor", Subject{CUDA: "11.8", Torch: "2.1.2"}, nil, []string{"torch.compile"}},
		{"a candidate of 2.4 failed", Subject{CUDA: "11.8", Torch: "2.4.1", Driver: "520.61.05"}, []string{"warning: cuTensorMapEncodeTiled"}, nil},
		{"new devices on old drivers", Subject{CUDA: "11.8", Torch: "2.4.1", Driver: "450.80.02"}, []string{"note: H100 (525)", "note: L4 (520)"}, []string{"B200"}},
		{"Blackwell", Subject{CUDA: "12.8", Torch: "2.7.1", Driver: "525.60.13"}, []string{"note: B200 (570)"}, []string{"H100"}},
		{"all problems at once", Subject{CUDA: "12.1", Torch: "2.6.0", Python: "3.12", Driver: "450.80.02", Suite: "bookworm"},
			[]string{"error: no build", "error: bookworm has Python 3.11", "error: compat floor"}, nil},
	} {
		got := Judge(c.s)
		for _, want := range c.want {
			level, part, _ := strings.Cut(want, ": ")
			if !said(got, level, part) {
				t.Errorf("%s: no %s with %q in\n%s", c.name, level, part, show(c.s))
			}
		}
		for _, not := range c.not {
			level, part, _ := strings.Cut(not, ": ")
			if said(got, level, part) || said(got, "", not) {
				t.Errorf("%s: %q in\n%s", c.name, not, show(c.s))
			}
		}
	}
}

// said tells whether a judgement of the level (empty: any) holds the text. With
// a level and no text, any judgement of that level does.
func said(judgements []Judgement, level, part string) bool {
	for _, j := range judgements {
		if (level == "" || j.Level == level) && strings.Contains(j.String(), part) {
			return true
		}
	}
	return false
}

func TestJudgeOrder(t *testing.T) {
	s := Subject{CUDA: "11.8", Torch: "2.3.1", Python: "3.12", Driver: "450.80.02", Suite: "bookworm"}
	first := Judge(s)
	rank := map[string]int{Error: 0, Warning: 1, Note: 2}
	for i := 1; i < len(first); i++ {
		if rank[first[i-1].Level] > rank[first[i].Level] {
			t.Errorf("a %s stands before a %s", first[i-1].Level, first[i].Level)
		}
	}
	if len(first) < 4 || first[0].Level != Error || first[len(first)-1].Level != Note {
		t.Errorf("expected all three levels: %s", show(s))
	}
	for range 25 {
		if again := Judge(s); !reflect.DeepEqual(first, again) {
			t.Fatalf("two runs differ: %v and %v", first, again)
		}
	}
}

func TestDistributions(t *testing.T) {
	for suite, want := range map[string]string{
		"bullseye": "debian11 debian 11 3.9 2.31", "bookworm": "debian12 debian 12 3.11 2.36", "trixie": "debian13 debian 13 3.13 2.41",
	} {
		d, ok := DistributionOf(suite)
		if got := strings.Join([]string{d.Name, d.ID, d.VersionID, d.Python, d.Glibc}, " "); !ok || d.Suite != suite || got != want {
			t.Errorf("%s: %q, want %q", suite, got, want)
		}
	}
	if d, ok := DistributionOf("jammy"); !ok || d.ID != "ubuntu" || slices.Contains(Suites("debian"), "jammy") {
		t.Errorf("jammy is Ubuntu's: %+v, Debian's are %v", d, Suites("debian"))
	}
}

// FuzzJudge: nothing a matrix can say makes a judgement panic, or leaves one
// without words.
func FuzzJudge(f *testing.F) {
	f.Add("12.1", "2.4.1", "3.11", ">=525.60.13", "bookworm")
	f.Add("11.8", "2.2.0", "3.12", "450", "")
	f.Add("cu", "~2.3", "3", "=", "sid")
	f.Fuzz(func(t *testing.T, cuda, torch, python, driver, suite string) {
		for _, j := range Judge(Subject{CUDA: cuda, Torch: torch, Python: python, Driver: driver, Suite: suite, Platform: suite}) {
			if j.What == "" || j.Why == "" || j.Level == "" {
				t.Errorf("an empty judgement: %+v", j)
			}
		}
		Limits(torch, cuda, python)
		IndexWheel(torch, cuda, python)
		Conflicts([]string{cuda, torch, python, driver, suite})
	})
}
