package plan

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/distribution/reference"

	"github.com/imgforge/imgforge/internal/compat"
	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/matrix"
)

// foreign tells whether a base was made elsewhere, so that what it holds is known
// only once it is locked.
func foreign(b matrix.Base) bool { return b.Rootfs != nil || b.Image != nil }

// Misfit is a cell whose base does not fit it, with the reasons, each where the
// matrix names the base.
type Misfit struct {
	Cell     matrix.Cell
	Problems []diag.Problem
}

// Inspect returns the cells with what the lock knows of their bases, and with the
// warnings that follow; those whose base does not fit are apart. Cells whose base
// is not locked yet pass as they are.
func Inspect(cells []matrix.Cell, locked *lock.File) (fit []matrix.Cell, misfits []Misfit) {
	found := map[string]*lock.Facts{}
	for _, c := range cells {
		if foreign(c.Base) {
			set := baseRequest(c).Set()
			if _, ok := found[set]; !ok {
				found[set] = locked.Facts(set)
			}
			c.Base.Facts = found[set]
		}
		if c.Base.Facts == nil {
			fit = append(fit, c)
			continue
		}
		problems, warnings := judgeBase(c)
		if len(problems) > 0 {
			misfits = append(misfits, Misfit{c, problems})
			continue
		}
		for _, w := range warnings {
			if !slices.Contains(c.Warnings, w) {
				c.Warnings = append(slices.Clip(c.Warnings), w)
			}
		}
		fit = append(fit, c)
	}
	return fit, misfits
}

// baseRequest is the question to the lock that a cell's base is.
func baseRequest(cell matrix.Cell) lock.Request {
	r := lock.Request{Kind: "base", Base: cell.BaseName, Arch: debianArch(cell.Platform)}
	switch b := cell.Base; {
	case b.Debian != nil:
		r.Suite, r.Components = b.Debian.Suite.Value, values(b.Debian.Components)
	case b.Rootfs != nil:
		r.Rootfs = b.Rootfs.Name() + "@sha256:" + b.Rootfs.SHA256.Value
	case b.Image != nil:
		r.Image = b.Image.Ref.Value
	}
	return r
}

// onBase is what every question about packages on the base has in common.
func onBase(cell matrix.Cell, base lock.Request) lock.Request {
	if !foreign(cell.Base) {
		return base
	}
	r := lock.Request{Base: base.Base, Arch: base.Arch, Suite: cell.Base.Facts.Suite, On: base.Set()}
	r.Components = values(componentsOf(cell.Base))
	if len(r.Components) == 0 {
		r.Components = map[string][]string{"ubuntu": {"main", "universe"}}[cell.Base.Facts.OS]
	}
	if len(r.Components) == 0 {
		r.Components = []string{"main"}
	}
	return r
}

func componentsOf(b matrix.Base) []diag.Str {
	if b.Image != nil {
		return b.Image.Components
	}
	return b.Rootfs.Components
}

// ownPython tells whether a base brings a Python that is not its distribution's:
// the environment is then made with it.
func ownPython(f *lock.Facts) bool { return f != nil && f.Python != "" && !f.System }

// keptTorch is the torch that a base keeps, or "".
func keptTorch(f *lock.Facts) string {
	if !ownPython(f) {
		return ""
	}
	bare, _, _ := strings.Cut(f.Distributions["torch"], "+")
	return bare
}

// fitBase takes from the questions what the base has already.
func (r *requests) fitBase(cell matrix.Cell) {
	facts := cell.Base.Facts
	if facts == nil {
		return
	}
	if !ownPython(facts) {
		r.debs.Packages = append(r.debs.Packages, "python3")
		return
	}
	r.wheels.Interpreter = facts.Python
	if keptTorch(facts) == "" {
		return
	}
	for name := range facts.Distributions {
		if ofTorch(name) {
			r.wheels.Excluded = append(r.wheels.Excluded, name)
		}
	}
	slices.Sort(r.wheels.Excluded)
	r.wheels.Requirements = slices.DeleteFunc(r.wheels.Requirements, func(s string) bool {
		return slices.Contains(r.wheels.Excluded, lock.NameOf(s))
	})
	r.wheels.Constraints = append(r.wheels.Constraints, r.sameAsBase(facts)...)
}

