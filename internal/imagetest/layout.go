// Package imagetest looks into built images for tests: the files of an OCI layout,
// a root file system made of its layers, and a container that runs in it.
package imagetest

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// refName is the annotation that names a manifest of a layout.
const refName = "org.opencontainers.image.ref.name"

// Image is one image of a layout.
type Image struct {
	Tag      string
	Digest   string // of its manifest
	Manifest *v1.Manifest
	Config   *v1.ConfigFile
	v1.Image
}

// LayerDigests are the digests of the image's layers, base first.
func (i *Image) LayerDigests() []string {
	out := make([]string, len(i.Manifest.Layers))
	for n, l := range i.Manifest.Layers {
		out[n] = l.Digest.String()
	}
	return out
}

// Open reads an OCI layout and returns its images in the order of its index.
func Open(t testing.TB, dir string) []*Image {
	t.Helper()
	index, err := layout.ImageIndexFromPath(dir)
	must(t, err)
	manifest, err := index.IndexManifest()
	must(t, err)
	var out []*Image
	for _, d := range manifest.Manifests {
		img, err := index.Image(d.Digest)
		must(t, err)
		m, err := img.Manifest()
		must(t, err)
		c, err := img.ConfigFile()
		must(t, err)
		out = append(out, &Image{Tag: d.Annotations[refName], Digest: d.Digest.String(), Manifest: m, Config: c, Image: img})
	}
	return out
}

// Find is the image of a tag; the test ends when there is none.
func Find(t testing.TB, images []*Image, tag string) *Image {
	t.Helper()
	for _, i := range images {
		if i.Tag == tag {
			return i
		}
	}
	t.Fatalf("the layout has no %s", tag)
	return nil
}

// Validate reads every byte of the image and compares it with what names it: the
// digests and sizes of the manifest, and the digests of the unpacked layers in the
// configuration. (go-containerregistry's own validation takes all layers for gzip.)
func (i *Image) Validate(t testing.TB) {
	t.Helper()
	raw, err := i.RawManifest()
	must(t, err)
	digest, _ := sum(t, io.NopCloser(bytes.NewReader(raw)))
	is(t, i.Tag+": manifest", digest, i.Digest)
	raw, err = i.RawConfigFile()
	must(t, err)
	digest, _ = sum(t, io.NopCloser(bytes.NewReader(raw)))
	is(t, i.Tag+": config", digest, i.Manifest.Config.Digest.String())
	layers, err := i.Image.Layers()
	must(t, err)
	is(t, i.Tag+": layers", fmt.Sprint(len(layers)), fmt.Sprint(len(i.Config.RootFS.DiffIDs)))
	for n, l := range layers {
		about := fmt.Sprintf("%s: layer %d", i.Tag, n)
		packed, err := l.Compressed()
		must(t, err)
		digest, size := sum(t, packed)
		is(t, about, digest, i.Manifest.Layers[n].Digest.String())
		is(t, about+": size", fmt.Sprint(size), fmt.Sprint(i.Manifest.Layers[n].Size))
		unpacked, err := l.Uncompressed()
		must(t, err)
		digest, _ = sum(t, unpacked)
		is(t, about+", unpacked", digest, i.Config.RootFS.DiffIDs[n].String())
	}
}

func is(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}

// sum is the digest of what r holds, and how much that is.
func sum(t testing.TB, r io.ReadCloser) (string, int64) {
	t.Helper()
	defer r.Close()
	h := sha256.New()
	n, err := io.Copy(h, r)
	must(t, err)
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), n
}

// EachFile calls f with every entry of every layer, and its content.
func (i *Image) EachFile(t testing.TB, f func(layer int, h *tar.Header, content io.Reader)) {
	t.Helper()
	layers, err := i.Image.Layers()
	must(t, err)
	for n, l := range layers {
		r, err := l.Uncompressed()
		must(t, err)
		tr := tar.NewReader(r)
		for {
			h, err := tr.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			must(t, err)
			f(n, h, tr)
		}
		must(t, r.Close())
	}
}

// File is the content of a file that one layer holds, by its path without the first slash.
func (i *Image) File(t testing.TB, name string) string {
	t.Helper()
	var text *string
	i.EachFile(t, func(_ int, h *tar.Header, content io.Reader) {
		if h.Name == name {
			data, err := io.ReadAll(content)
			must(t, err)
			text = new(string(data))
		}
	})
	if text == nil {
		t.Fatalf("%s has no %s", i.Tag, name)
	}
	return *text
}

// Extract unpacks the image into dir as a container would see it.
func (i *Image) Extract(t testing.TB, dir string) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o755))
	flat := mutate.Extract(i.Image)
	defer flat.Close()
	cmd := exec.Command("tar", "--extract", "--numeric-owner", "--preserve-permissions", "--directory", filepath.Clean(dir))
	cmd.Stdin = flat
	var errs strings.Builder
	cmd.Stderr = &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("cannot unpack %s: %v\n%s", i.Tag, err, errs.String())
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
