package inspect

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/imgforge/imgforge/internal/lock"
)

// layer is a tar of paths: "p" a file, "p=text" one with content, "p>target" a
// link, "p/" a directory.
func layer(t testing.TB, paths ...string) Layer {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	tw := tar.NewWriter(z)
	for _, p := range paths {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: p, Mode: 0o755, ModTime: time.Unix(1735689600, 0)}
		name, body, _ := strings.Cut(p, "=")
		if h.Name, h.Size = name, int64(len(body)); strings.HasSuffix(name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if from, to, ok := strings.Cut(p, ">"); ok {
			h.Typeflag, h.Name, h.Linkname = tar.TypeSymlink, from, to
		}
		if err := tw.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := io.WriteString(tw, body); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }
}

const jammy = "usr/lib/os-release=NAME=\"Ubuntu\"\nID=ubuntu\nVERSION_CODENAME=jammy\n"

func TestLayers(t *testing.T) {
	for _, tc := range []struct {
		name   string
		layers []Layer
		env    []string
		want   lock.Facts
	}{
		{
			"a plain system with its own Python",
			[]Layer{layer(t, jammy, "etc/os-release>../usr/lib/os-release", "usr/bin/python3>python3.10", "usr/bin/python3.10", "bin>usr/bin",
				"var/lib/dpkg/status=Package: python3.10\nStatus: install ok installed\n", "usr/lib/python3/dist-packages/PyYAML-5.4.1.egg-info")},
			nil,
			lock.Facts{OS: "ubuntu", Suite: "jammy", Env: map[string]string{}, Python: "/usr/bin/python3.10", PythonVersion: "3.10", System: true,
				Distributions: map[string]string{"pyyaml": "5.4.1"}},
		},
		{
			"no Python at all",
			[]Layer{layer(t, jammy)}, nil,
			lock.Facts{OS: "ubuntu", Suite: "jammy", Env: map[string]string{}},
		},
		{
			"conda with torch, and a layer that upgrades numpy",
			[]Layer{
				layer(t, jammy, "opt/conda/bin/python3>python3.10", "opt/conda/bin/python3.10",
					"opt/conda/lib/python3.10/site-packages/numpy-1.26.3.dist-info/METADATA", "opt/conda/lib/python3.10/site-packages/numpy-1.26.3.dist-info/",
					"opt/conda/lib/python3.10/site-packages/torch-2.3.1.dist-info/METADATA",
					"opt/conda/lib/python3.10/site-packages/torch/version.py=__version__ = '2.3.1'\ncuda: Optional[str] = '12.1'\n",
					"opt/conda/lib/python3.10/site-packages/nvidia/cudnn/lib/libcudnn.so.8"),
				layer(t, "opt/conda/lib/python3.10/site-packages/.wh.numpy-1.26.3.dist-info", "opt/conda/lib/python3.10/site-packages/numpy-1.26.4.dist-info/"),
			},
			[]string{"PATH=/opt/conda/bin:/usr/bin"},
			lock.Facts{OS: "ubuntu", Suite: "jammy", Env: map[string]string{"PATH": "/opt/conda/bin:/usr/bin"},
				Python: "/opt/conda/bin/python3.10", PythonVersion: "3.10", TorchCUDA: "12.1",
				Distributions: map[string]string{"numpy": "1.26.4", "torch": "2.3.1"}},
		},
		{
			"NVIDIA's own image",
			[]Layer{layer(t, jammy, "usr/local/cuda-12.1/targets/x86_64-linux/lib/libcudart.so.12", "usr/local/cuda-12.1/targets/x86_64-linux/lib/libcudart.so.12.1.105",
				"usr/local/cuda>/usr/local/cuda-12.1", "usr/local/cuda-12.1/compat/libcuda.so.530.30.02", "usr/lib/x86_64-linux-gnu/libcudnn.so.8",
				"etc/apt/sources.list.d/cuda.list=deb https://example.nvidia.com/repos /\n", "etc/apt/sources.list=deb http://archive.example/ubuntu jammy main\n")},
			[]string{"CUDA_VERSION=12.1.1"},
			lock.Facts{OS: "ubuntu", Suite: "jammy", Env: map[string]string{"CUDA_VERSION": "12.1.1"}, CUDA: []string{"/usr/local/cuda-12.1"},
				Compat: []string{"/usr/local/cuda-12.1/compat"}, CuDNN: []string{"/usr/lib/x86_64-linux-gnu/libcudnn.so.8"},
				AptSources: []string{"/etc/apt/sources.list.d/cuda.list"}},
		},
		{
			"an opaque directory hides all that was below",
			[]Layer{layer(t, jammy, "usr/local/cuda-11.8/lib64/libcudart.so.11.0"), layer(t, "usr/local/.wh..wh..opq", "usr/local/lib/libcudart.so")},
			nil,
			lock.Facts{OS: "ubuntu", Suite: "jammy", Env: map[string]string{}, CUDA: []string{"/usr/local/lib"}},
		},
		{
			"a file and the whiteout of its name, in either order",
			[]Layer{layer(t, jammy, "usr/local/cuda-11.8/lib64/libcudart.so.11.0", "usr/local/cuda-12.1/lib64/libcudart.so.12"),
				layer(t, "usr/local/cuda-11.8/lib64/libcudart.so.12", "usr/local/.wh.cuda-11.8", "usr/local/.wh.cuda-12.1", "usr/local/cuda-12.1/include/")},
			nil,
			lock.Facts{OS: "ubuntu", Suite: "jammy", Env: map[string]string{}, CUDA: []string{"/usr/local/cuda-11.8"}},
		},
		{
			"a member that goes through a link of a lower layer",
			[]Layer{layer(t, jammy, "opt/real/", "opt/conda>real"), layer(t, "opt/conda/bin/python3.11", "opt/conda/bin/python3>python3.11")},
			[]string{"PATH=/opt/conda/bin"},
			lock.Facts{OS: "ubuntu", Suite: "jammy", Env: map[string]string{"PATH": "/opt/conda/bin"}, Python: "/opt/real/bin/python3.11", PythonVersion: "3.11",
				Distributions: map[string]string{}},
		},
		{
			"a virtual environment before the system's Python",
			[]Layer{layer(t, jammy, "usr/bin/python3.10", "app/bin/python3>/usr/bin/python3.10", "app/pyvenv.cfg=home = /usr/bin\n",
				"app/lib/python3.10/site-packages/torch-2.3.1.dist-info/METADATA")},
			[]string{"PATH=/app/bin:/usr/bin"},
			lock.Facts{OS: "ubuntu", Suite: "jammy", Env: map[string]string{"PATH": "/app/bin:/usr/bin"}, Python: "/usr/bin/python3.10", PythonVersion: "3.10",
				Venv: "/app", Distributions: map[string]string{}},
		},
		{
			"something where our environment goes",
			[]Layer{layer(t, jammy, "opt/venv/bin/x")}, nil,
			lock.Facts{OS: "ubuntu", Suite: "jammy", Env: map[string]string{}, Venv: "/opt/venv"},
		},
		{
			"an empty os-release, and a dangling link to Python",
			[]Layer{layer(t, jammy, "etc/os-release=", "usr/bin/python3>python3.9")}, nil,
			lock.Facts{OS: "ubuntu", Suite: "jammy", Env: map[string]string{}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Layers(tc.layers, tc.env)
			if err != nil {
				t.Fatal(err)
			}
			tc.want.Newest = "1735689600"
			if !reflect.DeepEqual(got.Facts, tc.want) {
				t.Errorf("got  %+v\nwant %+v", got.Facts, tc.want)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	loop := layer(t, "etc/os-release>os-release", "usr/bin/python3>/usr/bin/python", "usr/bin/python>/usr/bin/python3")
	if got, err := Layers([]Layer{loop}, nil); err != nil || got.Python != "" || got.OS != "" {
		t.Errorf("links in a circle: %+v, %v", got, err)
	}
	cut := func() (io.ReadCloser, error) {
		r, _ := layer(t, jammy)()
		return io.NopCloser(io.LimitReader(r, 60)), nil
	}
	for name, bad := range map[string]Layer{"leaves the root": layer(t, "../x"), "unexpected EOF": cut} {
		if _, err := Layers([]Layer{layer(t, jammy), bad}, nil); err == nil || !strings.Contains(err.Error(), "layer 2 of 2") || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A bomb ends with its member's name, and many whiteouts cost no more than one pass.
func TestBounds(t *testing.T) {
	big := strings.Repeat("x", mostOther+1)
	if _, err := Layers([]Layer{layer(t, "etc/apt/sources.list.d/a.list="+big)}, nil); err == nil || !strings.Contains(err.Error(), "sources.list.d/a.list: ") {
		t.Errorf("a large file: %v", err)
	}
	var many []string
	for i := range mostKept/mostOther + 1 {
		many = append(many, fmt.Sprintf("opt/%d/site-packages/torch/version.py=%s", i, big[1:]))
	}
	if _, err := Layers([]Layer{layer(t, many...)}, nil); err == nil || !strings.Contains(err.Error(), "version.py: more than") {
		t.Errorf("many large files: %v", err)
	}
	var files, whiteouts []string
	for i := range 50_000 {
		files, whiteouts = append(files, fmt.Sprintf("d/%d", i)), append(whiteouts, fmt.Sprintf("d/.wh.%d", i))
	}
	if _, err := Layers([]Layer{layer(t, files...), layer(t, whiteouts...)}, nil); err != nil {
		t.Error(err)
	}
}

func FuzzLayers(f *testing.F) {
	read := func(l Layer) []byte {
		r, _ := l()
		z, _ := gzip.NewReader(r)
		data, _ := io.ReadAll(z)
		return data
	}
	f.Add(read(layer(f, jammy, "usr/bin/python3>python3.10", "usr/bin/python3.10")))
	f.Add(read(layer(f, ".wh.x", "a/.wh..wh..opq", "usr/local/cuda/compat/libcuda.so.1")))
	f.Fuzz(func(t *testing.T, data []byte) {
		open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
		if r, err := Layers([]Layer{open}, []string{"PATH=/usr/bin"}); err == nil {
			for _, e := range r.Entries("base/x-00000001") {
				if strings.ContainsAny(e.Value, " \n") {
					t.Errorf("fact %q is more than a field", e.Value)
				}
			}
		}
	})
}
