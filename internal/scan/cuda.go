package scan

import (
	"archive/tar"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// cudaLibrary is a library that must be there once: its name and its major version.
// Wheels of old put a hash into the name: libcudart-d0da41ae.so.11.0.
var cudaLibrary = regexp.MustCompile(`^lib(cudart|cublas|cudnn|nccl|cusparse|cufft)(?:-[0-9a-f]{8})?\.so\.(\d+)`)

var distInfo = regexp.MustCompile(`^(.+)-[^-]+\.(?:dist|egg)-info$`)

// distributions are the names of what is installed for Python, normalized, with the
// directory each is in.
func (t *Tree) distributions() map[string][]string {
	out := map[string][]string{}
	seen := map[string]bool{} // some have both
	for _, p := range t.order {
		info := p
		if base := path.Base(p); base == "METADATA" || base == "PKG-INFO" {
			info = path.Dir(p)
		} else if t.files[p].kind != tar.TypeReg {
			continue
		}
		dir, name := path.Split(info)
		if m := distInfo.FindStringSubmatch(name); m != nil && strings.HasSuffix(dir, "-packages/") && !seen[info] {
			key := strings.ToLower(strings.NewReplacer("_", "-", ".", "-").Replace(m[1]))
			out[key], seen[info] = append(out[key], dir), true
		}
	}
	return out
}

// twoCUDA refuses a second CUDA runtime or cuDNN: whichever is found first, symbols of
// the other are missing (pytorch#119989).
func twoCUDA(f *findings) {
	type copies struct {
		dirs  map[string]bool
		lines []string
		bytes int64
	}
	found := map[string]*copies{}
	f.tree.each(func(x *file) {
		m := cudaLibrary.FindStringSubmatch(path.Base(x.path))
		if m == nil || strings.Contains(x.path, "/stubs/") {
			return
		}
		c := found[m[1]]
		if c == nil {
			c = &copies{dirs: map[string]bool{}}
			found[m[1]] = c
		}
		c.dirs[path.Dir(x.path)+" "+m[2]] = true
		c.lines = append(c.lines, fmt.Sprintf("%s, %d bytes", at(x), x.size))
		c.bytes += x.size
	})
	var one []string
	for _, name := range []string{"cudart", "cublas", "cudnn", "nccl", "cusparse", "cufft"} {
		c := found[name]
		if c == nil {
			continue
		}
		one = append(one, "lib"+name)
		if len(c.dirs) > 1 {
			f.add("keep the one that torch's wheels bring", "lib%s is there %d times (%d bytes): %s", name, len(c.dirs), c.bytes, strings.Join(c.lines, "; "))
		}
	}
	var kinds []string
	for name := range f.tree.distributions() {
		if i := strings.LastIndex(name, "-cu1"); strings.HasPrefix(name, "nvidia-") && i > 0 && !slices.Contains(kinds, name[i+1:]) {
			kinds = append(kinds, name[i+1:])
		}
	}
	if slices.Sort(kinds); len(kinds) > 1 {
		f.add("keep those of torch's CUDA alone", "distributions of %s are installed, and overwrite each other in site-packages/nvidia", strings.Join(kinds, " and "))
	}
	f.summary = "no CUDA library"
	if len(one) > 0 {
		f.summary = "once each: " + strings.Join(one, ", ")
	}
}

// driverLibrary is a library that belongs to the host's kernel module.
var driverLibrary = regexp.MustCompile(`^lib(cuda|cudadebugger|nvcuvid|nvidia-(ml|ptxjitcompiler|nvvm|encode|opticalflow))\.so`)

// cudaCompat refuses a driver library in the image: on GPUs that do not support it
// CUDA fails with error 804 (nvidia-docker#1294), and an older one hides the host's.
func cudaCompat(f *findings) {
	const do = "take cuda-compat out: the NVIDIA Container Toolkit mounts the host's driver"
	f.tree.each(func(x *file) {
		if driverLibrary.MatchString(path.Base(x.path)) && path.Base(path.Dir(x.path)) != "stubs" {
			f.add(do, "a driver library: %s", at(x))
		}
		if strings.HasPrefix(x.path, "etc/ld.so.conf") && strings.Contains(string(x.data), "/compat") {
			f.add(do, "%s puts a compat directory on the library path", at(x))
		}
	})
	f.summary = "no driver library of its own"
}

// oneOpenCV refuses OpenCV distributions that overwrite each other, and windows.
func oneOpenCV(f *findings) {
	var found []string
	dists := f.tree.distributions()
	for _, name := range []string{"opencv-python", "opencv-python-headless", "opencv-contrib-python", "opencv-contrib-python-headless"} {
		for _, dir := range dists[name] {
			found = append(found, name+" in /"+strings.TrimSuffix(dir, "/"))
			if !strings.HasSuffix(name, "-headless") {
				f.add("use opencv-python-headless", "%s opens windows: it needs libGL and X libraries", name)
			}
		}
	}
	if len(found) > 1 {
		f.add("keep opencv-python-headless alone", "%s overwrite each other in cv2/", strings.Join(found, " and "))
	}
	f.summary = "no OpenCV"
	if len(found) == 1 {
		f.summary = found[0]
	}
}
