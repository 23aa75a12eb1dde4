package scan

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/imgforge/imgforge/internal/check"
)

// member is "mode path" with =content, >link or a slash at its end for a directory.
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
	name, body, _ := strings.Cut(spec, "=")
	h.Name, h.Size = name, int64(len(body))
	if user, rest, ok := strings.Cut(h.Name, ":"); ok {
		fmt.Sscan(user, &h.Uid)
		h.Name = rest
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

// wheel is a distribution of one module, with its RECORD.
func wheel(name, version, module string) []string {
	info := site + strings.ReplaceAll(name, "-", "_") + "-" + version + ".dist-info/"
	sum := sha256.Sum256([]byte(module))
	line := fmt.Sprintf("%s.py,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(sum[:]), len(module))
	record := line + strings.TrimPrefix(info, site) + "RECORD,,\n" + strings.TrimPrefix(info, site) + "METADATA,,\n"
	return []string{site + name + ".py=" + module, info + "METADATA=Name: " + name, info + "RECORD=" + record}
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
	out := []string{
		"etc/os-release=ID=debian\n", "etc/machine-id=", "mode 1777 tmp/", "mode 4755 usr/bin/su=x", "mode 755 usr/bin/zsh=x",
		site + "nvidia/cudnn/lib/libcudnn.so.9=x", site + "nvidia/cuda_runtime/lib/libcudart.so.12=x", "var/log/", "root/.zshrc=",
		"usr/lib/python3.11/os.py=123", "usr/lib/python3.11/__pycache__/os.cpython-311.pyc=" + pyc(1, 0, 0),
	}
	nvidia := site + "nvidia_cuda_runtime_cu12-12.1.dist-info/"
	out = append(out, nvidia+"METADATA=x", nvidia+"RECORD=nvidia/cudnn/lib/libcudnn.so.9,,\nnvidia/cuda_runtime/lib/libcudart.so.12,,\n"+
		"nvidia_cuda_runtime_cu12-12.1.dist-info/RECORD,,\nnvidia_cuda_runtime_cu12-12.1.dist-info/METADATA,,\n")
	return append(out, wheel("tqdm", "4.67", "print()\n")...)
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

// A clean image passes every check, and each broken one fails its own check alone.
func TestChecks(t *testing.T) {
	for _, tc := range []struct {
		check string
		above []string // a layer on the clean ones
		says  string
	}{
		{"two-cuda", []string{"usr/lib/x86_64-linux-gnu/libcudnn.so.8=xx"}, "libcudnn is there 2 times (3 bytes)"},
		{"two-cuda", []string{"usr/local/cuda/lib64/libcudart.so.12=x"}, "libcudart is there 2 times"},
		{"cuda-compat", []string{"usr/local/cuda/compat/libcuda.so.530.30.02=x"}, "a driver library: /usr/local/cuda/compat/libcuda.so.530.30.02 (layer 2)"},
		{"cuda-compat", []string{"etc/ld.so.conf.d/00-compat.conf=/usr/local/cuda/compat\n"}, "puts a compat directory on the library path"},
		{"one-opencv", append(wheel("opencv-python", "4.9", "x=1\n"), wheel("opencv-python-headless", "4.10", "x=2\n")...), "opens windows"},
		{"writable", []string{"mode 666 usr/share/zsh/x=1"}, "every user may write /usr/share/zsh/x (layer 2) (0666)"},
		{"writable", []string{"mode 777 usr/share/zsh/functions/"}, "every user may write /usr/share/zsh/functions"},
		{"writable", []string{"1000:etc/zsh/zshrc=x"}, "/etc/zsh/zshrc (layer 2) belongs to user 1000"},
		{"setuid", []string{"mode 4755 usr/bin/python3.11=x"}, "is set-uid (4755)"},
		{"setuid", []string{"mode 4755 usr/local/bin/su=x"}, "/usr/local/bin/su (layer 2) is set-uid"},
		{"leftovers", []string{"var/lib/apt/lists/deb.example_main=x"}, "a package list"},
		{"leftovers", []string{"root/.cache/pip/http/x=x"}, "a cache"},
		{"leftovers", []string{"tmp/x="}, "a temporary file"},
		{"leftovers", []string{"etc/machine-id=0123456789abcdef\n"}, "a machine's identity"},
		{"leftovers", []string{"root/.netrc=machine x login y password z"}, "/root/.netrc (layer 2): a file of credentials"},
		{"leftovers", []string{"etc/pip.conf=[global]\nindex-url = https://me:hunter2@pypi.example/simple\n"}, "a name and password in a URL"},
		{"leftovers", []string{"root/key=-----BEGIN OPENSSH PRIVATE KEY-----\n"}, "a private key"},
		{"stale-pyc", []string{"usr/lib/python3.11/__pycache__/os.cpython-311.pyc=" + pyc(0, 1, 3)}, "another time or size than /usr/lib/python3.11/os.py"},
		{"stale-pyc", []string{"usr/lib/python3.11/__pycache__/gone.cpython-311.pyc=" + pyc(1, 0, 0)}, "has no source"},
		{"record", []string{site + "tqdm.py=print(1)"}, "/" + site + "tqdm.py (layer 2) is not what tqdm-4.67 records"},
		{"record", []string{site + "tqdm.py=print(1)\n\n"}, "has 10 bytes, and tqdm-4.67 records 8"},
		{"record", []string{site + ".wh.tqdm.py="}, "tqdm.py of tqdm-4.67 is missing"},
		{"record", []string{site + "extra.py=1"}, "extra.py (layer 2) is of no wheel"},
	} {
		base := layerOf(t, 1, clean()...)
		above := layerOf(t, 2, tc.above...)
		for name := range table {
			got := run(t, name, nil, base, above)
			if got.OK != (name != tc.check) {
				t.Errorf("%s on %q: %+v", name, tc.above, got)
			}
			if name == tc.check && !strings.Contains(fmt.Sprint(got.Problems), tc.says) {
				t.Errorf("%s on %q: %+v does not say %q", name, tc.above, got.Problems, tc.says)
			}
		}
	}
	for name := range table {
		if got := run(t, name, nil, layerOf(t, 1, clean()...)); !got.OK {
			t.Errorf("%s fails on the clean image: %+v", name, got)
		}
	}
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
