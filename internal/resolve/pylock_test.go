package resolve

import (
	"archive/zip"
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/lock"
)

const pylockText = `lock-version = "1.0"
created-by = "uv"
requires-python = ">=3.11.2"

[[packages]]
name = "opencv-python-headless"
version = "4.11.0.86"
wheels = [{ url = "https://mirror.example/packages/dd/opencv_python_headless-4.11.0.86-cp37-abi3-manylinux_2_17_x86_64.whl", upload-time = 2025-01-16T13:52:41Z, size = 50000000, hashes = { sha256 = "` + someHash + `" } }]

[[packages]]
name = "torch"
version = "2.1.2+cu118"
wheels = [{ url = "file:///in/ask/0/links/torch-2.1.2%2Bcu118-cp311-cp311-linux_x86_64.whl", hashes = { sha256 = "` + someHash + `" } }]
`

// cp311 are tags of Debian 12's Python, shortened.
var cp311 = []string{"cp311-cp311-manylinux_2_28_x86_64", "cp311-cp311-manylinux_2_17_x86_64", "cp311-cp311-linux_x86_64",
	"cp311-abi3-manylinux_2_17_x86_64", "cp37-abi3-manylinux_2_28_x86_64", "cp37-abi3-manylinux_2_17_x86_64", "py3-none-any"}

func TestParsePylock(t *testing.T) {
	wheels, err := parsePylock(pylockText, cp311)
	if err != nil {
		t.Fatal(err)
	}
	if len(wheels) != 2 {
		t.Fatalf("got %d wheels", len(wheels))
	}
	want := lock.Entry{Kind: lock.Wheel, Key: "opencv_python_headless-4.11.0.86-cp37-abi3-manylinux_2_17_x86_64.whl",
		Value: "pypi:opencv-python-headless==4.11.0.86", Size: 50000000, Hash: "sha256:" + someHash}
	if got := wheels[0].entry(pypi); got != want {
		t.Errorf("got %+v", got)
	}
	if wheels[1].file != "torch-2.1.2+cu118-cp311-cp311-linux_x86_64.whl" || wheels[1].size != 0 {
		t.Errorf("got %+v", wheels[1])
	}
}

func TestParsePylockRefuses(t *testing.T) {
	for _, tc := range []struct{ old, new, want string }{
		{`lock-version = "1.0"`, `lock-version = "2.0"`, `version "2.0", 1.x is known`},
		{`[[packages]]`, `[[packages`, "pylock.toml: "},
		{`wheels = [{ url = "https`, `sdists = [{ url = "https`, "opencv-python-headless 4.11.0.86 has no wheel that this Python takes, of 0"},
		{`sha256 = "`, `md5 = "`, "gives no sha256 for opencv_python_headless"},
		{`abi3-manylinux_2_17_x86_64.whl`, `abi3.tar.gz`, "is no wheel's file name"},
		{`cp37-abi3`, `cp312-cp312`, "has no wheel that this Python takes, of 1"},
		{`opencv_python_headless-4`, `numpy-4`, "is of another distribution"},
		{`abi3-manylinux`, `abi3-..%2F..%2Fx`, "is no wheel's file name"},
		{`"4.11.0.86"`, `"4 11"`, `bad version "4 11"`},
		{`size = 50000000`, `size = -1`, "negative size"},
	} {
		_, err := parsePylock(strings.Replace(pylockText, tc.old, tc.new, 1), cp311)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.new, err, tc.want)
		}
	}
}

func TestBestWheel(t *testing.T) {
	for _, tc := range []struct{ files, want string }{
		{"a-1-cp37-abi3-manylinux_2_17_x86_64.whl a-1-cp37-abi3-manylinux_2_28_x86_64.whl", "a-1-cp37-abi3-manylinux_2_28_x86_64.whl"},
		{"a-1-py2.py3-none-any.whl a-1-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.whl", "a-1-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"},
		{"a-1-2-py3-none-any.whl a-1-10b-py3-none-any.whl a-1-py3-none-any.whl", "a-1-10b-py3-none-any.whl"},
		{"a-1-cp312-cp312-win_amd64.whl a-1-py3-none-any.whl", "a-1-py3-none-any.whl"},
		{"a-1-cp312-cp312-win_amd64.whl a-1-2-cp312-cp312-win_amd64.whl", ""},
	} {
		var wheels []wheel
		for _, f := range strings.Fields(tc.files) {
			wheels = append(wheels, wheel{file: f})
		}
		if got, ok := bestWheel(wheels, cp311); got.file != tc.want || ok != (tc.want != "") {
			t.Errorf("%s: got %q, %v", tc.files, got.file, ok)
		}
	}
}

