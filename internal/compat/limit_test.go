package compat

import (
	"slices"
	"strings"
	"testing"
)

func requirements(limits []Limit) []string {
	var out []string
	for _, l := range limits {
		out = append(out, l.Requirement)
	}
	return out
}

// TestNumPy: jupyter/notebook#7522, ai2cm/ace#378.
func TestNumPy(t *testing.T) {
	for torch, want := range map[string]bool{"2.0.1": true, "2.1.2": true, "2.2.2": true, "2.3.0": false, "2.4.1": false, "2.10.0": false} {
		got := requirements(Limits(torch, "11.8", "3.11"))
		if slices.Contains(got, "numpy<2") != want {
			t.Errorf("torch %s has the limits %v", torch, got)
		}
		if !slices.IsSorted(got) {
			t.Errorf("torch %s: not sorted: %v", torch, got)
		}
	}
	for _, l := range Limits("2.1.2", "12.1", "3.11") {
		if l.Why == "" || l.Source == "" {
			t.Errorf("%s says neither why nor where from", l.Requirement)
		}
	}
}

// TestOpenCVForNumPy2: where NumPy 2 may be chosen, OpenCV must be built for it.
func TestOpenCVForNumPy2(t *testing.T) {
	got := requirements(Limits("2.4.1", "12.1", "3.11"))
	if !slices.Contains(got, "opencv-python-headless>=4.10.0.84") {
		t.Errorf("limits: %v", got)
	}
	if got := requirements(Limits("2.2.2", "12.1", "3.11")); !slices.Equal(got, []string{"numpy<2"}) {
		t.Errorf("limits: %v", got)
	}
	if got := Limits("not a version", "", ""); got != nil {
		t.Errorf("limits: %v", got)
	}
}

func pairs(dists ...string) string {
	var out []string
	for _, c := range Conflicts(dists) {
		out = append(out, c.A+" "+c.B)
	}
	return strings.Join(out, ", ")
}

func TestConflicts(t *testing.T) {
	for _, c := range []struct {
		name  string
		dists []string
		want  string
	}{
		{"one of each is fine", []string{"opencv-python-headless", "torch", "numpy", "nvidia-nccl-cu12", "nvidia-cublas-cu12", "nvidia-ml-py"}, ""},
		{"nothing", nil, ""},
		{"one distribution twice is one", []string{"opencv-python", "opencv-python"}, ""},
		// opencv-python#467, supervision#351
		{"two OpenCV", []string{"opencv-python-headless", "numpy", "opencv-python"}, "opencv-python opencv-python-headless"},
		{"three OpenCV are three pairs", []string{"opencv-python", "opencv-contrib-python", "opencv-contrib-python-headless"},
			"opencv-contrib-python opencv-contrib-python-headless, opencv-contrib-python opencv-python, opencv-contrib-python-headless opencv-python"},
		// the report behind "never an extra index"
		{"the same library twice", []string{"nvidia-nccl-cu11", "nvidia-nccl-cu12", "nvidia-cublas-cu12"}, "nvidia-nccl-cu11 nvidia-nccl-cu12"},
		{"a mixture that shares no library", []string{"nvidia-nccl-cu12", "nvidia-cufft-cu12", "nvidia-cublas-cu11"}, "nvidia-cublas-cu11 nvidia-cufft-cu12"},
		{"12 with 13", []string{"nvidia-nccl-cu13", "nvidia-nccl-cu12"}, "nvidia-nccl-cu12 nvidia-nccl-cu13"},
	} {
		if got := pairs(c.dists...); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// TestEveryTwoOpenCV refuses any two of the four, in either order.
func TestEveryTwoOpenCV(t *testing.T) {
	four := []string{"opencv-contrib-python", "opencv-contrib-python-headless", "opencv-python", "opencv-python-headless"}
	for i, a := range four {
		for _, b := range four[i+1:] {
			got := Conflicts([]string{b, a})
			if len(got) != 1 {
				t.Errorf("%s with %s: %v", a, b, got)
				continue
			}
			for _, must := range []string{a, b, "cv2"} {
				if !strings.Contains(got[0].String(), must) {
					t.Errorf("%q does not name %s", got[0], must)
				}
			}
		}
	}
}
