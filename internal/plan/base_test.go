package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/matrix"
)

// onImage is a cell of the shipped matrix (CUDA 12.1, torch 2.4.1, Python 3.11) on
// a base image, and a lock that has the image and what was found in it.
func onImage(t *testing.T, facts lock.Facts) (matrix.Cell, *lock.File) {
	t.Helper()
	cells, _ := shipped(t)
	cell := cellOf(t, cells, "12.1", "2.4.1", "525.60.13")
	cell.BaseName = "hub"
	cell.Base = matrix.Base{Pos: diag.Pos{File: "m.yaml", Line: 4, Col: 3}, Image: &matrix.Image{Ref: diag.Str{Value: "docker.io/some/image:1"}}}
	set := baseRequest(cell).Set()
	part := func(n, media string) lock.Entry {
		return lock.Entry{Kind: lock.Image, Key: "hub_amd64_" + n, Value: "application/vnd.oci.image." + media, Size: 100, Hash: hashOf(n)}
	}
	entries := []lock.Entry{part("000-manifest", "manifest.v1+json"), part("001-config", "config.v1+json"), part("002-layer", "layer.v1.tar+gzip"), part("003-layer", "layer.v1.tar+gzip")}
	return cell, (&lock.File{}).With(lock.Change{Sets: map[string][]lock.Entry{set: append(entries, facts.Entries(set)...)}})
}

func debianFacts() lock.Facts {
	return lock.Facts{OS: "debian", Suite: "bookworm", Python: "/usr/bin/python3.11", PythonVersion: "3.11", System: true}
}

func condaFacts() lock.Facts {
	return lock.Facts{OS: "ubuntu", Suite: "jammy", Python: "/opt/conda/bin/python3.11", PythonVersion: "3.11", TorchCUDA: "12.1",
		Env: map[string]string{"PATH": "/opt/conda/bin:/usr/bin", "NVIDIA_REQUIRE_CUDA": "cuda>=12.1", "CUDA_VERSION": "12.1.1", "KEPT": "yes"},
		Distributions: map[string]string{
			"torch": "2.4.1", "triton": "3.0.0", "nvidia-cublas-cu12": "12.1.3.1", "numpy": "1.26.4", "pillow": "10.2.0", "pip": "24.0", "local": "1+abc",
		}}
}

// nvidia-docker#1294, DeepVAC/TorchPod#43: cuda-compat; NVIDIA/cuda-repo-management#1,
// NVIDIA/nvidia-container-toolkit#257: an apt list whose key may be another tomorrow.
func TestInspectJudges(t *testing.T) {
	change := func(f lock.Facts, how func(*lock.Facts)) lock.Facts { how(&f); return f }
	for name, tc := range map[string]struct {
		facts lock.Facts
		error string // and its cure
		warns string
	}{
		"a good base": {debianFacts(), "", ""},
		"no distribution": {
			lock.Facts{}, "m.yaml:4:3: base hub: its system is , of which imgforge knows no package archive; known: ", "",
		},
		"an unknown distribution": {
			lock.Facts{OS: "alpine", Suite: "3.20"}, "its system is alpine 3.20, of which imgforge knows no package archive; known: bullseye, bookworm", "",
		},
		"another Python": {
			lock.Facts{OS: "ubuntu", Suite: "jammy"}, "the Python of jammy is 3.10, not 3.11; set python to 3.10 for this base", "",
		},
		"another Python of its own": {
			change(condaFacts(), func(f *lock.Facts) { f.PythonVersion = "3.10" }),
			"its Python is 3.10 (/opt/conda/bin/python3.11), not 3.11; set python to 3.10", "",
		},
		"a virtual environment": {
			change(debianFacts(), func(f *lock.Facts) { f.Venv = "/app" }),
			"it holds a virtual environment, /app: imgforge makes its own in /opt/venv and cannot build on another; use a base without it", "",
		},
		"a torch of the right kind": {condaFacts(), "", ""},
		"another torch": {
			change(condaFacts(), func(f *lock.Facts) { f.Distributions = map[string]string{"torch": "2.3.1+cu121"} }),
			"it holds torch 2.3.1 for CUDA 12.1, not torch 2.4.1 for CUDA 12.1; name that torch and CUDA in its cells", "",
		},
		"a torch for another CUDA": {
			change(condaFacts(), func(f *lock.Facts) { f.TorchCUDA = "11.8" }), "it holds torch 2.4.1 for CUDA 11.8", "",
		},
		"CUDA twice": {
			change(debianFacts(), func(f *lock.Facts) { f.CUDA = []string{"/usr/local/cuda-12.1"} }),
			"", "it holds CUDA (/usr/local/cuda-12.1) beside the one that torch's wheels bring",
		},
		"cuda-compat": {
			change(debianFacts(), func(f *lock.Facts) { f.Compat = []string{"/usr/local/cuda-12.1/compat"} }),
			"", "its cuda-compat (/usr/local/cuda-12.1/compat) is hidden: on consumer GPUs it fails with error 804",
		},
		"NVIDIA's archive": {
			change(debianFacts(), func(f *lock.Facts) { f.AptSources = []string{"/etc/apt/sources.list.d/cuda.list"} }),
			"", "NVIDIA's package list (/etc/apt/sources.list.d/cuda.list) is removed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cell, locked := onImage(t, tc.facts)
			if len(tc.facts.Entries("x")) == 0 { // what was looked into and holds nothing has a line still
				locked.Put(lock.Entry{Kind: lock.Fact, Key: baseRequest(cell).Set(), Value: "env=A=b"})
			}
			got, misfits := Inspect([]matrix.Cell{cell, cell}, locked)
			if tc.error != "" {
				if len(got) != 0 || len(misfits) != 2 || len(misfits[0].Problems) != 1 || !strings.Contains(misfits[0].Problems[0].Error(), tc.error) {
					t.Errorf("misfits %+v, want %q", misfits, tc.error)
				}
				return
			}
			if len(misfits) > 0 {
				t.Fatalf("misfits %+v", misfits)
			}
			again, _ := Inspect(got, locked)
			if warnings := strings.Join(again[0].Warnings[len(cell.Warnings):], "\n"); !strings.Contains(warnings, tc.warns) || tc.warns == "" && warnings != "" || strings.Count(warnings, "base hub") > 1 {
				t.Errorf("warnings %q, want %q once", warnings, tc.warns)
			}
		})
	}
}

