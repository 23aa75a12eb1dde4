package scan

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/imgforge/imgforge/internal/check"
)

// member is a path with =content, >link, <hard link or a slash at its end for a
// directory; before it stand "mode 4755 ", "caps ", and its owner as "user:" or
// "user:group:".
func member(t testing.TB, w *tar.Writer, spec string) {
	t.Helper()
	mode := int64(0o644)
	if rest, ok := strings.CutPrefix(spec, "mode "); ok {
		_, err := fmt.Sscanf(rest, "%o", &mode)
		if err != nil {
			t.Fatal(err)
		}
		_, spec, _ = strings.Cut(rest, " ")
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Mode: mode, ModTime: time.Unix(1735689600, 0)}
	if rest, ok := strings.CutPrefix(spec, "caps "); ok {
		h.PAXRecords, spec = map[string]string{"SCHILY.xattr.security.capability": "\x01\x00\x00\x02"}, rest
	}
	name, body, _ := strings.Cut(spec, "=")
	h.Size = int64(len(body))
	owner := strings.Split(name, ":")
	h.Name = owner[len(owner)-1]
	for i, into := range []*int{&h.Uid, &h.Gid}[:min(2, len(owner)-1)] {
		if _, err := fmt.Sscan(owner[i], into); err != nil {
			t.Fatal(err)
		}
	}
	if from, to, ok := strings.Cut(spec, "<"); ok && h.Size == 0 {
		h.Typeflag, h.Name, h.Linkname = tar.TypeLink, from, to
	}
	if from, to, ok := strings.Cut(spec, ">"); ok {
		h.Typeflag, h.Name, h.Linkname, h.Size, body = tar.TypeSymlink, from, to, 0, ""
	}
	if strings.HasSuffix(h.Name, "/") {
		h.Typeflag = tar.TypeDir
	}
	if err := w.WriteHeader(h); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, body); err != nil {
		t.Fatal(err)
	}
}

func layerOf(t testing.TB, n int, members ...string) Layer {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, m := range members {
		member(t, w, m)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return Layer{Digest: fmt.Sprint("layer ", n), Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }}
}

const site = "opt/venv/lib/python3.11/site-packages/"

// wheel is an installed distribution: its files, as "path=content", with their RECORD.
func wheel(name, version string, files ...string) []string {
	info := strings.ReplaceAll(name, "-", "_") + "-" + version + ".dist-info/"
	files = append(files, info+"METADATA=Name: "+name)
	record := info + "RECORD,,\n"
	var out []string
	for _, f := range files {
		p, body, _ := strings.Cut(f, "=")
		sum := sha256.Sum256([]byte(body))
		record += fmt.Sprintf("%s,sha256=%s,%d\n", p, base64.RawURLEncoding.EncodeToString(sum[:]), len(body))
		out = append(out, site+f)
	}
	return append(out, site+info+"RECORD="+record)
}

// pyc is the header of a compiled file.
func pyc(flags byte, when, size uint32) string {
	b := make([]byte, pycHeader)
	b[4] = flags
	for i := range 4 {
		b[8+i], b[12+i] = byte(when>>(8*i)), byte(size>>(8*i))
	}
	return string(b)
}

func clean() []string {
	return slices.Concat([]string{
		"etc/os-release=ID=debian\n", "etc/machine-id=", "mode 1777 tmp/", "mode 4755 usr/bin/su=x", "mode 755 usr/bin/zsh=x",
		"var/log/", "root/.zshrc=", "usr/lib/python3.11/os.py=123", "usr/lib/python3.11/__pycache__/os.cpython-311.pyc=" + pyc(1, 0, 0),
		"usr/lib/python3.11/argparse.py=1", "usr/lib/python3.11/__pycache__/argparse.cpython-311.pyc=" + pyc(3, 0, 0),
	}, wheel("nvidia-cuda-runtime-cu12", "12.1", "nvidia/cudnn/lib/libcudnn.so.9=x", "nvidia/cuda_runtime/lib/libcudart.so.12=x"), wheel("tqdm", "4.67", "tqdm.py=print()\n"))
}

func run(t *testing.T, name string, with map[string]string, layers ...Layer) check.Result {
	t.Helper()
	var c Cache
	tree, err := c.Read(layers, 2)
	if err != nil {
		t.Fatal(err)
	}
	got, err := tree.Check(check.Check{Use: name, With: with})
	if err != nil {
		t.Fatal(err)
	}
	if got.OK != (len(got.Problems) == 0) || got.Summary == "" {
		t.Errorf("%s: %+v", name, got)
	}
	return got
}

// A secret that a later layer removes is still there for whoever pulls the image.
func TestRemovedSecret(t *testing.T) {
	got := run(t, "leftovers", nil, layerOf(t, 1, "root/.netrc=machine x"), layerOf(t, 2, "root/.wh..netrc="))
	if got.OK || !strings.Contains(got.Summary, "/root/.netrc (layer 1)") {
		t.Errorf("%+v", got)
	}
}

func TestAllow(t *testing.T) {
	got := run(t, "setuid", map[string]string{"allow": "/opt/tool/bin,/x"}, layerOf(t, 1, "mode 4755 opt/tool/bin/x=1", "mode 4755 opt/toolbox=1"))
	if got.OK || len(got.Problems) != 1 || !strings.Contains(got.Summary, "/opt/toolbox") {
		t.Errorf("%+v", got)
	}
}

// Long lists are cut, and say so.
func TestListIsCut(t *testing.T) {
	var many []string
	for i := range 50 {
		many = append(many, fmt.Sprintf("mode 666 usr/x%02d=1", i))
	}
	got := run(t, "writable", nil, layerOf(t, 1, many...))
	if len(got.Problems) != listed+1 || got.Problems[listed].Problem != "and 30 more" || !strings.HasSuffix(got.Summary, "(and 49 more)") {
		t.Errorf("%d problems, the last %+v; %s", len(got.Problems), got.Problems[len(got.Problems)-1], got.Summary)
	}
}

func TestRefused(t *testing.T) {
	cut := layerOf(t, 2, clean()...)
	whole := cut.Open
	cut.Open = func() (io.ReadCloser, error) {
		r, err := whole()
		return io.NopCloser(io.LimitReader(r, 100)), err
	}
	for want, l := range map[string]Layer{"../x: the path leaves the root": layerOf(t, 2, "../x=1"), "unexpected EOF": cut} {
		var c Cache
		_, err := c.Read([]Layer{layerOf(t, 1, clean()...), l}, 2)
		if err == nil || !strings.Contains(err.Error(), "layer 2 of 2") || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

// Cells share layers: each is read once.
func TestCache(t *testing.T) {
	l := layerOf(t, 1, clean()...)
	opened := 0
	whole := l.Open
	l.Open = func() (io.ReadCloser, error) { opened++; return whole() }
	var c Cache
	for range 3 {
		if _, err := c.Read([]Layer{l}, 2); err != nil {
			t.Fatal(err)
		}
	}
	if opened != 1 {
		t.Errorf("read %d times", opened)
	}
}

func FuzzRead(f *testing.F) {
	l := layerOf(f, 1, clean()...)
	r, _ := l.Open()
	z, _ := gzip.NewReader(r)
	data, _ := io.ReadAll(z)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		var c Cache
		tree, err := c.Read([]Layer{{Digest: "x", Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}}, 1)
		if err != nil {
			return
		}
		for name := range table {
			if got, err := tree.Check(check.Check{Use: name}); err != nil || got.OK != (len(got.Problems) == 0) {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}
	})
}
