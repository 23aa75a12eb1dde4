package version

import (
	"strings"
	"testing"
)

func TestDriverOrder(t *testing.T) {
	ordered := []string{"450.36.06", "450.51.05", "450.80.02", "455.32", "520.61.05", "525.60.13", "525.85.12", "530.30.02", "535", "535.54.03", "570.26", "570.124.06"}
	for i, a := range ordered {
		for j, b := range ordered {
			x, y := driver(t, a), driver(t, b)
			if got, want := sign(x.Compare(y)), sign(i-j); got != want {
				t.Errorf("%s against %s: %d, want %d", a, b, got, want)
			}
		}
	}
}

func TestDriverText(t *testing.T) {
	d := driver(t, "450.80.02")
	if d.String() != "450.80.02" || d.Major() != 450 {
		t.Errorf("got %q, major %d", d, d.Major())
	}
	if driver(t, "455.32").Compare(driver(t, "455.32.00")) != 0 {
		t.Error("455.32 and 455.32.00 are one driver")
	}
	var zero Driver
	if zero.Major() != 0 || zero.Compare(d) >= 0 {
		t.Error("the zero driver must be older than any")
	}
}

func TestParseDriverRefuses(t *testing.T) {
	for _, s := range []string{"", ".", "525.", ".60", "525..13", "525.60.13.1.2", "v525", "525-60", "0.1", "５２５", "+525", "999999", ">=525", " 525"} {
		if d, err := ParseDriver(s); err == nil {
			t.Errorf("%q was taken as %v", s, d)
		} else if !strings.Contains(err.Error(), "525.60.13") {
			t.Errorf("%q: the error does not say what is allowed: %v", s, err)
		}
	}
}

func TestParseFloor(t *testing.T) {
	for in, want := range map[string]string{">=450.80.02": "450.80.02", "525.60.13": "525.60.13", " >= 570.26 ": "570.26"} {
		if d, err := ParseFloor(in); err != nil || d.String() != want {
			t.Errorf("%q: %v, %v; want %s", in, d, err, want)
		}
	}
	for _, s := range []string{"", ">=", ">450.80.02", "==450.80.02", "<=525", "~525", ">=>=525", ">=450.80.02,<525"} {
		if d, err := ParseFloor(s); err == nil {
			t.Errorf("%q was taken as %v", s, d)
		} else if !strings.Contains(err.Error(), ">=525.60.13 or the bare version") {
			t.Errorf("%q: the error does not say what is allowed: %v", s, err)
		}
	}
}

func TestCUDA(t *testing.T) {
	c, err := ParseCUDA("12.1")
	if err != nil || c != (CUDA{12, 1}) || c.String() != "12.1" || c.Local() != "cu121" {
		t.Fatalf("got %+v %s %s, %v", c, c, c.Local(), err)
	}
	ordered := []CUDA{{9, 2}, {11, 8}, {12, 1}, {12, 8}, {12, 10}, {13, 0}}
	for i, a := range ordered {
		for j, b := range ordered {
			if sign(a.Compare(b)) != sign(i-j) {
				t.Errorf("%s against %s: %d", a, b, a.Compare(b))
			}
		}
	}
	for in, hint := range map[string]string{
		"12": "major.minor", "": "major.minor", "cu121": "major.minor", "12.01": "major.minor",
		"0.1": "major.minor", "12.1.1": "leave the update out: 12.1", "12.x": "major.minor",
	} {
		if c, err := ParseCUDA(in); err == nil {
			t.Errorf("%q was taken as %v", in, c)
		} else if !strings.Contains(err.Error(), hint) {
			t.Errorf("%q: want %q in %v", in, hint, err)
		}
	}
}

func TestComparePEP440(t *testing.T) {
	ordered := []string{"1!0.1.dev1", "1!2.4.1rc1", "1!2.4.1", "1!2.4.1+cpu", "1!2.4.1+cu118", "1!2.4.1.post1", "1!2.10.0"}
	for i, a := range ordered {
		for j, b := range ordered {
			if got, err := ComparePEP440(a, b); err != nil || sign(got) != sign(i-j) {
				t.Errorf("%s against %s: %d, %v", a, b, got, err)
			}
		}
	}
	if got, err := ComparePEP440("2.4", "2.4.0"); err != nil || got != 0 {
		t.Errorf("2.4 and 2.4.0 are one version: %d, %v", got, err)
	}
	for _, pair := range [][2]string{{"2.4.x", "1"}, {"1", ""}} {
		if _, err := ComparePEP440(pair[0], pair[1]); err == nil || !strings.Contains(err.Error(), "2.4.1+cu118") {
			t.Errorf("%q: %v", pair, err)
		}
	}
}

func TestCompareDebian(t *testing.T) {
	ordered := []string{"2.36~rc1-1", "2.36-9", "2.36-9+deb12u4", "2.36-9+deb12u13", "2.36-10~bpo", "2.36-10", "1:0.1"}
	for i, a := range ordered {
		for j, b := range ordered {
			if got, err := CompareDebian(a, b); err != nil || sign(got) != sign(i-j) {
				t.Errorf("%s against %s: %d, %v", a, b, got, err)
			}
		}
	}
	for _, pair := range [][2]string{{"", "1"}, {"1", "a b"}, {"x:1", "1"}, {"1", "1-"}} {
		if _, err := CompareDebian(pair[0], pair[1]); err == nil || !strings.Contains(err.Error(), "[epoch:]upstream[-revision]") {
			t.Errorf("%q: %v", pair, err)
		}
	}
}

func TestInRange(t *testing.T) {
	for _, c := range []struct {
		v, constraint string
		want          bool
	}{
		{"2.3.1", "~2.3", true}, {"2.4.0", "~2.3", false}, {"2.3.0", "2.3.x", true},
		{"2.5.1", ">=2.1,<2.6", true}, {"2.6.0", ">=2.1,<2.6", false}, {"2.1.0", ">=2.1, <2.6", true},
		{"2.10.0", ">=2.9", true}, {"2.4.1", "2.4.1", true}, {"2.4.0", "2.4.1", false},
		{"2.4.1", "2.4", true}, {"12.1", "12.1", true}, {"12.1", "<12.4", true}, {"12.8", "12.1", false}, {"2.2.2", "2.1.2 || 2.2.2", true},
	} {
		if got, err := InRange(c.v, c.constraint); err != nil || got != c.want {
			t.Errorf("InRange(%q, %q) = %v, %v", c.v, c.constraint, got, err)
		}
	}
	if _, err := InRange("2.4.1", "latest"); err == nil || !strings.Contains(err.Error(), "~2.3") {
		t.Errorf("a bad range: %v", err)
	}
	if _, err := InRange("new", "~2.3"); err == nil || !strings.Contains(err.Error(), `"new"`) {
		t.Errorf("a bad version: %v", err)
	}
}

func TestNormalizeName(t *testing.T) {
	for in, want := range map[string]string{
		"Jinja2": "jinja2", "typing_extensions": "typing-extensions", "ruamel.yaml": "ruamel-yaml",
		"A-._b": "a-b", "opencv-python": "opencv-python", "": "",
	} {
		if got := NormalizeName(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func driver(t *testing.T, s string) Driver {
	t.Helper()
	d, err := ParseDriver(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func sign(n int) int { return min(1, max(-1, n)) }