func inspected(t *testing.T, cell matrix.Cell, locked *lock.File) []matrix.Cell {
	t.Helper()
	cells, misfits := Inspect([]matrix.Cell{cell}, locked)
	if len(misfits) > 0 {
		t.Fatalf("misfits %+v", misfits)
	}
	return cells
}

// Until a base is locked nothing else can be asked for; then what it has is not
// asked for again.
func TestNeedsFollowTheBase(t *testing.T) {
	cell, locked := onImage(t, condaFacts())
	needs := mustNeed(t, []matrix.Cell{cell})
	if len(needs) != 1 || needs[0].Request.Image != "docker.io/some/image:1" {
		t.Fatalf("before it is locked: %+v", needs)
	}
	cells := inspected(t, cell, locked)
	for _, n := range mustNeed(t, cells) {
		r := n.Request
		switch r.Kind {
		case "debs":
			if r.Suite != "jammy" || !slices.Equal(r.Components, []string{"main", "universe"}) || r.On != needs[0].Set || slices.Contains(r.Packages, "python3") {
				t.Errorf("debs: %+v", r)
			}
		case "wheels":
			if r.Interpreter != "/opt/conda/bin/python3.11" || !slices.Equal(r.Excluded, []string{"nvidia-cublas-cu12", "torch", "triton"}) {
				t.Errorf("wheels: %+v", r)
			}
			if slices.ContainsFunc(r.Requirements, func(s string) bool { return strings.HasPrefix(s, "torch") }) {
				t.Errorf("torch is asked for: %q", r.Requirements)
			}
			if !slices.Contains(r.Constraints, "pillow==10.2.0") || slices.Contains(r.Constraints, "pip==24.0") || slices.Contains(r.Constraints, "local==1+abc") {
				t.Errorf("constraints %q", r.Constraints)
			}
		}
	}
}

// NVIDIA/nvidia-container-toolkit#152: what a base demands of the driver is not inherited.
func TestPlanOnAnImage(t *testing.T) {
	_, set := shipped(t)
	facts := condaFacts()
	facts.Compat = []string{"/usr/local/cuda/compat"}
	facts.AptSources = []string{"/etc/apt/sources.list.d/cuda.list"}
	facts.Newest = "1735689999"
	cell, base := onImage(t, facts)
	cells := inspected(t, cell, base)
	locked := lockFor(t, cells, set)
	locked.Drop(baseRequest(cell).Set())
	locked.Put(base.Entries...)
	p := mustMake(t, cells[0], set, locked)
	if p.Image == nil || p.Image.Layers() != 2 || p.Image.Repository != "docker.io/some/image" || "sha256:"+p.Image.Parts[0].SHA256 != hashOf("000-manifest") {
		t.Errorf("image %+v", p.Image)
	}
	if !slices.Equal(p.Strip, []string{"/etc/apt/sources.list.d/cuda.list", "/usr/local/cuda/compat"}) || *p.Python3 != (Python{"/opt/conda/bin/python3.11", true}) {
		t.Errorf("strip %q, Python %+v", p.Strip, p.Python3)
	}
	if p.Epoch != 1735689999 {
		t.Errorf("epoch %d is before the base's youngest file", p.Epoch)
	}
	env := strings.Join(p.Config.Env, "\n")
	for _, want := range []string{"PATH=/opt/venv/bin:/opt/conda/bin:/usr/bin", "KEPT=yes", "NVIDIA_REQUIRE_CUDA=driver>=525.60.13"} {
		if !strings.Contains(env, want) {
			t.Errorf("no %s in\n%s", want, env)
		}
	}
	if strings.Contains(env, "CUDA_VERSION") {
		t.Errorf("CUDA_VERSION is inherited:\n%s", env)
	}
	if got := p.Config.Labels["org.opencontainers.image.base.name"]; got != "docker.io/some/image:1" {
		t.Errorf("base.name is %q", got)
	}
}

