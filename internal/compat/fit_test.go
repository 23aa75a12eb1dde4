package compat

import (
	"fmt"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/golden"
)

// host is a machine by name, as the command line says it.
func host(t *testing.T, gpu, driver string) Host {
	t.Helper()
	var h Host
	var err error
	if gpu != "" {
		if h.GPU, err = FindGPU(gpu); err != nil {
			t.Fatal(err)
		}
	}
	if driver != "" {
		if h.Driver, err = ParseHostDriver(driver); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func TestFit(t *testing.T) {
	for _, c := range []struct {
		name        string
		s           Subject
		gpu, driver string
		want        []string // "level: part of the text"
		not         []string
	}{
		{"nothing asked", Subject{CUDA: "12.1", Torch: "2.4.1"}, "", "", nil, []string{"error", "warning", "note"}},
		{"no such build (cog#390)", Subject{CUDA: "12.1", Torch: "2.6.0"}, "4090", "535", []string{"error: torch 2.6.0 has no build for CUDA 12.1"}, []string{"warning"}},
		{"Ada runs code of 8.6", Subject{CUDA: "11.7", Torch: "2.0.1"}, "4090", "535", nil, []string{"error"}},
		{"Blackwell on old wheels", Subject{CUDA: "12.4", Torch: "2.6.0"}, "5090", "", []string{"error: no machine code for compute capability 12.0, only for 5.0", "error: take CUDA 12.8, 12.9, 13.0, 13.2"}, nil},
		{"Volta after it was dropped", Subject{CUDA: "13.0", Torch: "2.9.0"}, "V100", "580", []string{"error: no machine code for compute capability 7.0"}, []string{"error: no longer runs"}},
		{"Volta on a newer driver", Subject{CUDA: "12.6", Torch: "2.9.0"}, "V100", "595", []string{"error: driver 595 no longer runs Tesla V100: R580"}, nil},
		{"Volta on its last branch", Subject{CUDA: "12.6", Torch: "2.9.0"}, "V100", "580", nil, []string{"error"}},
		{"a driver older than the device", Subject{CUDA: "11.8", Torch: "2.4.1"}, "H20", "470", []string{"error: driver 470 does not know H20: 525"}, []string{"note"}},
		{"a driver older than the CUDA", Subject{CUDA: "12.1", Torch: "2.4.1"}, "A100", "470.57.02", []string{"error: driver 470.57.02 is older than CUDA 12.1 allows: 525.60.13"}, nil},
		{"between the floors", Subject{CUDA: "12.4", Torch: "2.6.0"}, "A100", "535.104.05", []string{"warning: all of CUDA 12.4 needs driver 550.54.14"}, []string{"error"}},
		{"a branch without release notes", Subject{CUDA: "13.3"}, "", "595", []string{"warning: needs driver of branch R610"}, nil},
		{"torch.compile (pytorch#119054)", Subject{CUDA: "11.8", Torch: "2.1.2"}, "A100", "470", []string{"warning: torch.compile fails", "warning: TRITON_PTXAS_PATH"}, []string{"error"}},
		{"not where the device needs 525", Subject{CUDA: "11.8", Torch: "2.1.2", Driver: "450.80.02"}, "H20", "", []string{"note: H20 needs driver 525"}, []string{"torch.compile"}},
		{"but where it runs on older ones", Subject{CUDA: "11.8", Torch: "2.1.2", Driver: "450.80.02"}, "A100", "", []string{"warning: torch.compile fails"}, nil},
		{"under the image's floor", Subject{CUDA: "12.1", Torch: "2.4.1", Driver: "535.54.03"}, "A100", "530.30.02", []string{"error: older than the image's floor 535.54.03"}, nil},
		{"a branch meets a floor in it", Subject{CUDA: "12.1", Torch: "2.4.1", Driver: "535.54.03"}, "A100", "535", nil, []string{"error"}},
		{"Python", Subject{CUDA: "12.1", Torch: "2.1.2", Python: "3.12"}, "", "", []string{"error: no wheel for Python 3.12"}, nil},
		{"experimental Python", Subject{CUDA: "12.1", Torch: "2.3.1", Python: "3.12"}, "", "", []string{"warning: Python 3.12 is experimental"}, []string{"error"}},
		{"an arm64 machine", Subject{CUDA: "12.4", Torch: "2.6.0"}, "GH200", "", []string{"error: no wheel is known for linux/arm64", "error: take CUDA 12.6, 12.8, 12.9, 13.0"}, nil},
		{"its wheels", Subject{CUDA: "12.8", Torch: "2.9.1"}, "GH200", "580", nil, []string{"error", "warning"}},
		{"an image for another machine", Subject{CUDA: "12.8", Torch: "2.9.1", Platform: AMD64}, "GB200", "", []string{"error: an image for linux/amd64 does not run on a linux/arm64 machine"}, nil},
		{"a card in an arm64 machine", Subject{CUDA: "12.8", Torch: "2.9.1", Platform: ARM64}, "A100", "580", nil, []string{"error"}},
		{"code that is not there on arm64", Subject{CUDA: "12.8", Torch: "2.9.1", Platform: ARM64}, "V100", "580", []string{"error: no machine code for compute capability 7.0, only for 8.0"}, nil},
		{"not known", Subject{CUDA: "12.9", Torch: "2.12.1"}, "A100", "580", []string{"warning: which devices it serves is not known"}, []string{"error"}},
	} {
		got := Fit(c.s, host(t, c.gpu, c.driver))
		for _, want := range c.want {
			level, part, _ := strings.Cut(want, ": ")
			if !said(got, level, part) {
				t.Errorf("%s: no %s with %q in\n%v", c.name, level, part, got)
			}
		}
		for _, not := range c.not {
			level, part, _ := strings.Cut(not, ": ")
			if said(got, level, part) || said(got, "", not) {
				t.Errorf("%s: %q in\n%v", c.name, not, got)
			}
		}
		for _, j := range got {
			if j.What == "" || j.Why == "" || j.Cure == "" || j.Field == "" {
				t.Errorf("%s: something is not said: %+v", c.name, j)
			}
		}
	}
}

// TestPlatforms: Judge refuses what has no wheel for the platform, and says what has.
func TestPlatforms(t *testing.T) {
	if got := Judge(Subject{CUDA: "12.1", Torch: "2.4.1", Platform: ARM64}); !said(got, Error, "torch 2.4.1 for CUDA 12.1 has no wheel for linux/arm64: with one: torch 2.6.0, ") || got[0].Field != "platform" {
		t.Errorf("%v", got)
	}
	for _, s := range []Subject{{CUDA: "12.1", Torch: "2.4.1", Platform: AMD64}, {CUDA: "12.8", Torch: "2.9.1", Platform: ARM64}, {CUDA: "12.9", Torch: "2.12.1", Platform: AMD64}} {
		if got := Judge(s); said(got, Error, "") {
			t.Errorf("%+v: %v", s, got)
		}
	}
	if got := Judge(Subject{CUDA: "12.1", Torch: "2.6.0", Platform: ARM64}); len(got) != 1 {
		t.Errorf("what does not exist has no platforms: %v", got)
	}
	if got := strings.Join(Platforms("2.9.1", "13.0"), " "); got != "linux/amd64 linux/arm64" {
		t.Errorf("torch 2.9.1 for CUDA 13.0: %s", got)
	}
}

// TestMachines prints what a few machines run, so that a change to a table shows
// what it means for them.
func TestMachines(t *testing.T) {
	var b strings.Builder
	for _, m := range [][2]string{{"RTX 4090", "535"}, {"H20", "550.54.15"}, {"RTX 5090", "570"}, {"V100", "450"}, {"GH200", "580"}} {
		fmt.Fprintf(&b, "%s with driver %s\n", m[0], m[1])
		answers, err := Question{Host: host(t, m[0], m[1])}.Answers()
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range answers {
			worst := Worst(a.Findings)
			if worst == "" {
				worst = "yes"
			}
			fmt.Fprintf(&b, "  CUDA %-4s torch %-6s %s\n", a.Build.CUDA, a.Build.Version, worst)
		}
	}
	golden.Check(t, "testdata/machines.golden", b.String())
}

func TestQuestionErrors(t *testing.T) {
	var b strings.Builder
	for _, q := range []Question{
		{Torch: "2.99.0"}, {Torch: "~2.99"}, {Torch: ">=2.3 <"}, {Torch: "latest"}, {Torch: "2.0.1+cu118"},
		{CUDA: "12.7"}, {CUDA: "cu121"}, {CUDA: ">13.2"}, {CUDA: "12.1.1"}, {Python: "2.7"}, {Python: "~3.11"},
		{Torch: "x", CUDA: "y", Python: "z"},
	} {
		_, err := q.Answers()
		if err == nil {
			t.Errorf("%+v was answered", q)
			continue
		}
		fmt.Fprintf(&b, "%s\n", err)
	}
	for _, name := range []string{"RTX 9090", "6000", "MI300X", "", "nvidia geforce", "1.0", "sm_99", "RTX 5009"} {
		if _, err := FindGPU(name); err != nil {
			fmt.Fprintf(&b, "%s\n", err)
		} else {
			t.Errorf("%q was found", name)
		}
	}
	for _, d := range []string{"", "abc", ">=525", "535.x.1"} {
		if _, err := ParseHostDriver(d); err != nil {
			fmt.Fprintf(&b, "%s\n", err)
		} else {
			t.Errorf("%q was taken", d)
		}
	}
	golden.Check(t, "testdata/questions.golden", b.String())
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		q     Question
		want  int
		error bool // in the first
	}{
		{Question{Torch: "2.0.1", CUDA: "12.1"}, 1, true}, {Question{Torch: "2.6.0", CUDA: "12.1"}, 1, true}, // cog#390
		{Question{Torch: "2.0.1", CUDA: "11.8"}, 1, false}, {Question{Torch: "~2.3"}, 4, false}, {Question{CUDA: "12.1"}, 12, false},
		{Question{CUDA: "12.2"}, 0, false}, {Question{CUDA: ">=13"}, 10, false},
	} {
		got, err := c.q.Answers()
		if err != nil || len(got) != c.want || len(got) > 0 && (Worst(got[0].Findings) == Error) != c.error {
			t.Errorf("%+v: %d answers, %v: %+v", c.q, len(got), err, got)
		}
	}
}

// FuzzQuestion: any text is answered or refused, never with a panic.
func FuzzQuestion(f *testing.F) {
	f.Add("~2.3", ">=12.1", "3.11", "4090", "535")
	f.Add("2.6.0", "12.1", "", "", "")
	f.Add(">=2 <3 || ~2.1", "12", "x", "sm_90", "450.80.02")
	f.Fuzz(func(t *testing.T, torch, cuda, python, gpu, driver string) {
		q := Question{Torch: torch, CUDA: cuda, Python: python}
		q.Host.GPU, _ = FindGPU(gpu)
		q.Host.Driver, _ = ParseHostDriver(driver)
		answers, err := q.Answers()
		if (err == nil) != (q.Check() == nil) {
			t.Errorf("%+v: %v, and yet %v", q, err, q.Check())
		}
		for _, a := range answers {
			for _, j := range a.Findings {
				if j.What == "" || j.Why == "" || j.Level == "" {
					t.Errorf("an empty finding: %+v", j)
				}
			}
		}
	})
}
