package compat

import (
	"strings"
	"testing"
)

func TestFindGPU(t *testing.T) {
	for query, want := range map[string]string{
		"4090": "GeForce RTX 4090", "rtx4090": "GeForce RTX 4090", "RTX 4090": "GeForce RTX 4090", "geforcertx4090": "GeForce RTX 4090",
		"NVIDIA GeForce RTX 4090": "GeForce RTX 4090", "NVIDIA GeForce RTX 4090 Laptop GPU": "GeForce RTX 4090", "  rtx-4090 ": "GeForce RTX 4090",
		"4090D": "GeForce RTX 4090 D", "NVIDIA GeForce RTX 4090 D": "GeForce RTX 4090 D", "4070 ti super": "GeForce RTX 4070 Ti SUPER",
		"RTX 40 series": "GeForce RTX 40 series", "geforce rtx 50": "GeForce RTX 50 series",
		"H20": "H20", "NVIDIA H20": "H20", "NVIDIA H100 80GB HBM3": "H100", "NVIDIA H100 PCIe": "H100", "H200 NVL": "H200",
		"NVIDIA A100-SXM4-80GB": "A100", "NVIDIA A100-SXM4-40GB MIG 1g.5gb": "A100", "A100-PCIE-40GB": "A100", "Tesla V100-SXM2-32GB": "Tesla V100", "v100": "Tesla V100",
		"T4": "Tesla T4", "NVIDIA GH200 480GB": "GH200", "NVIDIA L40S": "L40S", "NVIDIA A10G": "A10G",
		"NVIDIA RTX 6000 Ada Generation": "RTX 6000 Ada", "Quadro RTX 6000": "Quadro RTX 6000", "RTX A6000": "RTX A6000", "a6000": "RTX A6000",
		"NVIDIA RTX PRO 6000 Blackwell Server Edition": "RTX PRO 6000 Blackwell", "RTX PRO 6000": "RTX PRO 6000 Blackwell",
		"NVIDIA GB10": "GB10 (DGX Spark)", "DGX Spark": "GB10 (DGX Spark)", "NVIDIA TITAN RTX": "TITAN RTX", "NVIDIA TITAN X (Pascal)": "TITAN X (Pascal)",
		"GeForce GTX TITAN X": "GeForce GTX TITAN X", "1080ti": "GeForce GTX 1080 Ti", "GTX 1660 Ti with Max-Q Design": "GeForce GTX 1660 Ti",
		"8.9": "any of compute capability 8.9", "sm_120": "any of compute capability 12.0", "SM90": "any of compute capability 9.0",
	} {
		g, err := FindGPU(query)
		if err != nil || g.Name != want {
			t.Errorf("FindGPU(%q) = %q, %v; want %s", query, g.Name, err, want)
		}
	}
}

// TestEveryGPUIsFound: by its own name and as NVIDIA's tools decorate it.
func TestEveryGPUIsFound(t *testing.T) {
	for _, g := range GPUs() {
		for _, form := range []string{g.Name, "NVIDIA " + g.Name, strings.ToLower(g.Name), joined(g.Name), g.Name + "-80GB", g.Name + " Laptop GPU"} {
			if got, err := FindGPU(form); err != nil || got.Name != g.Name {
				t.Errorf("FindGPU(%q) = %q, %v", form, got.Name, err)
			}
		}
		if got, err := FindGPU(g.Series); err != nil || got.Capability != g.Capability {
			t.Errorf("the series %q: %+v, %v", g.Series, got, err)
		}
	}
}

// joined leaves out the spaces, but those before a bracket.
func joined(name string) string {
	head, bracket, _ := strings.Cut(name, " (")
	return strings.ReplaceAll(head, " ", "") + " " + strings.TrimSuffix(bracket, ")")
}

func TestCapabilityPrefersAMD64(t *testing.T) {
	for query, want := range map[string]string{"9.0": AMD64, "12.1": ARM64} {
		if g, err := FindGPU(query); err != nil || g.Platform != want {
			t.Errorf("%s: %+v, %v", query, g, err)
		}
	}
}

func TestSearchGPUs(t *testing.T) {
	for query, want := range map[string]int{"": len(GPUs()), "rtx 40": 11, "h20": 1, "8.0": 4, "ada": 7, "nothing of it": 0, "4090": 2} {
		if got := SearchGPUs(query); len(got) != want {
			t.Errorf("SearchGPUs(%q): %d: %s", query, len(got), gpuNames(got))
		}
	}
}

func TestServedBy(t *testing.T) {
	for name, want := range map[string]string{
		"K80": "11.7 11.8", "V100": "11.7 11.8 12.1 12.4 12.6 12.8 12.9", "H20": "11.8 12.1 12.4 12.6 12.8 12.9 13.0 13.2",
		"RTX 5090": "12.8 12.9 13.0 13.2", "B300": "12.8 12.9 13.0 13.2", "GB10": "12.8 12.9 13.0", "GH200": "12.6 12.8 12.9 13.0",
	} {
		g, err := FindGPU(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(ServedBy(g), " "); got != want {
			t.Errorf("%s is served by CUDA %s; want %s", name, got, want)
		}
	}
}

func TestPTX(t *testing.T) {
	for _, c := range []struct {
		ptx, on string
		want    bool
	}{{"12.0", "12.1", true}, {"12.0", "13.0", true}, {"12.0", "12.0", true}, {"12.0", "10.3", false}, {"", "12.0", false}, {"12.0", "", false}} {
		if got := compiles(c.ptx, c.on); got != c.want {
			t.Errorf("PTX of %q on %q: %v", c.ptx, c.on, got)
		}
	}
}

// FuzzFindGPU: no name makes it panic, an error has words, and what is found is
// found again by the name it has.
func FuzzFindGPU(f *testing.F) {
	for _, seed := range []string{"RTX 4090", "nvidia a100-sxm4-80gb mig 1g.5gb", "8.9", "sm_1.2", "", " - ", "rtx", "GeForce", "６０００", "4090\x00ti"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		SearchGPUs(name)
		g, err := FindGPU(name)
		if err != nil {
			if err.Error() == "" || len(err.Error()) > 1000+4*len(name) {
				t.Errorf("%q: an error of %d bytes", name, len(err.Error()))
			}
			return
		}
		if strings.HasPrefix(g.Name, "any of") {
			return
		}
		if again, err := FindGPU(g.Name); err != nil || again != g {
			t.Errorf("%q is %q, which is %q, %v", name, g.Name, again.Name, err)
		}
	})
}
