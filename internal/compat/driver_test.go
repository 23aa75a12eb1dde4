package compat

import (
	"strings"
	"testing"
)

func TestParseHostDriver(t *testing.T) {
	for _, s := range []string{"535", "R535", "535.x", "535.104.05", "450.80.02", "570.26"} {
		d, err := ParseHostDriver(s)
		if err != nil || !d.Known() || d.Major() < 450 {
			t.Errorf("%s: %+v, %v", s, d, err)
		}
	}
	for _, s := range []string{"", "R", "x", "abc", ">=535", "535.x.1", "-1", "535.", "99999999"} {
		if d, err := ParseHostDriver(s); err == nil {
			t.Errorf("%q was taken as %s", s, d)
		}
	}
}

// TestBranchIsItsNewest: a branch meets the floors within it, a version only those
// that are not newer.
func TestBranchIsItsNewest(t *testing.T) {
	for _, c := range []struct {
		driver, cuda string
		some, all    bool
	}{
		{"535", "12.2", true, true}, {"535.43", "12.2", true, false}, {"525", "12.0", true, true}, {"525.60.11", "12.0", false, false},
		{"470", "11.8", true, false}, {"470", "12.1", false, false}, {"450", "11.0", true, true}, {"580", "13.0", true, true},
		{"610", "13.3", true, true}, {"595", "13.3", true, false}, {"575", "13.0", false, false}, {"620", "11.0", true, true},
	} {
		d, err := ParseHostDriver(c.driver)
		f, ok := FloorOf(c.cuda)
		if err != nil || !ok {
			t.Fatal(err, ok)
		}
		if some, all := d.Runs(f); some != c.some || all != c.all {
			t.Errorf("driver %s runs CUDA %s: %v, all of it: %v", c.driver, c.cuda, some, all)
		}
	}
}

func TestBranches(t *testing.T) {
	if b := BranchOf(535); b.Kind != "long-term support" || b.End != "2026-06" || strings.Join(b.CUDA, " ") != "12.2" {
		t.Errorf("R535: %+v", b)
	}
	if b := BranchOf(999); b.Name != "R999" || b.End != "" || b.CUDA != nil {
		t.Errorf("R999: %+v", b)
	}
	all := Branches()
	sorted(t, "branches", all, func(a, b Branch) int { return compareDrivers(a.Name, b.Name) })
	if all[0].Name != "R450" || all[len(all)-1].Name != "R620" {
		t.Errorf("from %s to %s", all[0].Name, all[len(all)-1].Name)
	}
}

func TestUpdatesAndImages(t *testing.T) {
	if got := strings.Join(Updates("12.1"), " "); got != "12.1.0 12.1.1" {
		t.Errorf("updates of 12.1: %s", got)
	}
	if got := Updates("1"); got != nil {
		t.Errorf("updates of 1: %v", got)
	}
	images := BaseImages("12.8")
	if len(images) != 2 || images[1].Update != "12.8.1" || images[1].CuDNN != "9" || strings.Join(images[1].Ubuntus, " ") != "20.04 22.04 24.04" {
		t.Errorf("images of 12.8: %+v", images)
	}
}

func FuzzParseHostDriver(f *testing.F) {
	for _, seed := range []string{"535", "R535.x", "450.80.02", "", "..", "R", "0", "00000.00000.00000.00000"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseHostDriver(s)
		if err != nil {
			return
		}
		again, err := ParseHostDriver(d.String())
		if err != nil || again.at.Compare(d.at) != 0 {
			t.Errorf("%q is %q, which is %+v, %v", s, d, again, err)
		}
		for _, floor := range Floors() {
			if some, all := d.Runs(floor); all && !some {
				t.Errorf("%q has all of CUDA %s and does not run it", s, floor.CUDA)
			}
		}
	})
}
