package rootfs

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"math/rand"
	"strings"
	"testing"
	"time"
)

const epoch = 5000

func build(t *testing.T, debs ...Deb) string {
	t.Helper()
	var b bytes.Buffer
	if err := FromDebs(&b, debs, epoch); err != nil {
		t.Fatal(err)
	}
	return listing(t, b.Bytes())
}

func TestLayout(t *testing.T) {
	late := file("./usr/share/late", "x")
	late.ModTime = time.Unix(epoch+1, 0)
	suid := file("./bin/su", "su")
	suid.Mode, suid.Gid = 0o4755, 42
	got := build(t,
		mem("b_1_amd64.deb", debOf(t, ".zst", dir("./", 0o755), suid, hard("./usr/sbin/su2", "./bin/su"), late)),
		mem("a_1_amd64.deb", debOf(t, ".xz", dir("./bin/", 0o755), dir("./tmp/", 0o755), link("./lib64/ld.so", "/lib/ld.so"), file("./usr/bin/mawk", "m"))),
		mem("c_1_amd64.deb", debOf(t, ".gz", dir("./tmp/", 0o1777), link("./lib", "usr/lib"))),
		mem("d_1_amd64.deb", debOf(t, "", dir("./tmp", 0o755))),
	)
	want := `2 0777 0:0 5000 bin -> usr/bin
2 0777 0:0 5000 lib -> usr/lib
2 0777 0:0 5000 lib64 -> usr/lib64
2 0777 0:0 5000 sbin -> usr/sbin
5 1777 0:0 1000 tmp/
5 0755 0:0 5000 usr/
5 0755 0:0 1000 usr/bin/
2 0777 0:0 5000 usr/bin/awk -> mawk
0 0644 0:0 1000 usr/bin/mawk "m"
0 4755 0:42 1000 usr/bin/su "su"
5 0755 0:0 5000 usr/lib/
5 0755 0:0 5000 usr/lib64/
2 0777 0:0 1000 usr/lib64/ld.so -> /lib/ld.so
5 0755 0:0 5000 usr/sbin/
1 4755 0:42 1000 usr/sbin/su2 -> usr/bin/su
5 0755 0:0 5000 usr/share/
0 0644 0:0 5000 usr/share/late "x"
5 0755 0:0 5000 var/
5 0755 0:0 5000 var/lib/
5 0755 0:0 5000 var/lib/dpkg/
5 0755 0:0 5000 var/lib/dpkg/alternatives/
0 0644 0:0 5000 var/lib/dpkg/available
5 0755 0:0 5000 var/lib/dpkg/info/
5 0755 0:0 5000 var/lib/dpkg/parts/
0 0644 0:0 5000 var/lib/dpkg/status
5 0755 0:0 5000 var/lib/dpkg/triggers/
5 0755 0:0 5000 var/lib/dpkg/updates/
`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestSamePathInTwoDebs(t *testing.T) {
	a, b := mem("a.deb", debOf(t, "", file("etc/x", "from a"), file("etc/same", "s"))), mem("b.deb", debOf(t, "", file("etc/x", "from b"), file("etc/same", "s")))
	for _, debs := range [][]Deb{{a, b}, {b, a}} {
		got := build(t, debs...)
		if !strings.Contains(got, `etc/x "from b"`) || strings.Contains(got, "from a") || strings.Count(got, "etc/same") != 1 {
			t.Errorf("the later .deb by name should win:\n%s", got)
		}
	}
}

// The first name of a hard link in sorted order carries the content, whichever
// name the .deb gave it to.
func TestHardLinkSortsBeforeItsTarget(t *testing.T) {
	got := build(t, mem("a.deb", debOf(t, "", file("usr/z", "zz"), hard("usr/a", "usr/z"))))
	if !strings.Contains(got, `usr/a "zz"`) || !strings.Contains(got, "usr/z -> usr/a") {
		t.Errorf("got:\n%s", got)
	}
}

func TestExistingAwkIsKept(t *testing.T) {
	got := build(t, mem("a.deb", debOf(t, "", file("usr/bin/mawk", "m"), link("usr/bin/awk", "gawk"))))
	if !strings.Contains(got, "usr/bin/awk -> gawk") {
		t.Errorf("got:\n%s", got)
	}
}

func TestSameBytesEachTime(t *testing.T) {
	var debs []Deb
	for _, name := range []string{"a.deb", "b.deb", "c.deb", "d.deb"} {
		debs = append(debs, mem(name, debOf(t, ".xz", dir("usr/share/"+name, 0o755), file("usr/share/"+name+"/f", name), file("etc/x", name))))
	}
	var first []byte
	for i := range 25 {
		rand.Shuffle(len(debs), func(i, j int) { debs[i], debs[j] = debs[j], debs[i] })
		var b bytes.Buffer
		if err := FromDebs(&b, debs, epoch); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = b.Bytes()
		} else if !bytes.Equal(first, b.Bytes()) {
			t.Fatalf("run %d differs", i)
		}
	}
}

