// Package lock is the lock file: flat, sorted, one entry a line, no host names.
//
// A line is five fields: kind, key, value, size, hash ("-" where a field has no
// meaning). Blobs (deb, image, rootfs, wheel) stand once; pick lines say which blobs answer
// which request, so that cells which ask the same share one answer.
package lock

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/imgforge/imgforge/internal/diag"
)

// Kind is what a line of the lock is about.
type Kind string

// The kinds, in the order they sort.
const (
	Archive  Kind = "archive"  // key suite, value Release date, hash of InRelease
	Deb      Kind = "deb"      // key name_version_arch, value archive/pool path
	Epoch    Kind = "epoch"    // key "source-date-epoch", value seconds
	Fact     Kind = "fact"     // key set of a base, value NAME=VALUE: one of its Facts
	Image    Kind = "image"    // key BASE_ARCH_PART, value media type: a part of a registry image
	Pick     Kind = "pick"     // key set, value key of a blob's entry
	Recipe   Kind = "recipe"   // key name, hash of its tree
	Requires Kind = "requires" // key of a blob, value names of the packages it needs, with commas
	Rootfs   Kind = "rootfs"   // key file name, value name of the base
	Wheel    Kind = "wheel"    // key file name, value index:name==version
)

// Entry is one line.
type Entry struct {
	Kind  Kind
	Key   string
	Value string
	Size  int64  // bytes; 0 when the field has no meaning
	Hash  string // "sha256:..." or "h1:..."; empty when it has no meaning
}

// Request is what must be resolved together. Equal requests have equal answers
// in one lock, whichever cells ask.
type Request struct {
	Kind         string   `json:"kind"`                  // base, debs, wheels or tools
	Base         string   `json:"base"`                  // name of the base in the matrix
	Image        string   `json:"image,omitempty"`       // of a base: reference of a registry image
	Rootfs       string   `json:"rootfs,omitempty"`      // of a base: NAME@sha256:HEX of a tarball
	On           string   `json:"on,omitempty"`          // set of the image or rootfs base that debs and wheels go on
	Interpreter  string   `json:"interpreter,omitempty"` // Python of that image that wheels are for
	Suite        string   `json:"suite,omitempty"`
	Components   []string `json:"components,omitempty"`
	Arch         string   `json:"arch"`               // Debian architecture
	Packages     []string `json:"packages,omitempty"` // Debian names, sorted
	Python       string   `json:"python,omitempty"`   // "3.11"
	CUDA         string   `json:"cuda,omitempty"`
	Torch        string   `json:"torch,omitempty"`
	Requirements []string `json:"requirements,omitempty"` // PEP 508, sorted
	Constraints  []string `json:"constraints,omitempty"`  // PEP 508, sorted
	Excluded     []string `json:"excluded,omitempty"`     // distributions that the base keeps, sorted
}

// Set names the request: readable, and equal for equal requests alone. The order
// of its lists means nothing.
func (r Request) Set() string {
	for _, list := range []*[]string{&r.Components, &r.Packages, &r.Requirements, &r.Constraints, &r.Excluded} {
		*list = slices.Sorted(slices.Values(*list)) // a copy: the caller keeps its own
	}
	canonical, _ := json.Marshal(r)
	sum := sha256.Sum256(canonical)
	short := hex.EncodeToString(sum[:4])
	switch r.Kind {
	case "wheels":
		return fmt.Sprintf("wheels/torch%s-cuda%s-py%s-%s", r.Torch, r.CUDA, r.Python, short)
	case "tools":
		return fmt.Sprintf("tools/py%s-%s", r.Python, short)
	}
	return fmt.Sprintf("%s/%s-%s", r.Kind, r.Base, short)
}

// Need is a request and who asks it.
type Need struct {
	Set     string // Request.Set()
	Request Request
	Cells   []string // tags that need it
	Pos     diag.Pos // where the first of them was asked for
	Keep    []Entry  // blobs of an earlier answer, to be chosen again where that is possible
}
