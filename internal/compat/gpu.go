package compat

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/imgforge/imgforge/internal/diag"
)

// GPU is a device, by the name that NVIDIA's tools give it.
type GPU struct {
	Name       string `json:"name"`
	Series     string `json:"series"`           // GeForce RTX 40 series; the name where there is none
	Capability string `json:"capability"`       // 8.9
	CUDA       string `json:"cuda"`             // the first that knows it natively
	Driver     string `json:"driver,omitempty"` // the first that runs it at all; empty when not stated
	Last       string `json:"last,omitempty"`   // the last driver branch that does: 580; empty: still supported
	Platform   string `json:"platform"`         // of the machines that have it: linux/amd64, or linux/arm64 where it is soldered to such a CPU
	Source     string `json:"source"`
}

func (r *row) gpu() GPU {
	g := GPU{
		Name: r.get("name"), Series: r.get("series"), Capability: r.get("capability"), CUDA: r.cuda("cuda"),
		Driver: r.driver("driver"), Last: r.driver("last"), Platform: r.oneOf("platform", "", AMD64, ARM64), Source: r.get("source"),
	}
	if g.Platform == "" {
		g.Platform = AMD64
	}
	if _, _, ok := capability(g.Capability); !ok {
		r.bad.Add(r.pos, "write major.minor, such as 8.6", "%q is not a compute capability", g.Capability)
	}
	return g
}

// From is the oldest driver that can be expected to run the device: the one that
// is stated, else that of the first CUDA which knows it. Empty when older than
// the tables.
func (g GPU) From() string {
	if g.Driver != "" {
		return g.Driver
	}
	f, _ := FloorOf(g.CUDA)
	return f.Strict
}

// GPUs lists the known devices, by capability.
func GPUs() []GPU { return slices.Clone(known().gpus) }

// words that a device's name may have or not: makers, memory, connectors.
var gpuNoise = regexp.MustCompile(`^(nvidia|geforce|tesla|dgx|hgx|gpus?|graphics|laptop|notebook|mobile|max|q|with|design|generation|edition|server|workstation|series|pcie?|sxm\d?|nvl\d*|hbm\d?e?|\d+gi?b?)$`)

var notAlnum = regexp.MustCompile(`[^a-z0-9]+`)

// gpuWords is what of a device's name tells it from others.
func gpuWords(name string) []string {
	name = strings.ToLower(name)
	name, _, _ = strings.Cut(name, " mig ") // a slice of a device
	var out []string
	for _, w := range notAlnum.Split(name, -1) {
		if w != "" && !gpuNoise.MatchString(w) {
			out = append(out, w)
		}
	}
	return out
}

// gpuKey is a name without spaces and noise, and without the line of products
// that a number alone identifies.
func gpuKey(name string) string {
	key := strings.Join(gpuWords(name), "")
	for _, line := range []string{"nvidia", "geforce", "tesla", "rtx", "gtx"} {
		if rest := strings.TrimPrefix(key, line); len(rest) > 2 || len(line) > 3 && rest != "" {
			key = rest
		}
	}
	return key
}

// namedGPU is a device and what of its names a loose one is held to.
type namedGPU struct {
	GPU
	words       []string
	key, series string
}

var namedGPUs = sync.OnceValue(func() []namedGPU {
	var out []namedGPU
	for _, g := range known().gpus {
		out = append(out, namedGPU{g, gpuWords(g.Name), gpuKey(g.Name), gpuKey(g.Series)})
	}
	return out
})

// capabilityForm is a compute capability instead of a name: 8.9, sm_89.
var capabilityForm = regexp.MustCompile(`^(?i:(\d{1,2})\.(\d)|sm_?(\d{1,2})(\d))$`)

// FindGPU finds a device by a loose name: "4090", "rtx4090", "NVIDIA A100-SXM4-80GB",
// a series ("RTX 40 series") whose members do not differ, or a compute capability
// ("8.9", "sm_89"). The error names what comes near.
func FindGPU(name string) (GPU, error) {
	name = strings.TrimSpace(name)
	if m := capabilityForm.FindStringSubmatch(name); m != nil {
		return ofCapability(m[1] + m[3] + "." + m[2] + m[4])
	}
	key := gpuKey(name)
	if key == "" {
		return GPU{}, fmt.Errorf("no GPU is named %q; write a name such as \"RTX 4090\" or H20, or a compute capability such as 8.9", name)
	}
	var near []GPU
	words := gpuWords(name)
	for _, g := range namedGPUs() {
		if g.key == key {
			return g.GPU, nil
		}
		if g.series == key {
			g.Name = g.Series
			return g.GPU, nil
		}
		if hasWords(g.words, words) || len(key) > 2 && strings.Contains(g.key, key) {
			near = append(near, g.GPU)
		}
	}
	if len(near) == 1 {
		return near[0], nil
	}
	if len(near) > 1 {
		return GPU{}, fmt.Errorf("several GPUs are named like %q: %s; write one of these names", name, gpuNames(near))
	}
	return GPU{}, unknownGPU(name, key)
}

// ofCapability is any device of that capability, of which nothing else is known.
func ofCapability(capability string) (GPU, error) {
	var have []string
	var found GPU
	for _, g := range known().gpus {
		if g.Capability == capability && (found.Name == "" || g.Platform == AMD64) {
			found = GPU{Name: "any of compute capability " + capability, Capability: capability, CUDA: g.CUDA, Platform: g.Platform, Source: g.Source}
		}
		if !slices.Contains(have, g.Capability) {
			have = append(have, g.Capability)
		}
	}
	if found.Name == "" {
		return GPU{}, fmt.Errorf("no GPU of compute capability %s is known; known: %s", capability, strings.Join(have, ", "))
	}
	return found, nil
}

func hasWords(all, some []string) bool {
	return !slices.ContainsFunc(some, func(w string) bool { return !slices.Contains(all, w) })
}

// gpuNames lists names, the first few of many.
func gpuNames(gpus []GPU) string {
	const most = 8
	var out []string
	for _, g := range gpus[:min(len(gpus), most)] {
		out = append(out, g.Name)
	}
	if more := len(gpus) - most; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, ", ")
}

// unknownGPU names the devices whose names are spelled nearest.
func unknownGPU(name, key string) error {
	names := map[string]string{}
	var keys []string
	for _, g := range namedGPUs() {
		names[g.key] = g.Name
		keys = append(keys, g.key)
	}
	var mean []string
	for range 3 {
		near := diag.Nearest(key, keys)
		if near == "" {
			break
		}
		mean = append(mean, names[near])
		keys = slices.DeleteFunc(keys, func(k string) bool { return k == near })
	}
	list := "`imgforge compat gpus` lists them all; one that is missing can be given by its compute capability, such as 8.9"
	if mean == nil {
		return fmt.Errorf("no GPU %q is known; %s", name, list)
	}
	return fmt.Errorf("no GPU %q is known; did you mean %s? %s", name, strings.Join(mean, ", "), list)
}

// SearchGPUs lists the devices whose name and series have all the words of text, or
// that FindGPU finds; all of them for no text.
func SearchGPUs(text string) []GPU {
	var out []GPU
	found, err := FindGPU(text)
	words := gpuWords(text)
	for _, g := range namedGPUs() {
		has := len(words) > 0 && hasWords(append(gpuWords(g.Series), g.words...), words)
		if text == "" || has || err == nil && (g.Name == found.Name || g.Capability == text) {
			out = append(out, g.GPU)
		}
	}
	return out
}
