package compat

import (
	"slices"
	"strings"
)

// Floor is what a CUDA release asks of the driver; versions are bare, and empty
// where the release notes give none.
type Floor struct {
	Compat  string // oldest driver that runs it at all
	Strict  string // driver of its first release: below it, no PTX of that toolkit compiles
	Shipped string // driver of its newest update
	Branch  string // driver branch of the toolkit: R530
	cuda    string
	source  string
}

func (r *row) floor() Floor {
	return Floor{
		cuda: r.cuda("cuda"), Compat: r.driver("compat"), Strict: r.driver("strict"),
		Shipped: r.driver("shipped"), Branch: r.get("branch"), source: r.get("source"),
	}
}

// FloorOf is what cuda ("12.1") asks of the driver; false when it is not known.
func FloorOf(cuda string) (Floor, bool) {
	for _, f := range known().floors {
		if f.cuda == cuda {
			return f, true
		}
	}
	return Floor{}, false
}

// arch is a row of archs.csv.
type arch struct {
	torches, cuda string
	capabilities  []string
}

func (r *row) arch() arch {
	r.get("source")
	return arch{torches: r.torches("torch"), cuda: r.cuda("cuda"), capabilities: r.list("archs")}
}

// Archs lists the compute capabilities ("8.6") whose machine code the build of
// torch for cuda holds, lowest first; nil when that is not known.
func Archs(torch, cuda string) []string {
	for _, a := range known().archs {
		if a.cuda == cuda && applies(torch, a.torches) {
			return slices.Clone(a.capabilities)
		}
	}
	return nil
}

// GPU is a kind of device.
type GPU struct {
	Name       string
	Capability string // 8.6
	CUDA       string // the first that knows it natively
	Driver     string // the first that runs it at all; empty when not known
	Source     string
}

func (r *row) gpu() GPU {
	return GPU{
		Name: r.get("name"), Capability: r.get("capability"), CUDA: r.cuda("cuda"),
		Driver: r.driver("driver"), Source: r.get("source"),
	}
}

// GPUs lists the known devices, by capability.
func GPUs() []GPU { return slices.Clone(known().gpus) }

// runs tells whether machine code for one of archs runs on a device of the
// capability: same major number, and a minor number no higher.
func runs(archs []string, capability string) bool {
	major, minor, _ := strings.Cut(capability, ".")
	return slices.ContainsFunc(archs, func(a string) bool {
		m, n, _ := strings.Cut(a, ".")
		return m == major && n <= minor // minor numbers have one digit
	})
}
