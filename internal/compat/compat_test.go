package compat

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/golden"
	"github.com/imgforge/imgforge/internal/version"
)

// TestWhatExists prints every torch and CUDA that go together, so that a change
// to a table shows what it means.
func TestWhatExists(t *testing.T) {
	var b strings.Builder
	for _, torch := range Torches() {
		plain, _ := PlainCUDA(torch)
		fmt.Fprintf(&b, "torch %s (plain: CUDA %s)\n", torch, plain)
		for _, cuda := range CUDAs() {
			got, err := Lookup(torch, cuda)
			if err != nil {
				continue
			}
			fmt.Fprintf(&b, "  CUDA %-4s %-20s cudnn %-9s nccl %-6s triton %-5s python %s to %s\n    vision %s audio %s; archs %s; bundled %v\n",
				cuda, TorchRequirement(torch, cuda), got.CuDNN, got.NCCL, got.Triton, got.Pythons[0], got.Pythons[len(got.Pythons)-1],
				got.Torchvision, got.Torchaudio, strings.Join(Archs(torch, cuda), " "), got.Bundled)
		}
	}
	golden.Check(t, "testdata/exists.golden", b.String())
}

func TestLookupRefusals(t *testing.T) {
	var b strings.Builder
	for _, c := range [][2]string{
		{"2.0.1", "12.1"}, {"2.6.0", "12.1"}, // replicate/cog#390
		{"2.99.0", "12.1"}, {"2.4.1", "12.3"}, {"3", "10.2"}, {"", ""},
	} {
		_, err := Lookup(c[0], c[1])
		if err == nil {
			t.Errorf("torch %s for CUDA %s was accepted", c[0], c[1])
			continue
		}
		fmt.Fprintln(&b, err)
	}
	golden.Check(t, "testdata/refused.golden", b.String())
}

func TestLookup(t *testing.T) {
	got, err := Lookup("2.0.1", "11.8") // replicate/cog#390: this one exists
	if err != nil {
		t.Fatal(err)
	}
	if got.Torchvision != "0.15.2" || got.CuDNN != "8.7.0.84" || !got.Bundled || got.Source == "" {
		t.Errorf("torch 2.0.1 for CUDA 11.8: %+v", got)
	}
	got, err = Lookup("2.4.1", "12.1")
	if err != nil {
		t.Fatal(err)
	}
	if got.Bundled || got.NCCL != "2.20.5" || !slices.Equal(got.Pythons, []string{"3.8", "3.9", "3.10", "3.11", "3.12"}) {
		t.Errorf("torch 2.4.1 for CUDA 12.1: %+v", got)
	}
	got.Pythons[0] = "changed"
	if again, _ := Lookup("2.4.1", "12.1"); again.Pythons[0] != "3.8" {
		t.Error("an answer shares memory with the table")
	}
}

func TestLists(t *testing.T) {
	if got := CUDAs(); !slices.IsSortedFunc(got, compareCUDAs) || got[0] != "11.7" || got[len(got)-1] != "13.2" {
		t.Errorf("CUDAs: %v", got)
	}
	if got := Torches(); !slices.IsSortedFunc(got, compareReleases) || !slices.Contains(got, "2.10.0") || got[len(got)-1] != "2.14.0" {
		t.Errorf("torches: %v", got)
	}
}

func TestPlainWheel(t *testing.T) {
	for torch, want := range map[string]string{
		"2.0.1": "11.7", "2.1.2": "12.1", "2.2.2": "12.1", "2.3.1": "12.1", "2.4.1": "12.1",
		"2.5.1": "12.4", "2.6.0": "12.4", "2.7.1": "12.6", "2.8.0": "12.8", "2.10.0": "12.8", "2.11.0": "13.0",
	} {
		if got, ok := PlainCUDA(torch); !ok || got != want {
			t.Errorf("PlainCUDA(%s) = %q, %v; want %s", torch, got, ok, want)
		}
	}
	if got, ok := PlainCUDA("9.9.9"); ok {
		t.Errorf("an unknown torch has a plain wheel for %s", got)
	}
	for _, c := range []struct{ torch, cuda, want string }{
		{"2.4.1", "12.1", "torch==2.4.1"}, {"2.4.1", "11.8", "torch==2.4.1+cu118"},
		{"2.5.1", "12.1", "torch==2.5.1+cu121"}, {"2.5.1", "12.4", "torch==2.5.1"}, {"9.9.9", "12.1", "torch==9.9.9+cu121"},
	} {
		if got := TorchRequirement(c.torch, c.cuda); got != c.want {
			t.Errorf("TorchRequirement(%s, %s) = %s; want %s", c.torch, c.cuda, got, c.want)
		}
	}
}

