package check

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// pip is a directory with the library that reads requirements, which every image has
// in its pip.
func pip(t *testing.T) string {
	t.Helper()
	for _, python := range []string{"/usr/bin/python3", "python3"} {
		out, err := exec.Command(python, "-c", "import pip._vendor.packaging.requirements; print(pip.__path__[0])").Output()
		if err == nil {
			return strings.TrimSpace(string(out))
		}
	}
	t.Fatal("no Python here has pip (`make setup` installs what tests need)")
	return ""
}

func TestPipCheck(t *testing.T) {
	const torch = `torch 2.4.1+cu121; numpy; triton==3.0.0 @ platform_system == "Linux"`
	fits := []string{torch, "numpy 1.26.4", "triton 3.0.0", "torchvision 0.19.1+cu121; torch==2.4.1", "nvidia-cudnn-cu12 9.1.0", "nvidia-cublas-cu12 12.1"}
	with := func(more ...string) []string { return append(append([]string{}, fits...), more...) }
	trials := []trial{
		{name: "good", dists: with()},
		{name: "nothing", says: []string{"no distribution is installed", "the image's own Python"}},
		{name: "conflict", dists: with("a 1.0; NumPy<2,>=1.27"), says: []string{"a 1.0 requires NumPy<2,>=1.27, and 1.26.4 is installed", "imgforge lock --why numpy"}},
		{name: "missing", dists: with("a 1.0; b>=1"), says: []string{"a 1.0 requires b, which is not installed", "the recipe that lists a"}},
		{name: "not for this Python", dists: with(`a 1.0; b @ python_version < "3"`)},
		{name: "an extra that nobody asks for", dists: with(`a 1.0; b @ extra == "more"`)},
		{name: "an extra that is asked for", dists: with(`a 1.0; b @ extra == "more"`, "c 1.0; a[more]"), says: []string{"a 1.0 requires b, which is not installed"}},
		{name: "a requirement that is none", dists: with("a 1.0; b (oddly"), says: []string{"a 1.0", "'b (oddly'", "cannot be read"}},
		{name: "a version that is none", dists: with("a oddly", "b 1.0; a>=1"), says: []string{"b 1.0 requires a>=1", "oddly"}},
		{name: "twice", dists: with("numpy 2.0.1"), says: []string{"numpy is installed 2 times", "1.26.4", "2.0.1", "overwrite each other"}, more: -1},
		{name: "cu11 and cu12", dists: with("nvidia-cudnn-cu11 8.9"), says: []string{"CUDA libraries of cu11 and cu12", "torch's CUDA alone"}},
		{name: "two OpenCVs", dists: with("opencv-python 4.9", "opencv-contrib-python-headless 4.10"), says: []string{"opencv-contrib-python-headless, opencv-python share", "opencv-python-headless alone"}},
		{name: "another build's torchvision", dists: []string{torch, "numpy 1.26.4", "triton 3.0.0", "torchvision 0.19.1+cpu"},
			says: []string{"torchvision 0.19.1+cpu is built for cpu and torch 2.4.1+cu121 for cu121", "from one index"}},
		{name: "no triton", dists: []string{torch, "numpy 1.26.4"}, says: []string{"torch requires triton", "torch.compile fails", "lock again"}, more: 1},
	}
	for i := range trials {
		trials[i].has = "pip"
	}
	try(t, "pip-check", append(trials, trial{name: "no pip", dists: with(), says: []string{"packaging", "add the recipe python"}}))
}

