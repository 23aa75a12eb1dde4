package scan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// broken are layers over the clean one, by the check that each makes fail.
var broken = map[string][]struct {
	says  string // of a problem
	above []string
}{
	"two-cuda": {
		{"libcudnn is there 2 times (3 bytes): /" + site + "nvidia/cudnn/lib/libcudnn.so.9 (layer 1), 1 bytes; /usr/lib/x86_64-linux-gnu/libcudnn.so.8 (layer 2), 2 bytes",
			[]string{"usr/lib/x86_64-linux-gnu/libcudnn.so.8=xx"}},
		{"libcudnn is there 2 times", []string{"usr/lib/x86_64-linux-gnu/libcudnn.so.9.1.0=xx", "usr/lib/x86_64-linux-gnu/libcudnn.so.9>libcudnn.so.9.1.0"}},
		{"libcudart is there 2 times", []string{"usr/local/cuda/lib64/libcudart.so.12=x"}},
		{"libcudart is there 2 times", []string{"usr/lib/libcudart-d0da41ae.so.11.0=x"}},
		{"libnccl is there 2 times", []string{"usr/lib/libnccl.so.2=x", "usr/local/lib/libnccl.so.2=x"}},
		{"libcublas is there 2 times", []string{"usr/lib/libcublas.so.11=x", "usr/lib/libcublas.so.12=x"}},
		{"distributions of cu11 and cu12 are installed", wheel("nvidia-cuda-runtime-cu11", "11.8")},
	},
	"cuda-compat": {
		{"a driver library: /usr/local/cuda/compat/libcuda.so.530.30.02 (layer 2)", []string{"usr/local/cuda/compat/libcuda.so.530.30.02=x", "usr/local/cuda/lib64/stubs/libcuda.so=x"}},
		{"a driver library: /usr/local/cuda-12.1/compat/libnvidia-ptxjitcompiler.so.530.30.02", []string{"usr/local/cuda-12.1/compat/libnvidia-ptxjitcompiler.so.530.30.02=x"}},
		{"a driver library: /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", []string{"usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1=x"}},
		{"puts a compat directory on the library path", []string{"etc/ld.so.conf.d/00-compat.conf=/usr/local/cuda/compat\n"}},
	},
	"one-opencv": {
		{"opencv-python opens windows", wheel("opencv-python", "4.9", "cv2.py=1")},
		{"opencv-python-headless in /" + site[:len(site)-1] + " and opencv-contrib-python-headless", append(wheel("opencv-contrib-python-headless", "4.9", "cv2.py=1"), wheel("opencv-python-headless", "4.10", "cv2.py=1")...)},
		{"overwrite each other", append(wheel("opencv-python-headless", "4.9", "cv2.py=1"), wheel("opencv-python-headless", "4.10", "cv2.py=1")...)},
	},
	"writable": {
		{"every user may write /usr/share/zsh/x (layer 2) (0666)", []string{"mode 666 usr/share/zsh/x=1"}},
		{"every user may write /usr/share/zsh/functions", []string{"mode 777 usr/share/zsh/functions/"}},
		{"every user may write /workspace/x", []string{"mode 666 workspace/x=1"}},
		{"/etc/zsh/zshrc (layer 2) belongs to user 1000", []string{"1000:etc/zsh/zshrc=x"}},
		{"/root/.zshrc (layer 2) belongs to user 1000", []string{"1000:root/.zshrc=x"}},
		{"group 1000 may write /usr/share/zsh/x (layer 2) (0664)", []string{"mode 664 0:1000:usr/share/zsh/x=1", "mode 2775 0:50:usr/local/lib/", "mode 664 usr/share/zsh/y=1"}},
		{"group 100 may write /opt/venv/bin", []string{"mode 775 0:100:opt/venv/bin/"}},
	},
	"setuid": {
		{"/usr/bin/python3.11 (layer 2) is set-uid (4755)", []string{"mode 4755 usr/bin/python3.11=x"}},
		{"/usr/bin/python3.11 (layer 2) is set-gid (2755)", []string{"mode 2755 usr/bin/python3.11=x", "mode 2775 var/mail/"}},
		{"/usr/bin/python3.11 (layer 2) is given capabilities", []string{"mode 755 caps usr/bin/python3.11=x", "caps usr/bin/ping=x"}},
		{"/usr/local/bin/su (layer 2) is set-uid", []string{"mode 4755 usr/local/bin/su=x"}},
		{"/usr/share/x/su (layer 2) is set-uid", []string{"mode 4755 usr/share/x/su=x"}},
		{"/usr/bin/tool (layer 2) is set-uid", []string{"usr/bin/tool<usr/bin/su"}},
	},
	"leftovers": {
		{"a package list", []string{"var/lib/apt/lists/deb.example_main=x", "var/lib/apt/lists/lock="}},
		{"a cache of apt", []string{"var/cache/apt/pkgcache.bin=x"}},
		{"a cache of apt", []string{"var/cache/apt/archives/zsh_5.9_amd64.deb=x", "var/cache/apt/archives/partial/"}},
		{"a cache, 1 bytes", []string{"root/.cache/pip/http/x=x"}},
		{"a cache, 1 bytes", []string{"home/me/.npm/x=x"}},
		{"a cache of conda", []string{"opt/conda/pkgs/numpy-1.26.4-0.conda=x"}},
		{"a temporary file", []string{"tmp/x="}},
		{"a temporary file", []string{"var/tmp/deep/x=1", "run/lock/"}},
		{"a log", []string{"var/log/dpkg.log=x", "var/log/faillog="}},
		{"a backup of dpkg or passwd", []string{"var/lib/dpkg/status-old=x"}},
		{"a backup of dpkg or passwd", []string{"etc/passwd-=x"}},
		{"auxiliary cache", []string{"var/cache/ldconfig/aux-cache=x"}},
		{"a machine's identity", []string{"etc/machine-id=0123456789abcdef\n"}},
		{"a machine's identity", []string{"var/lib/dbus/machine-id=0123456789abcdef\n", "etc/machine-id=uninitialized\n"}},
		{"a host key", []string{"etc/ssh/ssh_host_ed25519_key=x", "etc/ssh/ssh_host_ed25519_key.pub=x"}},
		{"what someone typed", []string{"root/.zsh_history=ls", "root/.bash_history="}},
		{"/root/.netrc (layer 2): a file of credentials", []string{"root/.netrc=machine x login y password z"}},
		{"/root/.docker/config.json (layer 2): a file of credentials", []string{"root/.docker/config.json={}"}},
		{"/home/me/.ssh/id_ed25519 (layer 2): a file of credentials", []string{"home/me/.ssh/id_ed25519=x", "home/me/.ssh/id_ed25519.pub=x"}},
		{"/etc/pip.conf (layer 2): a name and password in a URL", []string{"etc/pip.conf=[global]\nindex-url = https://me:hunter2@pypi.example/simple\n"}},
		{"/root/key (layer 2): a private key", []string{"root/key=-----BEGIN OPENSSH PRIVATE KEY-----\n", "usr/share/ca.pem=-----BEGIN CERTIFICATE-----\n"}},
		{"/opt/app/tls.key (layer 2): a private key", []string{"opt/app/tls.key=-----BEGIN PRIVATE KEY-----\n"}},
		{"/workspace/.aws (layer 2): an AWS key", []string{"workspace/.aws=AKIA" + strings.Repeat("A", 16)}},
		{"/etc/profile.d/x.sh (layer 2): a token of GitHub", []string{"etc/profile.d/x.sh=T=ghp_" + strings.Repeat("a", 36)}},
		{"/opt/app/.env (layer 2): a token of Hugging Face", []string{"opt/app/.env=HF_TOKEN=hf_" + strings.Repeat("a", 34)}},
		{"/root/.npmrc (layer 2): a token of npm", []string{"root/.npmrc=//registry.example/:_authToken=abc", "etc/npmrc=//registry.example/:_authToken=${TOKEN}"}},
	},
	"stale-pyc": {
		{"another time or size than /usr/lib/python3.11/os.py", []string{"usr/lib/python3.11/__pycache__/os.cpython-311.pyc=" + pyc(0, 1735689600, 4)}},
		{"another time or size than /usr/lib/python3.11/os.py", []string{"usr/lib/python3.11/__pycache__/os.cpython-311.pyc=" + pyc(0, 1, 3)}},
		{"os.cpython-311.pyc (layer 1) is of before layer 2 wrote /usr/lib/python3.11/os.py anew, and is run in its place", []string{"usr/lib/python3.11/os.py=456"}},
		{"argparse.cpython-311.pyc (layer 1) is of before layer 2 wrote /usr/lib/python3.11/argparse.py anew: each start compiles it", []string{"usr/lib/python3.11/argparse.py=456"}},
		{"has no source", []string{"usr/lib/python3.11/__pycache__/gone.cpython-311.opt-1.pyc=" + pyc(1, 0, 0)}},
		{"is cut off", []string{"usr/lib/python3.11/__pycache__/os.cpython-311.pyc=abc"}},
		{"nothing is compiled", []string{"usr/lib/python3.11/__pycache__/.wh..wh..opq="}},
	},
	"record": {
		{"/" + site + "tqdm.py (layer 2) is not what tqdm-4.67 records", []string{site + "tqdm.py=print(1)"}},
		{"has 10 bytes, and tqdm-4.67 records 8", []string{site + "tqdm.py=print(1)\n\n"}},
		{"tqdm.py of tqdm-4.67 is missing", []string{site + ".wh.tqdm.py="}},
		{"tqdm.py of tqdm-4.67 is missing", []string{site + "tqdm.py>/tmp/tqdm.py"}},
		{"extra.py (layer 2) is of no wheel", []string{site + "extra.py=1"}},
		{"tqdm.py (layer 1) is not what tqdm-4.67 records", []string{site + "tqdm-4.67.dist-info/RECORD=tqdm.py,sha256=AAAA,8\ntqdm-4.67.dist-info/RECORD,,\n"}},
		{"tqdm.py (layer 1) has no hash in what tqdm-4.67 records", []string{site + "tqdm-4.67.dist-info/RECORD=tqdm.py,,\ntqdm-4.67.dist-info/RECORD,,\n"}},
		{"tqdm-4.67.dist-info has no RECORD", []string{site + "tqdm-4.67.dist-info/.wh.RECORD="}},
		{"cannot be read", []string{site + "tqdm-4.67.dist-info/RECORD="}},
		{"has a line without path, hash and size", []string{site + "tqdm-4.67.dist-info/RECORD=tqdm.py\n"}},
	},
}