// TestArm64IsMarked: its plain wheels are for the CPU.
func TestArm64IsMarked(t *testing.T) {
	for platform, want := range map[string]string{AMD64: "torch==2.9.1", ARM64: "torch==2.9.1+cu128"} {
		if got := TorchRequirementOn("2.9.1", "12.8", platform); got != want {
			t.Errorf("%s: %s; want %s", platform, got, want)
		}
	}
}

// TestCu118IsMarked: a cu118 torch never comes by a bare name (pypa/pip#8606).
func TestCu118IsMarked(t *testing.T) {
	for _, torch := range torchesFor("11.8") {
		if got := TorchRequirement(torch, "11.8"); !strings.HasSuffix(got, "+cu118") {
			t.Errorf("torch %s for CUDA 11.8 is asked for as %s", torch, got)
		}
	}
}

func TestFloors(t *testing.T) {
	f, ok := FloorOf("12.1")
	if !ok || f.Compat != "525.60.13" || f.Strict != "530.30.02" || f.Shipped != "530.30.02" || f.Branch != "R530" {
		t.Errorf("CUDA 12.1: %+v", f)
	}
	f, ok = FloorOf("11.8")
	if !ok || f.Compat != "450.80.02" || f.Strict != "520.61.05" {
		t.Errorf("CUDA 11.8: %+v", f)
	}
	if f, ok := FloorOf("12.7"); ok {
		t.Errorf("CUDA 12.7 was never released: %+v", f)
	}
	for _, cuda := range CUDAs() {
		if _, ok := FloorOf(cuda); !ok {
			t.Errorf("torch is built for CUDA %s, whose driver floor is not known", cuda)
		}
	}
	for _, f := range known().floors {
		compat, err := version.ParseDriver(f.Compat)
		if err != nil {
			t.Error(err)
		}
		for _, later := range []string{f.Strict, f.Shipped} {
			if later != "" && !older(compat, later) && compat.String() != later {
				t.Errorf("CUDA %s: compat floor %s is above %s", f.CUDA, f.Compat, later)
			}
		}
		if f.Strict != "" && f.Branch != "R"+f.Strict[:3] {
			t.Errorf("CUDA %s: driver %s is not of branch %s", f.CUDA, f.Strict, f.Branch)
		}
	}
}

func TestGPUs(t *testing.T) {
	byName := map[string]GPU{}
	for _, g := range GPUs() {
		byName[g.Name] = g
	}
	if g := byName["A100"]; g.Capability != "8.0" || g.CUDA != "11.0" {
		t.Errorf("A100: %+v", g)
	}
	cu118, cu121 := Archs("2.4.1", "11.8"), Archs("2.4.1", "12.1")
	for name, want := range map[string]bool{"Tesla V100": true, "A100": true, "L4": true, "H100": true, "B200": false, "GeForce RTX 5090": false} {
		g, ok := byName[name]
		if !ok {
			t.Errorf("no %s in the table", name)
		}
		if runs(cu118, g.Capability) != want || runs(cu121, g.Capability) != want {
			t.Errorf("%s served by cu118 %v, by cu121 %v; want %v", name, runs(cu118, g.Capability), runs(cu121, g.Capability), want)
		}
	}
	if runs([]string{"8.6"}, "8.0") || Archs("2.6.0", "12.1") != nil {
		t.Error("code for 8.6 does not run on 8.0, and what does not exist has no code")
	}
}