func TestImports(t *testing.T) {
	dist := func(name, module, body string) map[string]string {
		return map[string]string{module: body, name + "-1.0.dist-info/METADATA": "Name: " + name + "\nVersion: 1.0\n", name + "-1.0.dist-info/RECORD": module + ",,\n" + name + "-1.0.dist-info/RECORD,,\n"}
	}
	lost := dist("lost", "lost/__init__.py", "")
	delete(lost, "lost/__init__.py")
	lost["lost/data.txt"] = "x"
	try(t, "imports", []trial{
		{name: "good", with: "distributions=a", files: dist("a", "a.py", "")},
		{name: "another spelling", with: "distributions=A-b", files: dist("a_b", "a_b/__init__.py", "")},
		{name: "none named", says: []string{"no distribution is named", "--distributions"}},
		{name: "missing", with: "distributions=a,no-such", files: dist("a", "a.py", ""), says: []string{"no-such is not installed", "from its lock"}},
		{name: "import error", with: "distributions=a", files: dist("a", "a.py", "import no_such"), says: []string{"import a (a 1.0): ModuleNotFoundError: No module named 'no_such'", "from its lock"}},
		{name: "library missing", with: "distributions=a", files: dist("a", "a.py", "raise ImportError('libGL.so.1: cannot open shared object file: No such file or directory')"),
			says: []string{"libGL.so.1: cannot open", "no package of the distribution", "`debs`"}},
		{name: "prints", with: "distributions=a", files: dist("a", "a.py", "import os\nprint('noise')\nos.system('echo noise')\nprint('{\"ok\": true}')")},
		{name: "exits", with: "distributions=a", files: dist("a", "a.py", "raise SystemExit(0)"), says: []string{"import a (a 1.0): SystemExit: 0"}},
		{name: "ends the program", with: "distributions=a", files: dist("a", "a.py", "import os\nos._exit(0)"), says: []string{"code 0 and without a result", "import a"}},
		{name: "crashes", with: "distributions=a", files: dist("a", "a.py", "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)"), says: []string{"without a result", "import a"}},
		{name: "interrupts", with: "distributions=a", files: dist("a", "a.py", "raise KeyboardInterrupt"), says: []string{"import a (a 1.0): KeyboardInterrupt"}},
		{name: "lost its files", with: "distributions=lost", files: lost, says: []string{"import lost (lost 1.0): lost/__init__.py is not there", "from its lock"}},
		{name: "lost its RECORD", with: "distributions=a", dists: []string{"a 1.0"}, says: []string{"a 1.0 does not say what its files are", "from its lock"}},
		{name: "no module to import", with: "distributions=stubs", files: dist("stubs", "stubs-1.0.dist-info/entry_points.txt", "")},
		{name: "in the way of itself alone", with: "distributions=a", files: dist("a", "a.py", "import sys\nassert 'result' not in sys.modules")},
		{name: "no metadata at all", with: "distributions=torch", has: "torch", says: []string{"torch is not installed"}},
	})
}

func TestTorchNumPy(t *testing.T) {
	const both = "torch numpy.py"
	try(t, "torch-numpy", []trial{
		{name: "good", has: both, with: "torch=2.4.1 cuda=12.1"},
		{name: "no torch", has: "numpy.py", says: []string{"No module named 'torch'", "from its lock"}},
		{name: "no NumPy", has: "torch", says: []string{"No module named 'numpy'", "from its lock"}},
		{name: "another torch", has: both, with: "torch=2.3.1", says: []string{"torch is 2.4.1+cu121, not 2.3.1", "from its lock"}},
		{name: "another CUDA", has: both, with: "cuda=11.8", says: []string{"built for CUDA 12.1, not 11.8", "lock again"}},
		{name: "no CUDA", has: both, fake: `"cuda": null`, with: "cuda=12.1", says: []string{"built for CUDA none (CPU only), not 12.1"}},
		{name: "warning", has: both, fake: `"warn": ["Failed to initialize NumPy: _ARRAY_API not found (Triggered internally at ../torch/csrc/utils/tensor_numpy.cpp:84.)"]`,
			says: []string{"Failed to initialize NumPy", "torch was built for NumPy 1, and NumPy 2 is installed", "numpy<2"}},
		{name: "both warnings and the failure", has: both,
			fake: `"warn": ["Failed to initialize NumPy: _ARRAY_API not found"], "numpy": "RuntimeError: Numpy is not available", "numpy version": "2.0.1",
				"say": "\nA module that was compiled using NumPy 1.x cannot be run in\nNumPy 2.0.1 as it may crash. To support both 1.x and 2.x\nversions of NumPy, modules must be compiled with NumPy 2.0.\n"`,
			says: []string{"Numpy is not available", "torch was built for NumPy 1, and NumPy 2 is installed", "numpy<2"}},
		{name: "another warning", has: both, fake: `"warn": ["NumPy will do something else in a year"]`},
		{name: "from_numpy fails", has: both, fake: `"from_numpy": "RuntimeError: Numpy is not available"`, says: []string{"torch.from_numpy: RuntimeError: Numpy is not available", "numpy<2"}},
		{name: "from_numpy copies", has: both, fake: `"wrong": "from_numpy"`, says: []string{"other numbers than NumPy has", "from its lock"}},
		{name: "library missing", has: both, fake: `"import torch": "OSError: libcublas.so.12: cannot open shared object file"`, says: []string{"libcublas.so.12", "from its lock"}},
	})
}