func FuzzParsePylock(f *testing.F) {
	f.Add(pylockText)
	f.Fuzz(func(t *testing.T, text string) {
		wheels, err := parsePylock(text, cp311)
		if err != nil {
			return
		}
		for _, w := range wheels {
			if strings.ContainsAny(w.file, "/\\ \n") || !sha256Hex.MatchString(w.sha256) {
				t.Errorf("took %+v", w)
			}
		}
	})
}

func TestStandIn(t *testing.T) {
	w := indexWheel{file: "torch-2.1.2+cu118-cp311-cp311-linux_x86_64.whl", requires: []string{"filelock", `triton==2.1.0; platform_system == "Linux"`}}
	data, err := w.standIn()
	if err != nil {
		t.Fatal(err)
	}
	again, err := w.standIn()
	if err != nil || !bytes.Equal(data, again) {
		t.Error("two stand-ins differ")
	}
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"torch-2.1.2+cu118.dist-info/METADATA": "Metadata-Version: 2.1\nName: torch\nVersion: 2.1.2+cu118\nRequires-Dist: filelock\nRequires-Dist: triton==2.1.0; platform_system == \"Linux\"\n",
		"torch-2.1.2+cu118.dist-info/WHEEL":    "Wheel-Version: 1.0\nGenerator: imgforge\nRoot-Is-Purelib: false\nTag: cp311-cp311-linux_x86_64\n",
	}
	for name, body := range want {
		f, err := z.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(f)
		if err != nil || string(got) != body {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for _, bad := range []indexWheel{{file: "torch.whl"}, {file: "torch-1-cp311.tar"}, {file: w.file, requires: []string{"a\nName: b"}}} {
		if _, err := bad.standIn(); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

func TestKnownWheel(t *testing.T) {
	req := lock.Request{Arch: "amd64", Torch: "2.1.2", CUDA: "11.8", Python: "3.11"}
	w, err := knownWheel("torch==2.1.2+cu118", req)
	if err != nil {
		t.Fatal(err)
	}
	e := w.entry()
	if e.Key != "torch-2.1.2+cu118-cp311-cp311-linux_x86_64.whl" || e.Value != "pytorch/cu118:torch==2.1.2+cu118" || len(w.requires) == 0 {
		t.Errorf("got %+v", w)
	}
	req.Python = "3.6"
	for _, requirement := range []string{"torch==2.1.2+cu118", "torchvision==0.16.2+cu118"} {
		if _, err := knownWheel(requirement, req); err == nil || !strings.Contains(err.Error(), requirement+" is on the PyTorch index alone") {
			t.Errorf("got %v", err)
		}
	}
}

func TestWanters(t *testing.T) {
	via := "numpy==1.26.4\n    # via\n    #   -c constraints\n    #   -r requirements\n    #   opencv-python-headless\nnumpy-financial==1\n    # via x\ntorch==2\n    # via -r requirements\n"
	for name, want := range map[string]string{"numpy": "-c constraints, a recipe, opencv-python-headless", "torch": "a recipe", "scipy": ""} {
		if got := strings.Join(wanters(via, name), ", "); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// opencv-python#467, supervision#351: who pulled in the second.
func TestConflictsNameWhoWantsThem(t *testing.T) {
	wheels := []wheel{{name: "opencv-python"}, {name: "opencv-python-headless"}, {name: "numpy"}}
	err := conflicts(wheels, "opencv-python==4\n    # via albumentations\nopencv-python-headless==4\n    # via -r requirements\n")
	for _, want := range []string{"opencv-python and opencv-python-headless: ", "opencv-python is wanted by albumentations", "opencv-python-headless is wanted by a recipe"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	if err := conflicts(wheels[1:], ""); err != nil {
		t.Error(err)
	}
}

func TestTools(t *testing.T) {
	for _, use := range []string{"install", "resolve"} {
		list, err := tools(use, "amd64", "3.11")
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range list {
			w := wheel{name: tool.name, version: tool.version, file: tool.file, sha256: tool.sha256, size: tool.size}
			if err := w.check(); err != nil || tool.size == 0 || !strings.Contains(tool.file, "-"+tool.version+"-") {
				t.Errorf("%+v: %v", tool, err)
			}
		}
	}
	if _, err := tools("resolve", "riscv64", ""); err == nil || !strings.Contains(err.Error(), "no uv for riscv64") {
		t.Errorf("got %v", err)
	}
}
