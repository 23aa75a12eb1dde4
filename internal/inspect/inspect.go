// Package inspect reads a root file system that was made elsewhere, as layers of
// tar, and says what it holds: its system, Python, torch, CUDA and package lists.
package inspect

import (
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/version"
)

// Layer opens a layer: a tar, plain or compressed with gzip or zstd.
type Layer func() (io.ReadCloser, error)

// Root is what a file system holds.
type Root struct {
	lock.Facts
	Status []byte // of dpkg: which packages are installed
}

// Layers reads layers, base first; env is NAME=value of the image's configuration
// and may be nil. A layer that is damaged or has a member that leaves the root is
// an error with its number.
func Layers(layers []Layer, env []string) (*Root, error) {
	t := &tree{nodes: map[string]node{}}
	for i, open := range layers {
		if err := t.apply(open); err != nil {
			return nil, fmt.Errorf("layer %d of %d: %w", i+1, len(layers), err)
		}
	}
	r := &Root{Status: t.content("var/lib/dpkg/status")}
	r.Env = map[string]string{}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		r.Env[name] = value
	}
	r.Newest = strconv.FormatInt(t.newest, 10)
	r.readSystem(t)
	r.readPython(t)
	r.readCUDA(t)
	return r, nil
}

// readSystem reads os-release.
func (r *Root) readSystem(t *tree) {
	release := t.content("etc/os-release")
	if len(release) == 0 {
		release = t.content("usr/lib/os-release")
	}
	for line := range strings.Lines(string(release)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		value = strings.Trim(value, `"'`)
		switch name {
		case "ID":
			r.OS = value
		case "VERSION_CODENAME":
			r.Suite = value
		}
	}
}

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

var pythonName = regexp.MustCompile(`^python(3\.\d+)$`)

// readPython finds the interpreter that PATH leads to, and what it can import.
func (r *Root) readPython(t *tree) {
	if ours := t.resolve("opt/venv"); t.nodes[ours].kind != absent {
		r.Venv = "/opt/venv"
	}
	search := r.Env["PATH"]
	if search == "" {
		search = defaultPath
	}
	for dir := range strings.SplitSeq(search, ":") {
		for _, name := range []string{"python3", "python"} {
			found := t.resolve(path.Join(dir, name))
			if n := t.nodes[found]; n.kind != file || !n.exec {
				continue
			}
			if home := path.Dir(t.resolve(dir)); t.nodes[path.Join(home, "pyvenv.cfg")].kind != absent {
				r.Venv = "/" + home
			}
			r.Python, r.PythonVersion = "/"+found, versionOf(t, found)
			r.System = strings.HasPrefix(found, "usr/bin/") && strings.Contains("\n"+string(r.Status), "\nPackage: "+path.Base(found))
			r.readDistributions(t, path.Dir(path.Dir(found)))
			return
		}
	}
}

// versionOf tells a Python's version by its own name, or by the library beside it.
func versionOf(t *tree, python string) string {
	if m := pythonName.FindStringSubmatch(path.Base(python)); m != nil {
		return m[1]
	}
	lib := path.Join(path.Dir(path.Dir(python)), "lib") + "/"
	for _, p := range t.sorted() {
		first, _, _ := strings.Cut(strings.TrimPrefix(p, lib), "/")
		if m := pythonName.FindStringSubmatch(first); m != nil && strings.HasPrefix(p, lib) {
			return m[1]
		}
	}
	return ""
}

var (
	distName  = regexp.MustCompile(`^([A-Za-z0-9._]+)-([^-]+)(-py3\.\d+)?\.(dist|egg)-info$`)
	torchCUDA = regexp.MustCompile(`(?m)^cuda(?:: [^=]+)? = ['"]([\d.]+)['"]`)
)

// readDistributions reads names and versions from the directories of metadata.
func (r *Root) readDistributions(t *tree, prefix string) {
	lib := "lib/python" + r.PythonVersion
	dirs := []string{path.Join(prefix, lib, "site-packages")}
	if r.System {
		dirs = []string{path.Join("usr/local", lib, "dist-packages"), "usr/lib/python3/dist-packages"}
	}
	r.Distributions = map[string]string{}
	for _, p := range t.sorted() {
		m := distName.FindStringSubmatch(path.Base(p))
		if m == nil || !slices.Contains(dirs, path.Dir(p)) {
			continue
		}
		if name := version.NormalizeName(m[1]); r.Distributions[name] == "" {
			r.Distributions[name] = m[2]
		}
	}
	for _, dir := range dirs {
		if m := torchCUDA.FindSubmatch(t.content(path.Join(dir, "torch/version.py"))); m != nil {
			r.TorchCUDA = string(m[1])
		}
	}
}

var (
	cudnnName = regexp.MustCompile(`^libcudnn\.so\.\d+$`)
	cudaDir   = regexp.MustCompile(`^usr/local/cuda(-[\d.]+)?$`)
)

// readCUDA finds NVIDIA's libraries outside Python's packages, and its archive.
func (r *Root) readCUDA(t *tree) {
	add := func(to *[]string, p string) {
		if p = "/" + p; !slices.Contains(*to, p) {
			*to = append(*to, p)
		}
	}
	for _, p := range t.sorted() {
		dir, name := path.Split(p)
		dir = path.Clean(dir)
		switch {
		case strings.Contains(p, "/site-packages/") || strings.Contains(p, "/dist-packages/"):
		case strings.HasPrefix(name, "libcudart.so"):
			add(&r.CUDA, toolkitOf(dir))
		case cudnnName.MatchString(name):
			add(&r.CuDNN, p)
		case strings.HasPrefix(name, "libcuda.so") && path.Base(dir) == "compat":
			add(&r.Compat, dir)
		case strings.HasPrefix(p, "etc/apt/sources.list") && strings.Contains(string(t.content(p)), "nvidia"):
			add(&r.AptSources, p)
		}
	}
}

// toolkitOf is the CUDA directory a library lies in, or its own directory.
func toolkitOf(dir string) string {
	for at := dir; at != "."; at = path.Dir(at) {
		if cudaDir.MatchString(at) {
			return at
		}
	}
	return dir
}