// Two libcudnn are an error that lists both places.
// pytorch#119989, replicate/cog#1430: the system's cuDNN was taken for the wheel's.
func TestTwoCuDNN(t *testing.T) {
	_, set := shipped(t)
	facts := debianFacts()
	facts.CuDNN = []string{"/usr/lib/x86_64-linux-gnu/libcudnn.so.8"}
	cell, base := onImage(t, facts)
	cells := inspected(t, cell, base)
	locked := lockFor(t, cells, set)
	locked.Drop(baseRequest(cell).Set())
	locked.Put(base.Entries...)
	_, err := Make(cells[0], set, locked)
	for _, want := range []string{"m.yaml:4:3", "/usr/lib/x86_64-linux-gnu/libcudnn.so.8", "/opt/venv/lib/python3.11/site-packages", "use a base without cuDNN"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}

// The same by a recipe's .deb; without torch's wheels there is only one.
func TestCuDNNOfDebs(t *testing.T) {
	set := own(t, map[string]string{"cudnn": "debs: [libcudnn8, nvidia-cudnn, zsh]", "torch": "wheels: [torch]"})
	cell := with(t, "cudnn", "torch")
	got := refused(t, cell, set)
	for _, want := range []string{cell.Pos.String() + ": libcudnn8_1_amd64.deb puts cuDNN", "nvidia-cudnn_1_amd64.deb puts cuDNN", "/opt/venv/lib/python3.11/site-packages", "list it in no recipe"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	if strings.Contains(got, "zsh_1") {
		t.Errorf("zsh is blamed: %s", got)
	}
	alone := with(t, "cudnn")
	mustMake(t, alone, set, lockFor(t, []matrix.Cell{alone}, set))
}

// Two bases may have tarballs of one name; each is its own, and is the one that
// the matrix names by its sha256.
func TestTarballs(t *testing.T) {
	_, set := shipped(t)
	cells, _ := shipped(t)
	one := cellOf(t, cells, "12.1", "2.4.1", "525.60.13")
	two := one
	locked := &lock.File{}
	for i, cell := range []*matrix.Cell{&one, &two} {
		name := []string{"one", "two"}[i]
		sum := strings.TrimPrefix(hashOf(name), "sha256:")
		cell.BaseName, cell.Tag = name, name
		cell.Base = matrix.Base{Rootfs: &matrix.Rootfs{
			URL:    diag.Str{Value: "https://" + name + ".example/root.tar.gz"},
			SHA256: diag.Str{Value: sum, Pos: diag.Pos{File: "m.yaml", Line: 5 + i, Col: 9}},
		}}
		base := baseRequest(*cell).Set()
		facts := debianFacts()
		locked = locked.With(lock.Change{Sets: map[string][]lock.Entry{base: append(facts.Entries(base),
			lock.Entry{Kind: lock.Rootfs, Key: name + "_root.tar.gz", Value: name, Size: 7, Hash: "sha256:" + sum})}})
	}
	cells, misfits := Inspect([]matrix.Cell{one, two}, locked)
	if len(misfits) > 0 {
		t.Fatal(misfits)
	}
	all := lockFor(t, cells, set)
	for _, c := range cells {
		all.Drop(baseRequest(c).Set())
	}
	all.Put(locked.Entries...)
	for _, c := range cells {
		p := mustMake(t, c, set, all)
		if p.Rootfs == nil || p.Rootfs.Name != "root.tar.gz" || p.Rootfs.SHA256 != c.Base.Rootfs.SHA256.Value {
			t.Errorf("%s: %+v", c.Tag, p.Rootfs)
		}
	}
	all.Put(lock.Entry{Kind: lock.Rootfs, Key: "two_root.tar.gz", Value: "two", Size: 7, Hash: hashOf("other")})
	if _, err := Make(cells[1], set, all); err == nil || !strings.Contains(err.Error(), "m.yaml:6:9: the lock has another tarball for base two") {
		t.Errorf("another tarball in the lock: %v", err)
	}
}
