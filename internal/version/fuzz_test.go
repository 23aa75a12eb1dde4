package version

import (
	"strings"
	"testing"
)

func FuzzDriver(f *testing.F) {
	for _, s := range []string{"450.80.02", ">=525.60.13", "455.32", "", ">=", "1.2.3.4.5", "0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		floor, floorErr := ParseFloor(s)
		d, err := ParseDriver(s)
		if err != nil {
			return
		}
		if d.String() != s || d.Compare(d) != 0 || d.Major() <= 0 {
			t.Errorf("%q came out as %q, major %d", s, d, d.Major())
		}
		if floorErr != nil || floor.Compare(d) != 0 {
			t.Errorf("%q is a driver but as a floor: %v, %v", s, floor, floorErr)
		}
	})
}

func FuzzCUDA(f *testing.F) {
	for _, s := range []string{"12.1", "11.8", "12.1.1", "cu121", "012.1", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if c, err := ParseCUDA(s); err == nil && c.String() != s {
			t.Errorf("%q came out as %q", s, c)
		}
	})
}

// FuzzCompare holds both orders to being orders: what is less one way is more
// the other way.
func FuzzCompare(f *testing.F) {
	f.Add("2.4.1", "2.4.1+cu118")
	f.Add("1:2.36-9", "2.36-9~bpo12")
	f.Add("2.4.1.post1.dev2", "1!0a1")
	f.Fuzz(func(t *testing.T, a, b string) {
		for name, compare := range map[string]func(a, b string) (int, error){"PEP 440": ComparePEP440, "Debian": CompareDebian} {
			there, err := compare(a, b)
			back, errBack := compare(b, a)
			if (err == nil) != (errBack == nil) || sign(there) != -sign(back) {
				t.Errorf("%s: %q against %q: %d, %v; and back: %d, %v", name, a, b, there, err, back, errBack)
			}
		}
	})
}

func FuzzInRange(f *testing.F) {
	f.Add("2.4.1", "~2.3")
	f.Add("12.1", ">=2.1,<2.6")
	f.Add("2", "1.x || >= 3 - 4")
	f.Fuzz(func(t *testing.T, v, constraint string) {
		if in, err := InRange(v, constraint); in && err != nil {
			t.Errorf("InRange(%q, %q) is true with an error: %v", v, constraint, err)
		}
	})
}

func FuzzNormalizeName(f *testing.F) {
	f.Add("Typing_Extensions")
	f.Fuzz(func(t *testing.T, s string) {
		once := NormalizeName(s)
		if NormalizeName(once) != once || strings.ContainsAny(once, "_.") {
			t.Errorf("%q came out as %q", s, once)
		}
	})
}
