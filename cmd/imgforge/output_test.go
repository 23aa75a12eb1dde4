package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/imgforge/imgforge/internal/imagetest"
)

// The layout holds every cell under its tag, valid, and each blob once.
func TestLayout(t *testing.T) {
	w, rows := built(t)
	images := imagetest.Open(t, w.dist)
	var tags []string
	named := map[string]bool{}
	for _, img := range images {
		tags = append(tags, img.Tag)
		img.Validate(t)
		named[img.Digest], named[img.Manifest.Config.Digest.String()] = true, true
		for _, l := range img.LayerDigests() {
			named[l] = true
		}
	}
	if want := []string{cellA, cellC, cellB}; !slices.Equal(tags, want) {
		t.Errorf("tags %v, want %v", tags, want)
	}
	blobs, err := os.ReadDir(filepath.Join(w.dist, "blobs", "sha256"))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blobs {
		if !named["sha256:"+b.Name()] {
			t.Errorf("blob %s is named by no image", b.Name())
		}
		delete(named, "sha256:"+b.Name())
	}
	if len(named) > 0 {
		t.Errorf("blobs are missing: %v", named)
	}
	for cell, digest := range digests(rows) {
		if got := imagetest.Find(t, images, cell).Digest; got != digest {
			t.Errorf("%s is %s in the layout and %s in the result", cell, got, digest)
		}
	}
	var marker struct{ ImageLayoutVersion string }
	data, err := os.ReadFile(filepath.Join(w.dist, "oci-layout"))
	if err != nil || json.Unmarshal(data, &marker) != nil || marker.ImageLayoutVersion != "1.0.0" {
		t.Errorf("oci-layout: %v %s", err, data)
	}
}

// The result counts each byte where it first appears.
func TestSizes(t *testing.T) {
	w, rows := built(t)
	images := imagetest.Open(t, w.dist)
	seen := map[string]bool{}
	if len(rows) != 3 || rows[0].Cell != cellA || rows[1].Cell != cellB || rows[2].Cell != cellC {
		t.Fatalf("rows %+v, want the three cells in the matrix's order", rows)
	}
	for _, row := range rows {
		img := imagetest.Find(t, images, row.Cell)
		size, err := img.Size() // of the manifest
		if err != nil {
			t.Fatal(err)
		}
		parts := map[string]int64{img.Digest: size, img.Manifest.Config.Digest.String(): img.Manifest.Config.Size}
		for _, l := range img.Manifest.Layers {
			parts[l.Digest.String()] = l.Size
		}
		var all, fresh int64
		for digest, n := range parts {
			all += n
			if !seen[digest] {
				fresh += n
			}
			seen[digest] = true
		}
		if row.Size != all || row.New != fresh || row.Layers != len(img.Manifest.Layers) || row.Status != "built" {
			t.Errorf("%s: size %d, new %d, %d layers, %s; want %d, %d, %d, built", row.Cell, row.Size, row.New, row.Layers, row.Status,
				all, fresh, len(img.Manifest.Layers))
		}
	}
}

// A plain manifest of zstd layers, a history that is whole, and all annotations.
// docker/buildx#1601, #1513, #1509: attestations beside the image made it an index.
func TestManifests(t *testing.T) {
	w, _ := built(t)
	for _, img := range imagetest.Open(t, w.dist) {
		if img.Manifest.MediaType != types.OCIManifestSchema1 || img.Manifest.Config.MediaType != types.OCIConfigJSON {
			t.Errorf("%s is a %s of a %s", img.Tag, img.Manifest.MediaType, img.Manifest.Config.MediaType)
		}
		for i, l := range img.Manifest.Layers {
			if l.MediaType != types.OCILayerZStd {
				t.Errorf("%s: layer %d is a %s", img.Tag, i, l.MediaType)
			}
		}
		if len(img.Config.History) != len(img.Manifest.Layers) {
			t.Errorf("%s: %d layers, %d lines of history", img.Tag, len(img.Manifest.Layers), len(img.Config.History))
		}
		for i, h := range img.Config.History {
			if h.EmptyLayer || h.CreatedBy == "" || !h.Created.Time.Equal(img.Config.Created.Time) {
				t.Errorf("%s: history %d: %+v", img.Tag, i, h)
			}
		}
		if c := img.Config; c.OS != "linux" || c.Architecture != "amd64" || c.Author != "" {
			t.Errorf("%s: for %s/%s by %q", img.Tag, c.OS, c.Architecture, c.Author)
		}
	}
}

// What the image says of itself, where tools look for it.
func TestMetadata(t *testing.T) {
	img := cellImage(t, cellC)
	labels := img.Config.Config.Labels
	created := img.Config.Created.UTC().Format(time.RFC3339)
	for name, want := range map[string]string{
		"io.imgforge.cuda": "12.1", "io.imgforge.torch": "2.4.1", "io.imgforge.python": "3.11", "io.imgforge.base": "debian12",
		"io.imgforge.driver": ">=535.54.03", "io.imgforge.axis.tqdm": "4.66.5",
		"org.opencontainers.image.version": cellC, "org.opencontainers.image.created": created,
	} {
		if labels[name] != want {
			t.Errorf("label %s is %q, want %q", name, labels[name], want)
		}
		if strings.HasPrefix(name, "org.opencontainers.") && img.Manifest.Annotations[name] != want {
			t.Errorf("annotation %s is %q, want %q", name, img.Manifest.Annotations[name], want)
		}
	}
	for _, name := range []string{"io.imgforge.plan", "io.imgforge.lock"} {
		if !regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(labels[name]) {
			t.Errorf("label %s is %q", name, labels[name])
		}
	}
	env := img.Config.Config.Env
	for _, want := range []string{"NVIDIA_REQUIRE_CUDA=driver>=535.54.03", "NOTE_CUDA=12.1", "MATPLOTLIBRC=/etc/matplotlibrc",
		"NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"} {
		if !slices.Contains(env, want) {
			t.Errorf("no %s in the environment", want)
		}
	}
	if !slices.IsSorted(env) || slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "CUDA_VERSION=") }) {
		t.Errorf("environment: %v", env)
	}
	if cmd := img.Config.Config.Cmd; !slices.Equal(cmd, []string{"zsh"}) {
		t.Errorf("command %v", cmd)
	}
}

// Cells share every layer but those that must differ.
func TestSharedLayers(t *testing.T) {
	a, b, c := cellImage(t, cellA), cellImage(t, cellB), cellImage(t, cellC)
	if !slices.Equal(a.LayerDigests(), b.LayerDigests()) {
		t.Errorf("cells that differ in the floor have other layers:\n%v\n%v", a.LayerDigests(), b.LayerDigests())
	}
	if a.Digest == b.Digest {
		t.Error("cells that differ in the floor are the same image")
	}
	if len(b.Manifest.Layers) != len(c.Manifest.Layers) {
		t.Fatalf("%d and %d layers", len(b.Manifest.Layers), len(c.Manifest.Layers))
	}
	var other []string
	for i, digest := range b.LayerDigests() {
		if digest != c.LayerDigests()[i] {
			other = append(other, b.Config.History[i].CreatedBy)
		}
	}
	if len(other) != 1 || !strings.HasPrefix(other[0], "wheels: light-") {
		t.Errorf("another tqdm changes the layers %q, want the one that holds it", other)
	}
}
