// Package image opens an image wherever it is: in an OCI layout, in an archive for
// docker load, or in a registry.
package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/imgforge/imgforge/internal/registry"
	"github.com/imgforge/imgforge/internal/scan"
)

// Image is an image that can be read.
type Image struct {
	Name     string // as a person names it
	Digest   string // of the manifest; of an archive for docker, of the manifest it would have
	Platform string // linux/amd64
	Config   v1.Config
	Layers   []scan.Layer // base first
	Layout   string       // directory of the OCI layout it is in; empty elsewhere
	Registry string       // repository@digest; empty elsewhere
}

// Forms says how references are written.
const Forms = "oci:DIR[:TAG] or oci:DIR@sha256:... for an OCI layout, docker:FILE[:NAME] for an archive, else REGISTRY/NAME:TAG or @sha256:..."

// ErrName is a name that no image can have, or that none has here.
var ErrName = errors.New("no such image")

const tagName = "org.opencontainers.image.ref.name"

// Open reads an image's manifest and configuration. Layers are read when they are
// opened, and checked against their digests as they are read.
func Open(ctx context.Context, ref string) (*Image, error) {
	kind, rest, _ := strings.Cut(ref, ":")
	var img v1.Image
	var err error
	out := &Image{Name: ref}
	plain := false
	switch {
	case kind == "oci":
		img, out.Layout, err = inLayout(rest)
	case kind == "docker":
		img, err = inArchive(rest)
		plain = true
	case isLayout(ref):
		img, out.Layout, err = inLayout(ref)
	default:
		img, out.Registry, err = inRegistry(ctx, ref)
	}
	if errors.Is(err, registry.ErrPassword) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", ref, err)
	}
	if err := out.describe(img, plain); err != nil {
		return nil, fmt.Errorf("image %s: %w", ref, err)
	}
	return out, nil
}

func isLayout(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "oci-layout"))
	return err == nil
}

// inLayout finds an image of an OCI layout by its tag or digest, or the only one.
func inLayout(at string) (v1.Image, string, error) {
	dir, want := at, ""
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if i := strings.LastIndexAny(at, ":@"); i > 0 {
			if j := strings.LastIndex(at, "@sha256:"); j > 0 {
				i = j
			}
			dir, want = at[:i], at[i+1:]
		}
	}
	if !isLayout(dir) {
		return nil, "", fmt.Errorf("%w: %s is no OCI layout; an image is named as %s", ErrName, dir, Forms)
	}
	path := layout.Path(dir)
	if digest, err := v1.NewHash(want); err == nil {
		img, err := path.Image(digest)
		if err != nil { // not in the index: it may be there all the same
			img, err = blobImage(path, digest)
		}
		return img, dir, err
	}
	index, err := path.ImageIndex()
	if err != nil {
		return nil, "", err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, "", err
	}
	var tags []string
	for _, d := range manifest.Manifests {
		tag := d.Annotations[tagName]
		if tag == want || want == "" && len(manifest.Manifests) == 1 {
			img, err := index.Image(d.Digest)
			return img, dir, err
		}
		tags = append(tags, tag)
	}
	if want == "" {
		return nil, "", fmt.Errorf("%w: %s holds %d images; add one of its tags, as oci:%s:TAG:\n  %s", ErrName, dir, len(tags), dir, strings.Join(tags, "\n  "))
	}
	return nil, "", fmt.Errorf("%w: %s has no tag %s; it has:\n  %s", ErrName, dir, want, strings.Join(tags, "\n  "))
}

// blobImage is an image whose manifest lies in the layout without standing in its
// index, as one does whose checks failed.
func blobImage(path layout.Path, digest v1.Hash) (v1.Image, error) {
	raw, err := path.Bytes(digest)
	if err != nil {
		return nil, err
	}
	got, _, err := v1.SHA256(bytes.NewReader(raw))
	if err != nil || got != digest {
		return nil, fmt.Errorf("blob %s is damaged: %w", digest, err)
	}
	return partial.CompressedToImage(&blobs{path, raw})
}

// blobs is an image as its manifest and the blobs of a layout.
type blobs struct {
	path layout.Path
	raw  []byte
}

func (b *blobs) RawManifest() ([]byte, error) { return b.raw, nil }

func (b *blobs) MediaType() (types.MediaType, error) {
	m, err := partial.Manifest(b)
	if err != nil {
		return "", err
	}
	return m.MediaType, nil
}

func (b *blobs) RawConfigFile() ([]byte, error) {
	m, err := partial.Manifest(b)
	if err != nil {
		return nil, err
	}
	return b.path.Bytes(m.Config.Digest)
}

func (b *blobs) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	m, err := partial.Manifest(b)
	if err != nil {
		return nil, err
	}
	for _, d := range m.Layers {
		if d.Digest == h {
			return &blob{b.path, d}, nil
		}
	}
	return nil, fmt.Errorf("no layer %s", h)
}

// blob is one layer of it.
type blob struct {
	path layout.Path
	desc v1.Descriptor
}

func (b *blob) Digest() (v1.Hash, error)            { return b.desc.Digest, nil }
func (b *blob) Compressed() (io.ReadCloser, error)  { return b.path.Blob(b.desc.Digest) }
func (b *blob) Size() (int64, error)                { return b.desc.Size, nil }
func (b *blob) MediaType() (types.MediaType, error) { return b.desc.MediaType, nil }

func inArchive(at string) (v1.Image, error) {
	file, want := at, ""
	if _, err := os.Stat(at); errors.Is(err, fs.ErrNotExist) {
		if i := strings.Index(at, ":"); i > 0 {
			file, want = at[:i], at[i+1:]
		}
	}
	var tag *name.Tag
	if want != "" {
		parsed, err := name.NewTag(want)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrName, err)
		}
		tag = &parsed
	}
	return tarball.ImageFromPath(file, tag)
}

func inRegistry(ctx context.Context, at string) (v1.Image, string, error) {
	if registry.Secret(at) {
		return nil, "", fmt.Errorf("%w: %w", ErrName, registry.ErrPassword)
	}
	ref, err := name.ParseReference(at, name.StrictValidation)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w; an image is named as %s", ErrName, err, Forms)
	}
	img, err := remote.Image(ref, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return nil, "", err
	}
	digest, err := img.Digest()
	return img, ref.Context().Name() + "@" + digest.String(), err
}

// describe fills in what is read of an image.
func (i *Image) describe(img v1.Image, plain bool) error {
	digest, err := img.Digest()
	if err != nil {
		return err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return err
	}
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	i.Digest, i.Config, i.Platform = digest.String(), config.Config, config.OS+"/"+config.Architecture
	for _, l := range layers {
		id, err := l.Digest()
		if err != nil {
			return err
		}
		open := l.Compressed
		if plain {
			open = l.Uncompressed
		}
		i.Layers = append(i.Layers, scan.Layer{Digest: id.String(), Open: func() (io.ReadCloser, error) { return open() }})
	}
	return nil
}
