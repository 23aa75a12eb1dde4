package compat

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/version"
)

// sorted tells of every two neighbours that stand in the wrong order, or twice.
func sorted[T any](t *testing.T, table string, rows []T, order func(a, b T) int) {
	t.Helper()
	for i := 1; i < len(rows); i++ {
		if n := order(rows[i-1], rows[i]); n > 0 {
			t.Errorf("%s: %+v stands before %+v", table, rows[i-1], rows[i])
		} else if n == 0 {
			t.Errorf("%s: %+v stands twice", table, rows[i])
		}
	}
}

func compareDrivers(a, b string) int {
	x, _ := version.ParseDriver(strings.TrimPrefix(a, "R"))
	y, _ := version.ParseDriver(strings.TrimPrefix(b, "R"))
	return x.Compare(y)
}

func compareCapabilities(a, b string) int {
	m, n, _ := capability(a)
	x, y, _ := capability(b)
	return cmp.Or(m-x, n-y)
}

// compareUpdates orders 12.1.1 and its like, whose numbers are dotted as drivers' are.
func compareUpdates(a, b string) int { return compareDrivers(a, b) }

// TestTablesAreSorted: a person finds a row where it belongs, and adds it once.
func TestTablesAreSorted(t *testing.T) {
	k := known()
	sorted(t, "floors", k.floors, func(a, b Floor) int { return compareCUDAs(a.CUDA, b.CUDA) })
	sorted(t, "updates", k.updates, func(a, b toolkit) int { return compareUpdates(a.update, b.update) })
	sorted(t, "images", k.images, func(a, b BaseImage) int { return compareUpdates(a.Update, b.Update) })
	sorted(t, "branches", k.branches, func(a, b Branch) int { return compareDrivers(a.Name, b.Name) })
	sorted(t, "releases", k.releases, func(a, b release) int { return compareReleases(a.torch, b.torch) })
	sorted(t, "gpus", k.gpus, func(a, b GPU) int {
		return cmp.Or(compareCapabilities(a.Capability, b.Capability), strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)))
	})
	sorted(t, "wheels", k.wheels, func(a, b Wheel) int { return strings.Compare(a.File, b.File) })
	sorted(t, "limits", k.limits, func(a, b limit) int { return strings.Compare(a.Requirement+a.torches, b.Requirement+b.torches) })
	for _, a := range k.archs {
		if !slices.IsSortedFunc(a.capabilities, compareCapabilities) {
			t.Errorf("archs: %s %s: %v", a.torches, a.cuda, a.capabilities)
		}
	}
}

// TestFloorsComeFromUpdates: the strict floor is the driver of the first update,
// the shipped one that of the newest.
func TestFloorsComeFromUpdates(t *testing.T) {
	driver := map[string]string{}
	for _, u := range known().updates {
		driver[u.update] = u.driver
	}
	for _, f := range Floors() {
		updates := Updates(f.CUDA)
		if (len(updates) > 0) != (f.Strict != "") {
			t.Errorf("CUDA %s: strict floor %q, and updates %v", f.CUDA, f.Strict, updates)
		}
		if len(updates) == 0 {
			continue
		}
		if first, last := driver[updates[0]], driver[updates[len(updates)-1]]; f.Strict != first || f.Shipped != last {
			t.Errorf("CUDA %s: floors.csv has %s and %s, updates.csv %s and %s", f.CUDA, f.Strict, f.Shipped, first, last)
		}
	}
	for _, i := range known().images {
		cuda, _, _ := cutLast(i.Update, ".")
		if _, ok := FloorOf(cuda); !ok {
			t.Errorf("images.csv has %s, floors.csv no %s", i.Update, cuda)
		}
	}
}

// TestBuildsHaveArchs: every build says what devices it serves, but the one that
// no source tells of.
func TestBuildsHaveArchs(t *testing.T) {
	seen := map[string]bool{}
	for _, torch := range Torches() {
		for _, cuda := range cudasFor(torch) {
			if Archs(torch, cuda) == nil && torch+" "+cuda != "2.12.1 12.9" {
				t.Errorf("torch %s for CUDA %s: no archs", torch, cuda)
			}
			for _, platform := range Platforms(torch, cuda) {
				n := 0
				for _, a := range known().archs {
					if a.cuda == cuda && a.platform == platform && applies(torch, a.torches) {
						n++
					}
				}
				if key := torch + cuda + platform; n != 1 || seen[key] {
					t.Errorf("torch %s for CUDA %s on %s stands %d times in archs.csv", torch, cuda, platform, n)
				} else {
					seen[key] = true
				}
			}
		}
	}
}

// TestGPUTable: names are told apart, a series is one answer, and what a row
// leaves out can be derived.
func TestGPUTable(t *testing.T) {
	names, series := map[string]string{}, map[string]GPU{}
	for _, g := range GPUs() {
		if other, dup := names[gpuKey(g.Name)]; dup {
			t.Errorf("%s and %s cannot be told apart", g.Name, other)
		}
		names[gpuKey(g.Name)] = g.Name
		if first, ok := series[g.Series]; ok && (first.Capability != g.Capability || first.From() != g.From() || first.Last != g.Last || first.Platform != g.Platform) {
			t.Errorf("%s and %s are of one series and differ", g.Name, first.Name)
		}
		series[g.Series] = g
		if _, ok := FloorOf(g.CUDA); ok && g.From() == "" {
			t.Errorf("%s: no driver, though CUDA %s is known", g.Name, g.CUDA)
		}
	}
	for name, g := range series {
		if other, ok := names[gpuKey(name)]; ok && other != name {
			t.Errorf("the series %s of %s is named as the device %s", name, g.Name, other)
		}
	}
}

// TestReleasesAreWhole: companions parse, Pythons ascend.
func TestReleasesAreWhole(t *testing.T) {
	for _, r := range known().releases {
		for _, v := range []string{r.torchvision, r.torchaudio, r.triton} {
			if v == "" {
				continue
			}
			if _, err := version.ComparePEP440(v, v); err != nil {
				t.Errorf("torch %s: %v", r.torch, err)
			}
		}
		if !slices.IsSortedFunc(r.pythons, compareReleases) {
			t.Errorf("torch %s: Pythons %v", r.torch, r.pythons)
		}
	}
	for _, r := range known().rules {
		if r.torches != "" && !slices.ContainsFunc(Torches(), func(torch string) bool { return applies(torch, r.torches) }) {
			t.Errorf("rules.csv: %q matches no release", r.torches)
		}
	}
}