// sameAsBase keeps packages at the version that the base's torch was built and
// tested with, unless a recipe has its own idea of one.
func (r *requests) sameAsBase(facts *lock.Facts) []string {
	asked := map[string]bool{"pip": true, "setuptools": true, "wheel": true}
	for _, s := range slices.Concat(r.wheels.Requirements, r.wheels.Constraints) {
		if strings.ContainsAny(s, "<>=!~") {
			asked[lock.NameOf(s)] = true
		}
	}
	var out []string
	for name, version := range facts.Distributions {
		if !asked[name] && !ofTorch(name) && !strings.Contains(version, "+") {
			out = append(out, name+"=="+version)
		}
	}
	return out
}

// ofTorch tells whether a distribution is torch or what it is made of: all of one
// build, never mixed with another's.
func ofTorch(name string) bool {
	switch name {
	case "torch", "torchvision", "torchaudio", "torchtext", "triton", "pytorch-triton":
		return true
	}
	return strings.HasPrefix(name, "nvidia-") && strings.Contains(name, "-cu")
}

// judgeBase holds a foreign base to its cell: what makes the cell impossible, and
// what is worth knowing.
func judgeBase(cell matrix.Cell) (problems []diag.Problem, warnings []string) {
	f, at := cell.Base.Facts, cell.Base.Pos
	fail := func(help, format string, args ...any) {
		problems = append(problems, diag.Problem{Pos: at, Help: help, What: fmt.Sprintf("base %s: ", cell.BaseName) + fmt.Sprintf(format, args...)})
	}
	warn := func(format string, args ...any) {
		warnings = append(warnings, fmt.Sprintf("base %s: ", cell.BaseName)+fmt.Sprintf(format, args...))
	}
	dist, known := compat.DistributionOf(f.Suite)
	switch {
	case !known:
		fail("known: "+strings.Join(compat.Suites(), ", "), "its system is %s, of which imgforge knows no package archive", strings.TrimSpace(f.OS+" "+f.Suite))
	case ownPython(f) && f.PythonVersion != cell.Python:
		fail("set python to "+f.PythonVersion+" for this base", "its Python is %s (%s), not %s", f.PythonVersion, f.Python, cell.Python)
	case !ownPython(f) && dist.Python != cell.Python:
		fail("set python to "+dist.Python+" for this base", "the Python of %s is %s, not %s", f.Suite, dist.Python, cell.Python)
	}
	if f.Venv != "" {
		fail("use a base without it", "it holds a virtual environment, %s: imgforge makes its own in /opt/venv and cannot build on another", f.Venv)
	}
	kept := keptTorch(f)
	if kept != "" && (kept != cell.Torch || f.TorchCUDA != "" && f.TorchCUDA != cell.CUDA) {
		fail("name that torch and CUDA in its cells, or use a base without torch", "it holds torch %s for CUDA %s, not torch %s for CUDA %s",
			kept, orUnknown(f.TorchCUDA), cell.Torch, cell.CUDA)
	}
	if kept == "" && len(f.CUDA) > 0 {
		warn("it holds CUDA (%s) beside the one that torch's wheels bring: the image is larger than it need be", strings.Join(f.CUDA, ", "))
	}
	if len(f.Compat) > 0 {
		warn("its cuda-compat (%s) is hidden: on consumer GPUs it fails with error 804", strings.Join(f.Compat, ", "))
	}
	if len(f.AptSources) > 0 {
		warn("NVIDIA's package list (%s) is removed: its key has been rotated before, and then every apt-get update fails", strings.Join(f.AptSources, ", "))
	}
	return problems, warnings
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// LockedBase is the base alone of a cell, with the set that answers it, when it is
// an image or rootfs base and the lock has it; else nil.
func LockedBase(cell matrix.Cell, locked *lock.File) (set string, base *Plan) {
	if !foreign(cell.Base) {
		return "", nil
	}
	set = baseRequest(cell).Set()
	entries, ok, err := locked.Picked(set)
	if !ok || err != nil {
		return set, nil
	}
	var blobs []Blob
	for _, e := range entries {
		blobs = append(blobs, blobOf(e))
	}
	base = &Plan{Platform: cell.Platform}
	cell.Base.Facts = locked.Facts(set)
	base.setBase(cell, blobs)
	return set, base
}

// epochOf is SOURCE_DATE_EPOCH of a cell: the lock's, or the time of the youngest
// file of the cell's base, so that no file of the base is ever touched.
func epochOf(cell matrix.Cell, locked *lock.File) int64 {
	if cell.Base.Facts == nil {
		return locked.Epoch()
	}
	return max(locked.Epoch(), cell.Base.Facts.Epoch())
}

// twoCuDNN refuses a base's cuDNN beside the one that wheels bring: whichever is
// found first, symbols of the other are missing.
func twoCuDNN(cell matrix.Cell, wheels []Blob, bad *diag.List) {
	f := cell.Base.Facts
	brings := slices.ContainsFunc(wheels, func(b Blob) bool { return ofTorch(DistributionOf(b)) })
	if f == nil || len(f.CuDNN) == 0 || !brings || keptTorch(f) != "" {
		return
	}
	bad.Add(cell.Base.Pos, "use a base without cuDNN, such as an nvidia/cuda tag without cudnn",
		"base %s holds cuDNN (%s), and the wheels of cell %s bring another to /opt/venv/lib/python%s/site-packages",
		cell.BaseName, strings.Join(f.CuDNN, ", "), cell.Tag, cell.Python)
}

// sameTarball holds the locked tarball to the sha256 that the matrix names.
func sameTarball(cell matrix.Cell, picked []Blob, stale *diag.List) {
	f := cell.Base.Rootfs
	if f == nil || len(picked) == 0 || picked[0].SHA256 == f.SHA256.Value {
		return
	}
	stale.Add(f.SHA256.Pos, relock, "the lock has another tarball for base %s", cell.BaseName)
}

// setBase puts the locked base into the plan.
func (p *Plan) setBase(cell matrix.Cell, picked []Blob) {
	facts := cell.Base.Facts
	switch {
	case cell.Base.Rootfs != nil && len(picked) > 0:
		tarball := picked[0]
		tarball.Origin = "rootfs:" + tarball.Name
		p.Rootfs = &tarball
	case cell.Base.Image != nil:
		p.Image = &Image{Repository: repositoryOf(cell.Base.Image.Ref.Value), Parts: picked}
		for i := range p.Image.Parts {
			p.Image.Parts[i].Origin = ImageOrigin(cell.Base.Image.Ref.Value)
		}
	default:
		p.Base = picked
	}
	if facts == nil {
		return
	}
	p.Strip = slices.Sorted(slices.Values(slices.Concat(facts.Compat, facts.AptSources)))
	p.Python3 = &Python{Path: "/usr/bin/python3"}
	if ownPython(facts) {
		p.Python3 = &Python{Path: facts.Python, Keep: keptTorch(facts) != ""}
	}
}

// ImageOrigin is the origin of the parts of a registry image.
func ImageOrigin(ref string) string { return "image:" + repositoryOf(ref) }

func repositoryOf(ref string) string {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return ref
	}
	return reference.TrimNamed(named).String()
}

// baseEnv is what an image inherits from its base: nothing that speaks of drivers
// or of a CUDA that is not the one in use.
func baseEnv(cell matrix.Cell) map[string]string {
	if cell.Base.Facts == nil {
		return nil
	}
	env := maps.Clone(cell.Base.Facts.Env)
	maps.DeleteFunc(env, func(name, _ string) bool {
		return strings.HasPrefix(name, "NVIDIA_") || strings.HasPrefix(name, "NV_") || name == "CUDA_VERSION" || name == "NVARCH"
	})
	if keptTorch(cell.Base.Facts) == "" {
		hideCUDA(env)
	}
	return env
}

// hideCUDA takes the base's CUDA from the library path, which would win over the
// libraries that torch's wheels bring.
func hideCUDA(env map[string]string) {
	var kept []string
	for dir := range strings.SplitSeq(env["LD_LIBRARY_PATH"], ":") {
		if dir != "" && !strings.HasPrefix(path.Clean(dir), "/usr/local/cuda") {
			kept = append(kept, dir)
		}
	}
	if delete(env, "LD_LIBRARY_PATH"); len(kept) > 0 {
		env["LD_LIBRARY_PATH"] = strings.Join(kept, ":")
	}
}
