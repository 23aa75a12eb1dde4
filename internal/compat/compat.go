// Package compat holds what is publicly known about CUDA, torch, Python, GPUs
// and drivers as embedded tables (data/*.csv, each row with its source), and the
// judgements that follow for an image. It knows nothing of matrices or plans.
//
// A version is written as the tables write it: CUDA "12.1", torch "2.4.1",
// Python "3.11", drivers bare.
package compat

import (
	"fmt"
	"slices"
	"strings"

	"github.com/imgforge/imgforge/internal/version"
)

// Torch is one torch release as built for one CUDA, with what belongs to it.
// An empty version means that no source gives it.
type Torch struct {
	Version     string   `json:"torch"`
	CUDA        string   `json:"cuda"`
	Pythons     []string `json:"pythons"` // with wheels, oldest first
	Torchvision string   `json:"torchvision"`
	Torchaudio  string   `json:"torchaudio"`
	Triton      string   `json:"triton,omitempty"`
	CuDNN       string   `json:"cudnn,omitempty"`
	NCCL        string   `json:"nccl,omitempty"`
	Bundled     bool     `json:"bundled"` // CUDA libraries inside the index wheel; a plain wheel never has them
	Source      string   `json:"source"`
}

// release is a row of releases.csv.
type release struct {
	torch, torchvision, torchaudio, triton string
	pythons                                []string // every Python with wheels
	experimental                           string   // the one upstream does not stand behind
	plain                                  string
	source                                 string
}

func (r *row) release() release {
	out := release{
		torch: r.get("torch"), torchvision: r.get("torchvision"), torchaudio: r.get("torchaudio"), triton: r.opt("triton"),
		pythons: r.list("pythons"), experimental: r.opt("experimental"), plain: r.cuda("plain"), source: r.get("source"),
	}
	if _, err := version.InRange(out.torch, "*"); err != nil {
		r.bad.AddErr(r.pos, err)
	}
	if out.experimental != "" {
		out.pythons = append(out.pythons, out.experimental)
	}
	return out
}

// build is a row of builds.csv.
type build struct {
	torches, cuda, cudnn, nccl string
	bundled                    bool
	source                     string
}

func (r *row) build() build {
	return build{
		torches: r.torches("torch"), cuda: r.cuda("cuda"), cudnn: r.opt("cudnn"), nccl: r.opt("nccl"),
		bundled: r.oneOf("bundled", "yes", "no") == "yes", source: r.get("source"),
	}
}

// Lookup finds the build of torch for cuda. When there is none, the error names
// both, says which torch releases that CUDA has and which CUDAs that torch has,
// and names the table to extend.
func Lookup(torch, cuda string) (Torch, error) {
	t, err := load()
	if err != nil {
		return Torch{}, err
	}
	rel, released := t.release(torch)
	if released {
		for _, b := range t.builds {
			if b.cuda == cuda && applies(torch, b.torches) {
				return Torch{
					Version: torch, CUDA: cuda, Pythons: slices.Clone(rel.pythons),
					Torchvision: rel.torchvision, Torchaudio: rel.torchaudio, Triton: rel.triton,
					CuDNN: b.cudnn, NCCL: b.nccl, Bundled: b.bundled, Source: b.source,
				}, nil
			}
		}
	}
	return Torch{}, &missing{torch, cuda}
}

func (t *tables) release(torch string) (release, bool) {
	i := slices.IndexFunc(t.releases, func(r release) bool { return r.torch == torch })
	if i < 0 {
		return release{}, false
	}
	return t.releases[i], true
}

// CUDAs lists the CUDA versions that some torch is built for, oldest first.
func CUDAs() []string {
	var out []string
	for _, b := range known().builds {
		out = append(out, b.cuda)
	}
	slices.SortFunc(out, compareCUDAs)
	return slices.Compact(out)
}

// Torches lists the known torch releases, oldest first.
func Torches() []string {
	var out []string
	for _, r := range known().releases {
		out = append(out, r.torch)
	}
	return out
}