func TestOpenCV(t *testing.T) {
	const both = "cv2.py numpy.py"
	headless := []string{"opencv-python-headless 4.10"}
	try(t, "opencv", []trial{
		{name: "good", has: both, dists: headless},
		{name: "none", says: []string{"No module named 'cv2'", "opencv-headless"}},
		{name: "windows", has: both, dists: []string{"opencv-python 4.10"}, fake: `"gui": "QT5"`, says: []string{"cv2 is built with windows (QT5)", "use opencv-python-headless"}, more: 1},
		{name: "a distribution with windows", has: both, dists: []string{"opencv-contrib-python 4.10"}, says: []string{"opencv-contrib-python 4.10 opens windows", "imgforge lock --why opencv-contrib-python"}},
		{name: "two", has: both, dists: append(headless, "opencv-contrib-python-headless 4.9"), says: []string{"opencv-python-headless 4.10 and opencv-contrib-python-headless 4.9", "overwrite each other"}},
		{name: "libGL", has: both, dists: headless, fake: `"import cv2": "ImportError: libGL.so.1: cannot open shared object file: No such file or directory"`,
			says: []string{"import cv2: ImportError: libGL.so.1", "OpenCV with windows", "opencv-python-headless alone"}},
		{name: "libgthread", has: both, dists: headless, fake: `"import cv2": "ImportError: libgthread-2.0.so.0: cannot open shared object file: No such file or directory"`,
			says: []string{"libgthread-2.0.so.0", "`debs`", "libglib2.0-0"}},
		{name: "no NumPy", has: "cv2.py", dists: headless, says: []string{"No module named 'numpy'"}},
		{name: "an empty shell", has: "numpy.py", dists: headless, files: map[string]string{"cv2/data/x.xml": ""}, says: []string{"cv2 is not whole", "overwrote", "opencv-python-headless alone"}},
		{name: "no JPEG", has: both, dists: headless, fake: `"no codec": [".jpg"]`, says: []string{"a picture written as .jpg does not come back", "from its lock"}},
		{name: "another colour", has: both, dists: headless, fake: `"red": 0`, says: []string{"written as .jpg does not come back"}, more: 1},
	})
}

func TestMatplotlib(t *testing.T) {
	const has = "matplotlib"
	try(t, "matplotlib-agg", []trial{
		{name: "good", has: has, env: []string{"DISPLAY=:0"}},
		{name: "none", says: []string{"No module named 'matplotlib'", "matplotlib-agg"}},
		{name: "TkAgg by a file", has: has, fake: `"backend": "TkAgg"`, says: []string{"the backend is TkAgg, not agg", "fails where there is no display", "MATPLOTLIBRC"}},
		{name: "TkAgg without effect", has: has, fake: `"backend": "TkAgg", "falls back": true`, says: []string{"the backend is TkAgg, not agg", "MATPLOTLIBRC"}},
		{name: "nothing chosen", has: has, fake: `"backend": null, "falls back": true`},
		{name: "TkAgg by the environment", has: has, env: []string{"MPLBACKEND=TkAgg"}, says: []string{"MPLBACKEND=TkAgg is set", "matplotlibrc that MATPLOTLIBRC names"}, more: 1},
		{name: "Agg by the environment", has: has, env: []string{"MPLBACKEND=agg"}, says: []string{"MPLBACKEND=agg is set: notebooks lose their inline plots"}},
		{name: "no place for its cache", has: has, fake: `"say": "Matplotlib created a temporary cache directory at /tmp/matplotlib-x because the default path (/nonexistent) is not a writable directory\n"`,
			says: []string{"it complains: Matplotlib created a temporary cache directory", "MPLCONFIGDIR"}},
		{name: "warns", has: has, fake: `"warn": "no font"`, says: []string{"UserWarning: no font"}},
		{name: "is deprecated", has: has, fake: `"deprecated": "this will go away"`},
		{name: "fails", has: has, fake: `"figure": "RuntimeError: no canvas"`, says: []string{"RuntimeError: no canvas"}},
		{name: "no PNG", has: has, fake: `"wrong": "png"`, says: []string{"what was saved is no PNG", "from its lock"}},
	})
}

