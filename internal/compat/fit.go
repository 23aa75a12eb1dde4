package compat

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/imgforge/imgforge/internal/version"
)

// Host is a machine to run on. What is zero is not judged.
type Host struct {
	GPU    GPU
	Driver HostDriver
}

// Fit judges s as Judge does, but for one machine: what does not run there is an
// error. Its clauses do not repeat the torch release, so that the same judgement
// of several releases reads the same.
func Fit(s Subject, h Host) []Judgement {
	if out := about("torch", fitBuild(s)); out != nil {
		return out // nothing else can be said of what does not exist
	}
	out := slices.Concat(about("python", fitPython(s)), about("torch", fitCode(s, h.GPU)),
		about("driver", fitDriver(s, h.Driver)), about("driver", fitFloor(s, h)), about("driver", fitDevice(h)), about("torch", fitRules(s, h)))
	if Worst(out) == Error { // what does not run needs no notes
		out = slices.DeleteFunc(out, func(j Judgement) bool { return j.Level == Note })
	}
	return byLevel(out)
}

// Worst is the level of the gravest judgement; empty when there is none.
func Worst(js []Judgement) string {
	for _, level := range levels {
		if slices.ContainsFunc(js, func(j Judgement) bool { return j.Level == level }) {
			return level
		}
	}
	return ""
}

func fitBuild(s Subject) []Judgement {
	if s.Torch == "" || s.CUDA == "" {
		return nil
	}
	_, err := Lookup(s.Torch, s.CUDA)
	var none *missing
	if errors.As(err, &none) {
		return []Judgement{none.judgement()}
	}
	return nil
}

func fitPython(s Subject) []Judgement {
	rel, ok := known().release(s.Torch)
	switch {
	case !ok || s.Python == "":
		return nil
	case !slices.Contains(rel.pythons, s.Python):
		return []Judgement{{Level: Error, What: "no wheel for Python " + s.Python, Why: "there are wheels for Python " + strings.Join(rel.pythons, ", "),
			Cure: "take one of these, or another torch", Source: rel.source}}
	case rel.experimental == s.Python:
		return []Judgement{{Level: Warning, What: fmt.Sprintf("Python %s is experimental", s.Python), Why: "wheels exist but upstream does not stand behind them",
			Cure: "take an older Python, or a newer torch", Source: rel.source}}
	}
	return nil
}

// fitCode: the wheel holds code that the device runs.
func fitCode(s Subject, g GPU) []Judgement {
	if g.Capability == "" || s.Torch == "" || s.CUDA == "" {
		return nil
	}
	platform := cmp.Or(s.Platform, g.Platform)
	if platform != g.Platform && g.Platform == ARM64 {
		return []Judgement{{Level: Error, What: "an image for " + platform + " does not run on a " + ARM64 + " machine", Why: fmt.Sprintf("%s is part of such a machine", g.Name),
			Cure: "build the cell for " + ARM64, Source: g.Source}}
	}
	a, ok := archOf(s.Torch, s.CUDA, platform)
	switch {
	case !ok && Archs(s.Torch, s.CUDA) == nil:
		return []Judgement{{Level: Warning, What: "which devices it serves is not known", Why: "no source tells what machine code the wheels hold",
			Cure: "look at torch.cuda.get_arch_list() in the image", Source: dir + "data/archs.csv"}}
	case !ok:
		return []Judgement{{Level: Error, What: "no wheel is known for " + platform, Why: fmt.Sprintf("%s is part of a %s machine", g.Name, platform),
			Cure: servedBy(g), Source: dir + "data/archs.csv"}}
	case runs(a.capabilities, g.Capability):
		return nil
	case compiles(a.ptx, g.Capability):
		return []Judgement{{Level: Warning, What: "no machine code for compute capability " + g.Capability + ", only PTX of " + a.ptx,
			Why: "the driver compiles it when it is first loaded, which takes minutes", Cure: "keep the cache of compiled code (CUDA_CACHE_PATH)", Source: dir + "data/archs.csv"}}
	}
	return []Judgement{{Level: Error, What: fmt.Sprintf("no machine code for compute capability %s, only for %s", g.Capability, strings.Join(a.capabilities, " ")),
		Why:  "code runs only on its own major capability with an equal or higher minor one, and these wheels hold no PTX that the driver could compile",
		Cure: servedBy(g), Source: dir + "data/archs.csv"}}
}

