package compat

import (
	"slices"
	"strconv"
	"strings"
)

// The platforms of machines with NVIDIA GPUs that there are wheels for.
const (
	AMD64 = "linux/amd64"
	ARM64 = "linux/arm64"
)

// arch is a row of archs.csv.
type arch struct {
	torches, cuda, platform string
	capabilities            []string
	ptx                     string
}

func (r *row) arch() arch {
	r.get("source")
	a := arch{torches: r.torches("torch"), cuda: r.cuda("cuda"), platform: r.oneOf("platform", AMD64, ARM64),
		capabilities: r.list("archs"), ptx: r.opt("ptx")}
	for _, c := range append(a.capabilities, a.ptx) {
		if _, _, ok := capability(c); !ok && c != "" {
			r.bad.Add(r.pos, "write major.minor, such as 8.6", "%q is not a compute capability", c)
		}
	}
	return a
}

func archOf(torch, cuda, platform string) (arch, bool) {
	for _, a := range known().archs {
		if a.cuda == cuda && a.platform == platform && applies(torch, a.torches) {
			return a, true
		}
	}
	return arch{}, false
}

// Archs lists the compute capabilities ("8.6") whose machine code the build of
// torch for cuda holds on linux/amd64, lowest first; nil when that is not known.
func Archs(torch, cuda string) []string { return ArchsOn(torch, cuda, AMD64) }

// ArchsOn is Archs on a platform.
func ArchsOn(torch, cuda, platform string) []string {
	a, _ := archOf(torch, cuda, platform)
	return slices.Clone(a.capabilities)
}

// Platforms lists the platforms that the build of torch for cuda is known to have
// wheels for.
func Platforms(torch, cuda string) []string {
	var out []string
	for _, platform := range []string{AMD64, ARM64} {
		if _, ok := archOf(torch, cuda, platform); ok {
			out = append(out, platform)
		}
	}
	return out
}

// runs tells whether machine code for one of archs runs on a device of the
// capability: same major number, and a minor number no higher.
func runs(archs []string, on string) bool {
	major, minor, ok := capability(on)
	return ok && slices.ContainsFunc(archs, func(a string) bool {
		m, n, ok := capability(a)
		return ok && m == major && n <= minor
	})
}

// compiles tells whether a driver can make machine code for the capability from
// PTX of another; empty: there is none.
func compiles(ptx, on string) bool {
	m, n, ok := capability(ptx)
	major, minor, known := capability(on)
	return ok && known && (m < major || m == major && n <= minor)
}

// capability splits 8.6 into its numbers.
func capability(s string) (major, minor int, ok bool) {
	a, b, dotted := strings.Cut(s, ".")
	major, err := strconv.Atoi(a)
	minor, err2 := strconv.Atoi(b)
	return major, minor, dotted && err == nil && err2 == nil && major > 0 && major < 100 && minor >= 0 && minor < 10
}
