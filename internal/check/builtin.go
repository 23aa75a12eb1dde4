package check

import (
	"maps"
	"slices"
	"time"
)

// Builtin is a check that imgforge brings along.
type Builtin struct {
	Name    string
	Kind    Kind
	Doc     string            // what a pass shows, one line
	Options map[string]string // by name, what each is
	Timeout time.Duration
	User    string // uid:gid it runs as; empty for the image's own
}

// builtins is the table. Programs of the cpu and gpu ones lie in
// recipes/files/checks; the static ones are package scan's.
var builtins = []Builtin{
	{Name: "two-cuda", Kind: Static, Doc: "one CUDA runtime and one cuDNN, none of them twice"},
	{Name: "cuda-compat", Kind: Static, Doc: "no driver library of its own: the host's is mounted in"},
	{Name: "one-opencv", Kind: Static, Doc: "at most one OpenCV distribution, without windows"},
	{Name: "writable", Kind: Static, Doc: "nothing that shells and Python read can be written by others than root",
		Options: map[string]string{"allow": "paths that may be, separated by commas"}},
	{Name: "setuid", Kind: Static, Doc: "no set-uid programs or file capabilities beyond the distribution's own",
		Options: map[string]string{"allow": "paths that may be, separated by commas"}},
	{Name: "leftovers", Kind: Static, Doc: "no secrets, caches, package lists, logs or machine-id left behind",
		Options: map[string]string{"allow": "paths that may stay, separated by commas"}},
	{Name: "stale-pyc", Kind: Static, Doc: "Python's compiled files belong to their sources, so that no start compiles anew"},
	{Name: "record", Kind: Static, Doc: "every installed file is what its wheel's RECORD says"},

	{Name: "pip-check", Kind: CPU, Doc: "what distributions require of each other holds, and what pip cannot see"},
	{Name: "imports", Kind: CPU, Timeout: 5 * time.Minute, Doc: "every requested distribution is installed and can be imported",
		Options: map[string]string{"distributions": "names, separated by commas"}},
	{Name: "torch-numpy", Kind: CPU, Timeout: 5 * time.Minute, Doc: "torch is the one that was asked for and shares arrays with NumPy",
		Options: map[string]string{"torch": "its release", "cuda": "the CUDA it is built for"}},
	{Name: "opencv", Kind: CPU, Doc: "one cv2, without windows, writes and reads a JPEG"},
	{Name: "matplotlib-agg", Kind: CPU, Timeout: 5 * time.Minute, Doc: "a plot is saved without a display, by a user without a home"},
	{Name: "jupyter-kernel", Kind: CPU, Timeout: 5 * time.Minute, Doc: "a notebook's cell runs with the Python of the shell"},
	{Name: "zsh", Kind: CPU, Doc: "zsh starts quietly for every user, with both plugins"},
	{Name: "compiler", Kind: CPU, Timeout: 5 * time.Minute, Doc: "a C extension for this Python compiles and loads"},

	{Name: "nvidia-smi", Kind: GPU, Doc: "the driver answers, is at least the floor, and the GPUs are free",
		Options: map[string]string{"floor": "the oldest driver", "gpu": "model that is expected, by a loose name", "max-used": "MiB that may be in use on a GPU"}},
	{Name: "torch-cuda", Kind: GPU, Timeout: 10 * time.Minute, Doc: "torch computes rightly on every GPU, and gives the memory back",
		Options: map[string]string{"gpu": "model that is expected, by a loose name", "count": "how many GPUs there must be"}},
	{Name: "torch-compile", Kind: GPU, Timeout: 10 * time.Minute, Doc: "torch.compile makes a kernel that computes rightly",
		Options: map[string]string{"floor": "the oldest driver it works on"}},
	{Name: "nccl", Kind: GPU, Timeout: 10 * time.Minute, Doc: "all GPUs add up a tensor together"},
}

const (
	shortest = time.Second
	longest  = time.Hour
	usual    = 2 * time.Minute
)

// Builtins is the table, in the order checks are told.
func Builtins() []Builtin { return slices.Clone(builtins) }

// Find is the built-in of a name.
func Find(name string) (Builtin, bool) {
	i := slices.IndexFunc(builtins, func(b Builtin) bool { return b.Name == name })
	if i < 0 {
		return Builtin{}, false
	}
	return builtins[i], true
}

func builtinNames() []string {
	var out []string
	for _, b := range builtins {
		out = append(out, b.Name)
	}
	return out
}

func (b Builtin) optionNames() []string { return slices.Sorted(maps.Keys(b.Options)) }