// A clean image passes every check, and each broken one fails its own check alone.
func TestBroken(t *testing.T) {
	base := layerOf(t, 1, clean()...)
	for name := range table {
		if got := run(t, name, nil, base); !got.OK {
			t.Errorf("%s fails on the clean image: %+v", name, got)
		}
		if len(broken[name]) == 0 {
			t.Errorf("nothing shows that %s ever fails", name)
		}
	}
	for own, all := range broken {
		for _, b := range all {
			above := layerOf(t, 2, b.above...)
			for name := range table {
				got := run(t, name, nil, base, above)
				if got.OK != (name != own) {
					t.Errorf("%s on %q: %+v", name, b.above, got)
				}
				if name == own && !strings.Contains(fmt.Sprint(got.Problems), b.says) {
					t.Errorf("%s on %q: %+v does not say %q", name, b.above, got.Problems, b.says)
				}
			}
		}
	}
}

// Nothing is shown of an image that has nothing to look at.
func TestNothingThere(t *testing.T) {
	for name := range table {
		if got := run(t, name, nil, layerOf(t, 1)); got.OK || got.Summary != "the image has no files" {
			t.Errorf("%s of an empty image: %+v", name, got)
		}
	}
	foreign := layerOf(t, 1, "etc/os-release=ID=alpine\n", "bin/sh=x", "usr/bin/python3=x")
	for name, says := range map[string]string{"record": "no distribution is installed", "stale-pyc": "nothing is compiled"} {
		if got := run(t, name, nil, foreign); got.OK || !strings.Contains(got.Summary, says) {
			t.Errorf("%s without Python: %+v", name, got)
		}
	}
	for name, says := range map[string]string{"two-cuda": "no CUDA library", "one-opencv": "no OpenCV"} { // they forbid a second one
		if got := run(t, name, nil, foreign); !got.OK || got.Summary != says {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// An image without CUDA wheels and one with several libraries in one place are right.
func TestRight(t *testing.T) {
	for name, layer := range map[string][]string{
		"two-cuda":    {"usr/lib/libcudart.so.12.1.105=x", "usr/lib/libcudart.so.12>libcudart.so.12.1.105", "usr/local/cuda/lib64/stubs/libcublas.so.12=x", "usr/lib/libcublas.so.12=x"},
		"cuda-compat": {"usr/local/cuda/lib64/stubs/libcuda.so=x", "etc/ld.so.conf.d/cuda.conf=/usr/local/cuda/lib64\n", "usr/lib/libcudart.so.12=x"},
		"stale-pyc":   {"usr/lib/python3.11/x.py=1", "usr/lib/python3.11/__pycache__/x.cpython-311.pyc=" + pyc(0, 1735689600, 1), "usr/lib/python3.11/alone.pyc=" + pyc(1, 0, 0)},
		"record":      slices.Concat(wheel("a", "1", "a.py=1"), []string{site + "__pycache__/a.cpython-311.pyc=x"}),
		"one-opencv":  append(wheel("opencv-python-headless", "4.10", "cv2.py=1"), site+"opencv_python_headless-4.10.dist-info/PKG-INFO=x"),
	} {
		if got := run(t, name, nil, layerOf(t, 1, layer...)); !got.OK {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
