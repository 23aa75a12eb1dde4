package resolve

import (
	"fmt"
	"strings"
	"testing"
)

// stanzaOf writes a stanza; more is further fields, one a line.
func stanzaOf(name, version string, more ...string) string {
	s := fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: amd64\nFilename: pool/main/%s_%s_amd64.deb\nSize: 100\nSHA256: %s\n",
		name, version, name, strings.ReplaceAll(version, ":", "%3a"), someHash)
	return s + strings.Join(append(more, ""), "\n")
}

func parse(t testing.TB, archive string, stanzas ...string) []*deb {
	t.Helper()
	debs, err := parsePackages(strings.Join(stanzas, "\n"), archive)
	if err != nil {
		t.Fatal(err)
	}
	return debs
}

func universeOf(t testing.TB, debs ...*deb) *universe {
	t.Helper()
	u, err := newUniverse(debs)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestParsePackages(t *testing.T) {
	debs := parse(t, "debian",
		stanzaOf("zsh", "2:5.9-4", "Essential: yes", "Pre-Depends: libc6 (>= 2.36)", "Depends: zsh-common | x", "Description: a shell", " Package: not-this-one"),
		stanzaOf("tzdata", "2026a-0+deb12u1", "Priority: required"))
	if len(debs) != 2 {
		t.Fatalf("got %d packages", len(debs))
	}
	z := debs[0]
	if z.key() != "zsh_2:5.9-4_amd64" || !z.essential || z.required || z.depends != "libc6 (>= 2.36), zsh-common | x" {
		t.Errorf("got %+v", z)
	}
	e := z.entry()
	if e.Value != "debian/pool/main/zsh_2%3a5.9-4_amd64.deb" || e.Size != 100 || e.Hash != "sha256:"+someHash {
		t.Errorf("got %+v", e)
	}
	if b := z.blob(); b.Name != "zsh_2%3a5.9-4_amd64.deb" {
		t.Errorf("got %+v", b)
	}
	if !debs[1].required || debs[1].essential {
		t.Errorf("got %+v", debs[1])
	}
}

func TestParsePackagesRefuses(t *testing.T) {
	good := stanzaOf("zsh", "5.9")
	for _, tc := range []struct{ old, new, want string }{
		{"Package: zsh", "Package:", "no usable Package"},
		{"Package: zsh", "Package: ../zsh", "no usable Package"},
		{"Version: 5.9", "Version: 5 9", "no usable Package"},
		{"Size: 100", "Size: -1", `zsh_5.9_amd64: bad Size "-1"`},
		{"Size: 100", "Size: many", `bad Size "many"`},
		{someHash, "abc", `bad SHA256 "abc"`},
		{"pool/main", "/pool", "bad Filename"},
		{"pool/main", "../pool", "bad Filename"},
		{"pool/main", "pool/../../x", "bad Filename"},
		{"pool/main", "pool /main", "bad Filename"},
	} {
		_, err := parsePackages(strings.Replace(good, tc.old, tc.new, 1), "debian")
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.new, err, tc.want)
		}
	}
}

func TestNewestOfThreeSuites(t *testing.T) {
	main := parse(t, "debian", stanzaOf("a", "1.0-1"), stanzaOf("b", "1.0~rc1"), stanzaOf("c", "2:1"))
	security := parse(t, "debian-security", stanzaOf("a", "1.0-1+deb12u1"), stanzaOf("b", "1.0~rc1"), stanzaOf("c", "9"))
	u := universeOf(t, append(main, security...)...)
	for name, want := range map[string]string{
		"a": "debian-security/pool/main/a_1.0-1+deb12u1_amd64.deb",
		"b": "debian/pool/main/b_1.0~rc1_amd64.deb", // in both: the main archive's stays
		"c": "debian/pool/main/c_2%3a1_amd64.deb",   // the epoch counts
	} {
		if got := u.newest[name].origin; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if len(u.byKey) != 5 {
		t.Errorf("%d packages are known by key, want 5", len(u.byKey))
	}
}

func TestClosure(t *testing.T) {
	u := universeOf(t, parse(t, "debian",
		stanzaOf("apt", "1", "Depends: libc6 (>= 2.36), gpgv | gpgv2"),
		stanzaOf("base-files", "1", "Essential: yes", "Pre-Depends: awk"),
		stanzaOf("tzdata", "1", "Priority: required", "Depends: debconf (>= 0.5) | debconf-2.0"),
		stanzaOf("debconf", "1", "Depends: base-files"),
		stanzaOf("gawk", "1", "Provides: awk (= 1), gawk-any"), stanzaOf("mawk", "1", "Provides: awk"),
		stanzaOf("gpgv2", "1"), stanzaOf("libc6", "2.36", "Depends: libgcc-s1"), stanzaOf("libgcc-s1", "12", "Depends: libc6"),
		stanzaOf("unused", "1"), stanzaOf("broken", "1", "Depends: nowhere"), stanzaOf("pager", "1", "Depends: nowhere | mawk, awk"))...)
	if got := strings.Join(u.minimal(), " "); got != "apt base-files tzdata" {
		t.Errorf("minimal: %s", got)
	}
	for _, tc := range []struct{ seeds, want string }{
		{"apt base-files tzdata", "apt base-files debconf gawk gpgv2 libc6 libgcc-s1 tzdata"},
		{"mawk base-files", "base-files mawk"}, // chosen already: no second awk
		{"pager", "mawk pager"},
	} {
		debs, err := u.closure(strings.Fields(tc.seeds))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, d := range debs {
			names = append(names, d.name)
		}
		if got := strings.Join(names, " "); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.seeds, got, tc.want)
		}
	}
	if _, err := u.closure([]string{"broken"}); err == nil || err.Error() != "no package nowhere, needed by broken, in the archive" {
		t.Errorf("got %v", err)
	}
}

func FuzzParsePackages(f *testing.F) {
	f.Add(stanzaOf("zsh", "5.9", "Depends: a (>= 1) | b [amd64], c:any", "Provides: d (= 1)"))
	f.Fuzz(func(t *testing.T, text string) {
		debs, err := parsePackages(text, "debian")
		if err != nil {
			return
		}
		u, err := newUniverse(debs)
		if err != nil {
			return
		}
		for _, d := range u.newest {
			if strings.Contains("/"+d.origin+"/", "/../") || !strings.HasPrefix(d.origin, "debian/") {
				t.Errorf("origin %q", d.origin)
			}
		}
		_, _ = u.closure(u.minimal())
	})
}

func TestVirtual(t *testing.T) {
	debs := []*deb{{name: "mawk", stanza: "Package: mawk"}, {name: "zsh", stanza: "Package: zsh"}}
	if got := virtual([]string{"zsh", "awk"}, statusOf(debs)); got != "awk" {
		t.Errorf("got %q, want awk", got)
	}
	if got := virtual([]string{"zsh", "mawk"}, statusOf(debs)); got != "" {
		t.Errorf("%q is a package of its own", got)
	}
}
