package plan

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
)

const (
	heavyBytes  = 8 << 20 // a wheel this large is alone in its layer
	heavyMost   = 60      // past this many heavy wheels, the bar is raised
	lightGroups = 12      // light wheels are spread over this many layers
)

// group puts wheels into layers by a fixed rule, so that cells share what they
// can: a heavy wheel has a layer of its own; a light one goes where the hash of
// its name says, so that another version of it changes that one layer. Order:
// light groups, heavy wheels by name, torch last, since it changes most often
// and engines share unpacked layers only below the first that differs.
func group(wheels []Blob) []Layer {
	bar := int64(heavyBytes)
	for countOver(wheels, bar) > heavyMost {
		bar *= 2
	}
	light := make([][]Blob, lightGroups)
	var heavy []Layer
	for _, w := range wheels {
		if w.Size >= bar || DistributionOf(w) == "torch" {
			heavy = append(heavy, Layer{Name: DistributionOf(w), Wheels: []Blob{w}})
			continue
		}
		n := sha256.Sum256([]byte(DistributionOf(w)))[0] % lightGroups
		light[n] = append(light[n], w)
	}
	var out []Layer
	for n, members := range light {
		if len(members) > 0 {
			slices.SortFunc(members, func(a, b Blob) int { return cmp.Compare(a.Name, b.Name) })
			out = append(out, Layer{Name: fmt.Sprintf("light-%02d", n), Wheels: members})
		}
	}
	slices.SortFunc(heavy, func(a, b Layer) int {
		return cmp.Or(cmp.Compare(isLast(a), isLast(b)), cmp.Compare(a.Name, b.Name))
	})
	return append(out, heavy...)
}

func isLast(l Layer) int {
	if l.Name == "torch" {
		return 1
	}
	return 0
}

func countOver(wheels []Blob, bar int64) int {
	n := 0
	for _, w := range wheels {
		if w.Size >= bar {
			n++
		}
	}
	return n
}