// raw is a data.tar whose one header names a path that archive/tar may refuse
// to write.
func raw(t *testing.T, name string) []byte {
	data := tarOf(t, file("placeholder", ""))
	copy(data[:100], append([]byte(name), make([]byte, 100-len(name))...))
	sum := 8 * int(' ')
	for i, c := range data[:512] {
		if i < 148 || i >= 156 {
			sum += int(c)
		}
	}
	copy(data[148:156], []byte(strings.ToLower(octal(sum))+"\x00 "))
	return arOf(binaryPart, controlPart, part{"data.tar", data})
}

func octal(n int) string {
	const digits = "01234567"
	out := make([]byte, 6)
	for i := 5; i >= 0; i-- {
		out[i], n = digits[n%8], n/8
	}
	return string(out)
}

func TestRefused(t *testing.T) {
	device := entry{tar.Header{Typeflag: tar.TypeChar, Name: "dev/null", Mode: 0o666, Devmajor: 1, Devminor: 3}, ""}
	fifo := entry{tar.Header{Typeflag: tar.TypeFifo, Name: "run/pipe"}, ""}
	xzData := compress(t, ".xz", tarOf(t, file("etc/x", strings.Repeat("text ", 1000))))
	plain := tarOf(t, file("etc/x", strings.Repeat("t", 2000)))
	flipped := bytes.Clone(xzData)
	flipped[len(flipped)/2] ^= 0xff
	whole := debOf(t, ".xz", file("etc/x", "x"))
	for _, tc := range []struct {
		name string
		deb  []byte
		want string
	}{
		{"dot dot", raw(t, "usr/../../etc/passwd"), "bad.deb: usr/../../etc/passwd: the path holds .."},
		{"absolute", raw(t, "/etc/passwd"), "bad.deb: /etc/passwd: the path is absolute"},
		{"device", debOf(t, "", device), "bad.deb: dev/null: type '3': only files, directories and links"},
		{"fifo", debOf(t, "", fifo), "bad.deb: run/pipe: type '6'"},
		{"below a link", debOf(t, "", link("etc/d", "/root"), file("etc/d/x", "x")), "bad.deb: etc/d/x: its parent is a symbolic link in bad.deb"},
		{"below a file", debOf(t, "", file("etc/d", "x"), file("etc/d/x", "x")), "bad.deb: etc/d/x: its parent is a file in bad.deb"},
		{"link for a directory", debOf(t, "", link("usr/share", "/root")), "bad.deb: usr/share: a symbolic link here, a directory in a.deb"},
		{"another /bin", debOf(t, "", link("bin", "/tmp")), `bad.deb: bin: link to "/tmp", but a merged /usr needs "usr/bin"`},
		{"file for /bin", debOf(t, "", file("bin", "x")), "bad.deb: bin: a file here, a symbolic link in the root's own layout"},
		{"hard link out", debOf(t, "", hard("etc/x", "../etc/shadow")), `hard link to "../etc/shadow": the path holds ..`},
		{"hard link to nothing", debOf(t, "", hard("etc/x", "etc/none")), `hard link to "etc/none", which is no earlier file`},
		{"hard link to another's file", debOf(t, "", hard("etc/x", "usr/share/good")), "no earlier file of it"},
		{"empty link", debOf(t, "", link("etc/x", "")), "a symbolic link without a usable target"},
		{"twice", debOf(t, "", file("bin/x", "1"), file("usr/bin/x", "2")), "bad.deb: usr/bin/x: it is there twice"},
		{"no ar", []byte("MZ not a package"), "bad.deb: not an ar archive"},
		{"empty file", nil, "bad.deb: not an ar archive: unexpected EOF"},
		{"wrong first member", arOf(part{"hello", []byte("x")}), `ar member "hello" where debian-binary is expected`},
		{"format 3", arOf(part{"debian-binary", []byte("3.0\n")}, controlPart), `debian-binary says format "3.0"`},
		{"no data", arOf(binaryPart, controlPart), "no data.tar in the ar archive: unexpected EOF"},
		{"empty data", arOf(binaryPart, controlPart, part{"data.tar", nil}), "data.tar is empty"},
		{"bzip2", arOf(binaryPart, controlPart, part{"data.tar.bz2", []byte("BZh")}), `compression ".bz2" is not known`},
		{"cut in ar", whole[:len(whole)-8], "bad.deb: data.tar.xz is cut short: unexpected EOF"},
		{"cut in xz", arOf(binaryPart, controlPart, part{"data.tar.xz", xzData[:len(xzData)-20]}), "bad.deb: data.tar.xz: xz: data is truncated or corrupt"},
		{"cut in tar", arOf(binaryPart, controlPart, part{"data.tar", plain[:1024]}), "bad.deb: etc/x: unexpected EOF"},
		{"flipped bit", arOf(binaryPart, controlPart, part{"data.tar.xz", flipped}), "bad.deb: "},
		{"no tar", arOf(binaryPart, controlPart, part{"data.tar", bytes.Repeat([]byte("junk"), 300)}), "bad.deb: data.tar: archive/tar: invalid tar header"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			good := mem("a.deb", debOf(t, "", dir("usr/share", 0o755), file("usr/share/good", "g")))
			err := FromDebs(io.Discard, []Deb{mem("bad.deb", tc.deb), good}, epoch)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestEveryBadDebIsNamed(t *testing.T) {
	unopened := Deb{Name: "c.deb", Open: func() (File, error) { return nil, errors.New("gone") }}
	err := FromDebs(io.Discard, []Deb{mem("a.deb", nil), mem("b.deb", raw(t, "/x")), unopened, mem("d.deb", nil), mem("d.deb", nil)}, epoch)
	for _, want := range []string{"a.deb: ", "b.deb: ", "c.deb: cannot open: gone", "d.deb is given twice"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in: %v", want, err)
		}
	}
}

func TestLimits(t *testing.T) {
	big := func(name string) []byte { return debOf(t, ".xz", file(name, strings.Repeat("0", 3000))) }
	for _, tc := range []struct {
		name string
		lim  limits
		want string
	}{
		{"one file", limits{members: 100, total: 1 << 20, member: 2999}, "a.deb: etc/a: 3000 bytes, more than the 2999 allowed"},
		{"all files", limits{members: 100, total: 5000, member: 4000}, "b.deb: etc/b: it unpacks to more than the 5000 bytes allowed"},
		{"number of files", limits{members: 9, total: 1 << 20, member: 4000}, "b.deb: etc/b: more than the 9 files allowed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := fromDebs(io.Discard, []Deb{mem("a.deb", big("etc/a")), mem("b.deb", big("etc/b"))}, epoch, tc.lim)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// A stream that goes on and on after the tar's end must stop too.
func TestBombAfterTheTar(t *testing.T) {
	data := append(tarOf(t, file("etc/x", "x")), make([]byte, 1<<20)...)
	deb := arOf(binaryPart, controlPart, part{"data.tar.xz", compress(t, ".xz", data)})
	err := fromDebs(io.Discard, []Deb{mem("a.deb", deb)}, epoch, limits{members: 100, total: 1 << 16, member: 1 << 16})
	if err == nil || !strings.Contains(err.Error(), "a.deb: data.tar.xz: unpacks to more than is allowed") {
		t.Errorf("got %v", err)
	}
}

func FuzzFromDebs(f *testing.F) {
	f.Add(debOf(f, "", file("etc/x", "x"), link("etc/l", "x"), hard("etc/h", "etc/x")))
	f.Add(debOf(f, ".xz", dir("bin/", 0o755)))
	f.Add(debOf(f, ".gz", file("bin/x", "x")))
	f.Add(debOf(f, ".zst", file("bin/x", "x")))
	f.Fuzz(func(t *testing.T, data []byte) {
		var b bytes.Buffer
		lim := limits{members: 1000, total: 1 << 20, member: 1 << 20}
		if err := fromDebs(&b, []Deb{mem("f.deb", data)}, epoch, lim); err != nil {
			return
		}
		inside(t, b.Bytes())
	})
}

// inside fails for a tar that could write outside the directory it is
// unpacked in.
func inside(t *testing.T, data []byte) {
	links := map[string]bool{}
	for tr := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(h.Name, "/")
		if strings.HasPrefix(name, "/") || strings.Contains("/"+name+"/", "/../") {
			t.Fatalf("%q leaves the root", name)
		}
		for i := range name {
			if name[i] == '/' && links[name[:i]] {
				t.Fatalf("%q is below a link", name)
			}
		}
		links[name] = h.Typeflag == tar.TypeSymlink
	}
}