func TestJupyterKernel(t *testing.T) {
	const has = "jupyter_client jupyter-lab"
	try(t, "jupyter-kernel", []trial{
		{name: "good", has: has + " torch matplotlib"},
		{name: "neither torch nor matplotlib", has: has},
		{name: "none", says: []string{"No module named 'jupyter_client'", "add the recipe jupyter"}},
		{name: "no JupyterLab", has: "jupyter_client", says: []string{"no jupyter-lab on PATH", "add the recipe jupyter"}},
		{name: "no kernel", has: has, fake: `"no kernel": true`, says: []string{"NoSuchKernel: No such kernel named python3", "does not start", "ipykernel", "JUPYTER_PATH"}},
		{name: "the kernel dies", has: has, fake: `"start": "RuntimeError: Kernel died before replying to kernel_info"`, says: []string{"Kernel died before replying", "does not start", "ipykernel"}},
		{name: "the cell does not end", has: has, fake: `"execute": "TimeoutError: Timeout waiting for output"`, says: []string{"TimeoutError: Timeout waiting for output", "answers no cell"}},
		{name: "another Python", has: has, fake: `"kernel": "/usr/bin/python3"`, says: []string{"the kernel runs the Python of /usr, the shell that of", "JUPYTER_PATH"}},
		{name: "another Python, without torch", has: has + " torch", fake: `"kernel": "/usr/bin/python3"`, says: []string{"the kernel has torch None, the shell 2.4.1+cu121", "JUPYTER_PATH"}, more: 1},
		{name: "the cell fails", has: has, files: map[string]string{"torch.py": "raise ImportError('libcudart.so.12: no')"}, says: []string{"the cell fails: ImportError: libcudart.so.12: no"}},
		{name: "no plots in the notebook", has: has + " matplotlib", fake: `"inline": "agg"`, says: []string{"matplotlib draws with agg in a notebook, not inline", "do not set MPLBACKEND"}},
	})
}

func TestCompiler(t *testing.T) {
	header := "import sysconfig, os\nos.makedirs(os.environ['TEST_DIR'] + '/include', exist_ok=True)\n" +
		"open(os.environ['TEST_DIR'] + '/include/Python.h', 'w').close()\nsysconfig.get_path = lambda name: os.environ['TEST_DIR'] + '/include'\n"
	files := map[string]string{"header.py": header, "header.pth": "import header"}
	try(t, "compiler", []trial{
		{name: "none", says: []string{"there is no C compiler", "add the recipe devel"}},
		{name: "no headers", has: "cc", files: map[string]string{"header.py": "import sysconfig\nsysconfig.get_path = lambda name: '/nonexistent'", "header.pth": "import header"},
			says: []string{"/nonexistent/Python.h is missing", "-dev"}},
		{name: "does not compile", has: "cc", files: files, says: []string{"it does not compile: /usr/include/python3/Python.h:12:10: fatal error: limits.h", "add the recipe devel"}},
		{name: "named with an option", has: "cc", files: files, env: []string{"CC=cc -pipe"}, says: []string{"it does not compile: /usr/include"}},
		{name: "named and not there", has: "cc", files: files, env: []string{"CC=clang"}, says: []string{"CC=clang", "no such program"}},
		{name: "makes nothing", has: "gcc", files: files, says: []string{"the extension cannot be loaded: ModuleNotFoundError", "add the recipe devel"}},
	})
	if _, err := exec.LookPath("gcc"); err != nil {
		return // images have one in any case: a recipe's own check
	}
	if _, err := os.Stat(filepath.Join("/usr/include", python(t), "Python.h")); err == nil {
		try(t, "compiler", []trial{{name: "good", env: []string{"PATH=/usr/bin:/bin"}}})
	}
}
