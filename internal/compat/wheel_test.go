package compat

import (
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

// TestIndexWheelsOfTheMatrix: every cell of the universal matrix whose torch is
// not the plain wheel has an entry, with the pins that its build has.
func TestIndexWheelsOfTheMatrix(t *testing.T) {
	for _, torch := range []string{"2.1.2", "2.2.2", "2.3.1", "2.4.1", "2.5.1"} {
		for _, cuda := range []string{"11.8", "12.1"} {
			if plain, _ := PlainCUDA(torch); plain == cuda {
				continue
			}
			w, ok := IndexWheel(torch, cuda, "3.11")
			if !ok {
				t.Errorf("torch %s for CUDA %s has no entry", torch, cuda)
				continue
			}
			build, err := Lookup(torch, cuda)
			if err != nil {
				t.Fatal(err)
			}
			want := []string{"triton==" + build.Triton}
			if !build.Bundled {
				suffix := "-cu" + cuda[:2] + "=="
				want = append(want, "nvidia-cudnn"+suffix+build.CuDNN, "nvidia-nccl"+suffix+build.NCCL)
			}
			for _, w1 := range want {
				if !slices.ContainsFunc(w.Requires, func(r string) bool { return strings.HasPrefix(r, w1+";") }) {
					t.Errorf("torch %s for CUDA %s does not require %s: %q", torch, cuda, w1, w.Requires)
				}
			}
		}
	}
}
