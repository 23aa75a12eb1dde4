package rootfs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// part is one member of an ar archive.
type part struct {
	name string
	data []byte
}

// arOf writes an ar archive.
func arOf(parts ...part) []byte {
	b := bytes.NewBufferString("!<arch>\n")
	for _, p := range parts {
		fmt.Fprintf(b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", p.name, 0, 0, 0, "100644", len(p.data))
		b.Write(p.data)
		if len(p.data)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

// entry is one member of a data.tar; body is the content of a file.
type entry struct {
	tar.Header
	body string
}

func file(name, body string) entry {
	return entry{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(body)), ModTime: time.Unix(1000, 0)}, body}
}

func dir(name string, mode int64) entry {
	return entry{tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode, ModTime: time.Unix(1000, 0)}, ""}
}

func link(name, target string) entry {
	return entry{tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, ModTime: time.Unix(1000, 0)}, ""}
}

func hard(name, target string) entry {
	return entry{tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: target, Mode: 0o644, ModTime: time.Unix(1000, 0)}, ""}
}

func tarOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	tw := tar.NewWriter(&b)
	for _, e := range entries {
		if err := tw.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(tw, e.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// compress gives data in the form the suffix names.
func compress(t testing.TB, suffix string, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch suffix {
	case "":
		return data
	case ".gz":
		w = gzip.NewWriter(&b)
	case ".xz":
		w, err = xz.NewWriter(&b)
	case ".zst":
		w, err = zstd.NewWriter(&b)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var binaryPart, controlPart = part{"debian-binary", []byte("2.0\n")}, part{"control.tar.xz", []byte("unread")}

// debOf is a .deb of the entries, compressed as suffix says.
func debOf(t testing.TB, suffix string, entries ...entry) []byte {
	return arOf(binaryPart, controlPart, part{"data.tar" + suffix, compress(t, suffix, tarOf(t, entries...))})
}

type memFile struct{ *bytes.Reader }

func (memFile) Close() error { return nil }

func mem(name string, data []byte) Deb {
	return Deb{Name: name, Open: func() (File, error) { return memFile{bytes.NewReader(data)}, nil }}
}

// listing renders a tar one entry a line.
func listing(t *testing.T, data []byte) string {
	t.Helper()
	var b strings.Builder
	for tr := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return b.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%c %04o %d:%d %d %s", h.Typeflag, h.Mode, h.Uid, h.Gid, h.ModTime.Unix(), h.Name)
		if h.Linkname != "" {
			fmt.Fprintf(&b, " -> %s", h.Linkname)
		}
		if len(body) > 0 {
			fmt.Fprintf(&b, " %q", body)
		}
		b.WriteByte('\n')
	}
}
