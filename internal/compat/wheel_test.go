package compat

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestIndexWheel(t *testing.T) {
	w, ok := IndexWheel("2.1.2", "11.8", "3.11")
	if !ok {
		t.Fatal("torch 2.1.2 for CUDA 11.8 is not in the table")
	}
	if w.File != "torch-2.1.2+cu118-cp311-cp311-linux_x86_64.whl" || w.Size != 2325933097 ||
		w.SHA256 != "051833f6174e672eb313ee1c70dbcaf97e558dc46237215407933d28f40bca85" {
		t.Errorf("got %+v", w)
	}
	if !strings.HasPrefix(w.Source, "2 public sources: ") {
		t.Errorf("source %q does not say how many agree", w.Source)
	}
	for _, r := range w.Requires {
		if strings.HasPrefix(r, "nvidia-") {
			t.Errorf("the CUDA libraries are inside this wheel, and yet it requires %s", r)
		}
	}
	for _, c := range [][3]string{{"2.1.2", "11.8", "3.8"}, {"2.6.0", "12.1", "3.11"}, {"2.3.0", "12.1", "3.12"}, {"", "", ""}} {
		if w, ok := IndexWheel(c[0], c[1], c[2]); ok {
			t.Errorf("%v: %+v", c, w)
		}
	}
}

// TestIndexWheels: each build whose wheel no Python index holds, as far as its
// requirements are known, has the wheel of every Python from 3.9, with the pins that the
// build has. A matrix with 12.4, 12.6 or 12.8 is locked as one with 12.1.
func TestIndexWheels(t *testing.T) {
	unknown := map[string]bool{}
	for _, torch := range Torches() {
		for _, cuda := range cudasFor(torch) {
			if plain, _ := PlainCUDA(torch); plain == cuda {
				continue
			}
			build, err := Lookup(torch, cuda)
			if err != nil {
				t.Fatal(err)
			}
			for _, python := range build.Pythons {
				w, ok := IndexWheel(torch, cuda, python)
				if !ok && python != "3.8" && python != "3.14" && python != "3.15" {
					unknown[torch+" "+cuda] = true
				} else if ok {
					requiresPins(t, w, build)
				}
			}
		}
	}
	for _, known := range []string{
		"2.1.2 11.8", "2.2.2 11.8", "2.3.1 11.8", "2.4.1 11.8", "2.5.1 11.8", "2.5.1 12.1", // the universal matrix
		"2.4.0 12.4", "2.4.1 12.4", "2.6.0 11.8", "2.6.0 12.6", "2.7.1 11.8", "2.7.1 12.8", "2.8.0 12.6", "2.9.1 12.6",
	} {
		if unknown[known] {
			t.Errorf("torch and CUDA %s have no wheel, or not for every Python", known)
		}
	}
	if want := 18; len(unknown) != want {
		t.Errorf("%d builds have no wheel, not %d: %v", len(unknown), want, slices.Sorted(maps.Keys(unknown)))
	}
}

func requiresPins(t *testing.T, w Wheel, build Torch) {
	t.Helper()
	want := []string{"triton==" + build.Triton}
	if !build.Bundled {
		suffix := "-cu" + build.CUDA[:2] + "=="
		want = append(want, "nvidia-cudnn"+suffix+build.CuDNN, "nvidia-nccl"+suffix+build.NCCL)
	}
	for _, pin := range want {
		if !slices.ContainsFunc(w.Requires, func(r string) bool { return strings.HasPrefix(r, pin+";") }) {
			t.Errorf("%s does not require %s: %q", w.File, pin, w.Requires)
		}
	}
	for _, c := range Conflicts(names(w.Requires)) {
		t.Errorf("%s requires %s", w.File, c)
	}
}

// names are the distributions that requirements name.
func names(requirements []string) []string {
	var out []string
	for _, r := range requirements {
		name, _, _ := strings.Cut(r, "=")
		out = append(out, strings.TrimSpace(name))
	}
	return out
}

// TestWheelTags: an old and a new platform tag are both found.
func TestWheelTags(t *testing.T) {
	for _, c := range [][4]string{
		{"2.4.1", "12.4", "3.11", "torch-2.4.1+cu124-cp311-cp311-linux_x86_64.whl"},
		{"2.6.0", "12.6", "3.11", "torch-2.6.0+cu126-cp311-cp311-manylinux_2_28_x86_64.whl"},
		{"2.7.1", "12.8", "3.13", "torch-2.7.1+cu128-cp313-cp313-manylinux_2_28_x86_64.whl"},
	} {
		if w, ok := IndexWheel(c[0], c[1], c[2]); !ok || w.File != c[3] {
			t.Errorf("%v: %+v", c, w.File)
		}
	}
}
