package rootfs

import (
	"archive/tar"
	"bytes"
	"io"
	"strings"
	"testing"
)

func device0(name string) entry {
	return entry{tar.Header{Typeflag: tar.TypeChar, Name: name, Mode: 0o666, Devmajor: 1, Devminor: 3}, ""}
}

// someone is a small root as tools write it: ./ before names, devices in dev.
func someone() []entry {
	return []entry{
		dir("./", 0o755), dir("./usr/", 0o755), dir("./usr/bin/", 0o755), link("./bin", "usr/bin"),
		file("./usr/bin/python3.10", "py"), hard("./usr/bin/twin", "./usr/bin/python3.10"),
		dir("./tmp/", 0o1777), device0("./dev/null"), file("./etc/os-release", "ID=x\n"),
	}
}

func TestFromTar(t *testing.T) {
	want := `5 0755 0:0 1000 usr/
5 0755 0:0 1000 usr/bin/
`
	for _, suffix := range []string{"", ".gz", ".xz", ".zst"} {
		var first bytes.Buffer
		for range 5 {
			var out bytes.Buffer
			if err := FromTar(&out, "root"+suffix, bytes.NewReader(compress(t, suffix, tarOf(t, someone()...))), 2000); err != nil {
				t.Fatal(err)
			}
			if first.Len() == 0 {
				first = out
			}
			if !bytes.Equal(first.Bytes(), out.Bytes()) {
				t.Fatal("two runs differ")
			}
		}
		got := listing(t, first.Bytes())
		if !strings.Contains(got, want) || strings.Contains(got, "dev/null") || !strings.Contains(got, "1 0644 0:0 1000 usr/bin/twin") {
			t.Errorf("%q:\n%s", suffix, got)
		}
		inside(t, first.Bytes())
	}
}

func TestTarballsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		entries []entry
		want    string
	}{
		"traversal":       {[]entry{file("../etc/x", "x")}, "root.tar: ../etc/x: the path holds .."},
		"absolute":        {[]entry{file("/etc/x", "x")}, "root.tar: /etc/x: the path is absolute"},
		"through a link":  {[]entry{link("etc", "/etc"), file("etc/x", "x")}, "etc/x: its parent is a symbolic link"},
		"device":          {[]entry{device0("srv/null")}, "root.tar: srv/null: type"},
		"hard link out":   {[]entry{hard("x", "../y")}, "root.tar: x: hard link to"},
		"file over a dir": {[]entry{dir("x/", 0o755), file("x", "x")}, "root.tar: x: a file here, a directory in root.tar"},
		"twice":           {[]entry{file("x", "1"), file("x", "2")}, "root.tar: x: it is there twice"},
	} {
		t.Run(name, func(t *testing.T) {
			err := FromTar(io.Discard, "root.tar", bytes.NewReader(tarOf(t, tc.entries...)), epoch)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestTarballBombsAndDamage(t *testing.T) {
	lim := limits{members: 5, total: 5000, member: 4000}
	big := compress(t, ".gz", tarOf(t, file("a", strings.Repeat("0", 3000)), file("b", strings.Repeat("0", 3000))))
	many := tarOf(t, file("a", ""), file("b", ""), file("c", ""), file("d", ""), file("e", ""), file("f", ""))
	whole := compress(t, ".gz", tarOf(t, someone()...))
	for name, tc := range map[string]struct {
		data []byte
		want string
	}{
		"too large":  {big, "b: it unpacks to more than the 5000 bytes allowed"},
		"too many":   {many, "f: more than the 5 files allowed"},
		"cut short":  {whole[:len(whole)/2], "unexpected EOF"},
		"no archive": {[]byte("<html>not found</html>" + strings.Repeat(" ", 1024)), "root: tar:"},
	} {
		t.Run(name, func(t *testing.T) {
			err := fromTar(io.Discard, tarball{"root", bytes.NewReader(tc.data)}, epoch, lim)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func FuzzFromTar(f *testing.F) {
	f.Add(tarOf(f, someone()...))
	f.Add(compress(f, ".gz", tarOf(f, someone()...)))
	f.Add(compress(f, ".zst", tarOf(f, link("etc", "/etc"), file("etc/x", "x"))))
	f.Fuzz(func(t *testing.T, data []byte) {
		var b bytes.Buffer
		if fromTar(&b, tarball{"f", bytes.NewReader(data)}, epoch, limits{members: 1000, total: 1 << 20, member: 1 << 20}) == nil {
			inside(t, b.Bytes())
		}
	})
}
