package plan

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

func wheel(name, version string, size int64) Blob { return blobOf(wheelOf(name, version, size)) }

// lights are small wheels, enough that every group has some.
func lights(n int) []Blob {
	out := make([]Blob, n)
	for i := range out {
		out[i] = wheel(fmt.Sprintf("light%03d", i), "1", 1000)
	}
	return out
}

func names(layers []Layer) []string {
	var out []string
	for _, l := range layers {
		out = append(out, l.Name)
	}
	return out
}

func TestHeavyWheelsAreAlone(t *testing.T) {
	got := group([]Blob{
		wheel("zlib", "1", heavyBytes), wheel("torch", "2", 700<<20), wheel("scipy", "1", heavyBytes+1), wheel("almost", "1", heavyBytes-1),
	})
	if !slices.Equal(names(got)[1:], []string{"scipy", "zlib", "torch"}) {
		t.Errorf("layers are %v", names(got))
	}
	for _, l := range got {
		if len(l.Wheels) != 1 {
			t.Errorf("%s holds %d wheels", l.Name, len(l.Wheels))
		}
	}
}

// torch changes most often, so it is last, however small and whatever its name.
func TestTorchIsLast(t *testing.T) {
	got := group([]Blob{wheel("torch", "2", 10), wheel("zzz", "1", heavyBytes), wheel("torchvision", "1", heavyBytes), wheel("a", "1", 1)})
	if n := names(got); !slices.Equal(n[len(n)-3:], []string{"torchvision", "zzz", "torch"}) {
		t.Errorf("layers are %v", n)
	}
}

func TestOrderOfWheelsMeansNothing(t *testing.T) {
	in := append(lights(50), wheel("scipy", "1", heavyBytes), wheel("torch", "2", heavyBytes))
	want := group(in)
	random := rand.New(rand.NewPCG(1, 2))
	for range 25 {
		random.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
		if got := group(in); !reflect.DeepEqual(got, want) {
			t.Fatalf("another order, other layers: %v", names(got))
		}
	}
}

// Another version, a new wheel or one less touches the one group it belongs to.
func TestLightChangeTouchesOneGroup(t *testing.T) {
	in := lights(100)
	was := group(in)
	if len(was) != lightGroups {
		t.Fatalf("100 light wheels make %d groups", len(was))
	}
	for name, now := range map[string][]Blob{
		"another version": append([]Blob{wheel("light000", "2", 2000)}, in[1:]...),
		"a new wheel":     append(slices.Clone(in), wheel("new", "1", 10)),
		"one less":        in[1:],
	} {
		if n := changed(was, group(now)); len(n) != 1 {
			t.Errorf("%s changes %v", name, n)
		}
	}
}

// changed names the layers of b that a has not in the same form.
func changed(a, b []Layer) []string {
	var out []string
	for _, l := range b {
		if !slices.ContainsFunc(a, func(o Layer) bool { return reflect.DeepEqual(l, o) }) {
			out = append(out, l.Name)
		}
	}
	return out
}

func TestLayersAreBounded(t *testing.T) {
	for _, n := range []int{heavyMost, heavyMost + 1, 500} {
		in := append(lights(200), wheel("torch", "2", 1))
		for i := range n {
			in = append(in, wheel(fmt.Sprintf("heavy%03d", i), "1", heavyBytes<<(i%6)))
		}
		got := group(in)
		if most := heavyMost + 1 + lightGroups; len(got) > most {
			t.Errorf("%d heavy wheels make %d layers, more than %d", n, len(got), most)
		}
		total := 0
		for _, l := range got {
			total += len(l.Wheels)
		}
		if total != len(in) {
			t.Errorf("%d wheels went in, %d came out", len(in), total)
		}
		if n == heavyMost && len(got) != heavyMost+1+lightGroups {
			t.Errorf("the bar was raised too early: %d layers", len(got))
		}
	}
}

func TestNoWheelsNoLayers(t *testing.T) {
	if got := group(nil); len(got) != 0 {
		t.Errorf("nothing makes %v", names(got))
	}
}