// PlainCUDA is the CUDA that the plain torch wheel of a Python index carries
// (the one without a local part); false when the release is not known.
func PlainCUDA(torch string) (string, bool) {
	r, ok := known().release(torch)
	return r.plain, ok
}

// TorchRequirement is the PEP 508 requirement that gets torch built for cuda on
// linux/amd64: plain where the plain wheel carries that CUDA, else with the local
// part, so that no solver can take the wheel of another CUDA.
func TorchRequirement(torch, cuda string) string { return TorchRequirementOn(torch, cuda, AMD64) }

// TorchRequirementOn is TorchRequirement on a platform. The plain wheels of other
// platforms than linux/amd64 have no CUDA at all, so there it is never plain.
func TorchRequirementOn(torch, cuda, platform string) string {
	if plain, ok := PlainCUDA(torch); ok && plain == cuda && platform == AMD64 {
		return "torch==" + torch
	}
	return "torch==" + torch + "+" + local(cuda)
}

// local is the local part of a wheel's version: cu118 for 11.8.
func local(cuda string) string { return "cu" + strings.ReplaceAll(cuda, ".", "") }

// missing is a build that does not exist, or that the tables do not know.
type missing struct{ torch, cuda string }

func (m *missing) what() string {
	return fmt.Sprintf("torch %s has no build for CUDA %s", m.torch, m.cuda)
}

func (m *missing) why() string {
	return m.ofCUDA() + "; " + m.ofTorch()
}

func (m *missing) cure() string {
	return fmt.Sprintf("to add one, extend %sdata/builds.csv and %[1]sdata/releases.csv", dir)
}

func (m *missing) judgement() Judgement {
	return Judgement{Level: Error, What: m.what(), Why: m.why(), Cure: m.cure(), Source: dir + "data/builds.csv"}
}

// Error says what is missing, what exists, and what to extend.
func (m *missing) Error() string { return m.what() + ": " + m.why() + "; " + m.cure() }

// ofCUDA says which torch releases are built for the CUDA.
func (m *missing) ofCUDA() string {
	torches := torchesFor(m.cuda)
	if len(torches) == 0 {
		return fmt.Sprintf("no torch is known for CUDA %s (known: %s)", m.cuda, strings.Join(CUDAs(), ", "))
	}
	first, last := torches[0], torches[len(torches)-1]
	return fmt.Sprintf("CUDA %s has torch %s to %s (%s)", m.cuda, first, last, strings.Join(torches, ", "))
}

// ofTorch says which CUDAs the torch release is built for.
func (m *missing) ofTorch() string {
	cudas := cudasFor(m.torch)
	if len(cudas) == 0 {
		all := Torches()
		if len(all) == 0 {
			return "no torch release is known"
		}
		return fmt.Sprintf("torch %s is not in the table, which holds %s to %s", m.torch, all[0], all[len(all)-1])
	}
	return fmt.Sprintf("torch %s has CUDA %s", m.torch, strings.Join(cudas, ", "))
}

func torchesFor(cuda string) []string {
	var out []string
	for _, torch := range Torches() {
		if slices.Contains(cudasFor(torch), cuda) {
			out = append(out, torch)
		}
	}
	return out
}

func cudasFor(torch string) []string {
	t := known()
	if _, ok := t.release(torch); !ok {
		return nil
	}
	var out []string
	for _, b := range t.builds {
		if applies(torch, b.torches) {
			out = append(out, b.cuda)
		}
	}
	slices.SortFunc(out, compareCUDAs)
	return out
}

// compareCUDAs orders CUDA versions that the tables were held to.
func compareCUDAs(a, b string) int {
	x, _ := version.ParseCUDA(a)
	y, _ := version.ParseCUDA(b)
	return x.Compare(y)
}

// compareReleases orders torch releases that the tables were held to.
func compareReleases(a, b string) int {
	n, _ := version.ComparePEP440(a, b)
	return n
}