// servedBy says which CUDAs have a torch that the device runs.
func servedBy(g GPU) string {
	cudas := ServedBy(g)
	if cudas == nil {
		return "no torch in the tables serves it"
	}
	return "take CUDA " + strings.Join(cudas, ", ")
}

// ServedBy lists the CUDAs that have a torch whose wheel the device runs, oldest
// first.
func ServedBy(g GPU) []string {
	var out []string
	for _, cuda := range CUDAs() {
		if slices.ContainsFunc(torchesFor(cuda), func(torch string) bool {
			a, ok := archOf(torch, cuda, g.Platform)
			return ok && (runs(a.capabilities, g.Capability) || compiles(a.ptx, g.Capability))
		}) {
			out = append(out, cuda)
		}
	}
	return out
}

// fitDriver: the driver runs the CUDA.
func fitDriver(s Subject, d HostDriver) []Judgement {
	f, ok := FloorOf(s.CUDA)
	if !ok || !d.Known() {
		return nil
	}
	some, all := d.Runs(f)
	switch {
	case !some:
		return []Judgement{{Level: Error, What: fmt.Sprintf("driver %s is older than CUDA %s allows: %s", d, s.CUDA, f.Compat),
			Why: "below a CUDA's oldest driver its runtime does not start (insufficient driver)", Cure: "install a newer driver, or take an older CUDA", Source: f.source}}
	case !all:
		return []Judgement{{Level: Warning, What: "minor-version compatibility: all of CUDA " + s.CUDA + " needs driver " + f.all(),
			Why:  "compiled GPU code runs, but PTX of that CUDA does not compile and what needs the newer driver is missing",
			Cure: "install that driver to have all of it", Source: f.source}}
	}
	return nil
}

// fitFloor: the driver is not older than the image asks for.
func fitFloor(s Subject, h Host) []Judgement {
	floor, err := version.ParseFloor(s.Driver)
	if err != nil || s.Driver == "" {
		return nil
	}
	if h.Driver.Known() && h.Driver.at.Compare(floor) < 0 {
		return []Judgement{{Level: Error, What: fmt.Sprintf("driver %s is older than the image's floor %s", h.Driver, floor),
			Why: "the image asks for that driver (NVIDIA_REQUIRE_CUDA) and is tested for no older one", Cure: "install a newer driver, or take a cell with an older floor"}}
	}
	if from := h.GPU.From(); !h.Driver.Known() && from != "" && older(floor, from) {
		return []Judgement{{Level: Note, What: fmt.Sprintf("%s needs driver %s or newer, above the image's floor %s", h.GPU.Name, from, floor),
			Why: "an older driver does not know the device", Cure: "see to it that hosts with this GPU have one", Source: h.GPU.Source}}
	}
	return nil
}

// fitDevice: the driver knows the device, whatever the image.
func fitDevice(h Host) []Judgement {
	if !h.Driver.Known() || h.GPU.Capability == "" {
		return nil
	}
	if from := h.GPU.From(); from != "" && older(h.Driver.at, from) {
		return []Judgement{{Level: Error, What: fmt.Sprintf("driver %s does not know %s: %s is the first", h.Driver, h.GPU.Name, from),
			Why: "an older driver does not see the device at all, whatever the image", Cure: "install a newer driver", Source: h.GPU.Source}}
	}
	if last := h.GPU.Last; last != "" && h.Driver.Major() > branchMajor(last) {
		return []Judgement{{Level: Error, What: fmt.Sprintf("driver %s no longer runs %s: R%s is its last branch", h.Driver, h.GPU.Name, last),
			Why: "newer drivers do not see the device at all, whatever the image", Cure: "install a driver of that branch", Source: h.GPU.Source}}
	}
	return nil
}

// fitRules: what the table of rules says of the driver, or else of the oldest that
// the floor and the device allow.
func fitRules(s Subject, h Host) []Judgement {
	if h.Driver.Known() {
		return rulesFor(s, h.Driver.at)
	}
	floor, err := version.ParseFloor(s.Driver)
	if from, bad := version.ParseDriver(h.GPU.From()); bad == nil && err == nil && floor.Compare(from) < 0 {
		floor = from
	}
	return rulesFor(s, floor)
}
