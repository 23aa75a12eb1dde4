package archive

import (
	"compress/gzip"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go"
	ocispecs "github.com/opencontainers/image-spec/specs-go/v1"
)

// loaded is one image in a docker archive's manifest.json.
type loaded struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// docker writes the archive as docker save does: plain tars of layers, each once.
func (w *writer) docker(images []Image) error {
	var list []loaded
	for _, img := range images {
		var m ocispecs.Manifest
		var config ocispecs.Image
		if err := w.readJSON(img.Manifest.Digest, &m); err != nil {
			return err
		}
		if err := w.readJSON(m.Config.Digest, &config); err != nil {
			return err
		}
		if len(m.Layers) != len(config.RootFS.DiffIDs) {
			return fmt.Errorf("image %s has %d layers and names %d in its configuration", img.Name, len(m.Layers), len(config.RootFS.DiffIDs))
		}
		entry := loaded{Config: m.Config.Digest.Encoded() + ".json", RepoTags: []string{img.Name}}
		for i, l := range m.Layers {
			name := config.RootFS.DiffIDs[i].Encoded() + ".tar"
			entry.Layers = append(entry.Layers, name)
			if err := w.plain(name, l, config.RootFS.DiffIDs[i]); err != nil {
				return err
			}
		}
		if err := w.blob(entry.Config, m.Config.Digest); err != nil {
			return err
		}
		list = append(list, entry)
	}
	return w.addJSON("manifest.json", list)
}

// plain writes a layer as the tar it is inside.
func (w *writer) plain(name string, l ocispecs.Descriptor, id digest.Digest) error {
	if w.have[name] {
		return nil
	}
	blob, err := w.open(l.Digest)
	if err != nil {
		return err
	}
	defer blob.close()
	content := io.Reader(blob)
	switch {
	case strings.HasSuffix(l.MediaType, "+zstd"):
		z, err := zstd.NewReader(blob)
		if err != nil {
			return err
		}
		defer z.Close()
		content = z
	case strings.HasSuffix(l.MediaType, "gzip"):
		if content, err = gzip.NewReader(blob); err != nil {
			return fmt.Errorf("layer %s: %w", l.Digest, err)
		}
	}
	if err := w.add(name, &checked{Reader: content, want: l.Digest, verifier: id.Verifier()}); err != nil {
		return fmt.Errorf("layer %s: %w", l.Digest, err)
	}
	return nil
}

// blob writes a blob as it is.
func (w *writer) blob(name string, d digest.Digest) error {
	if w.have[name] {
		return nil
	}
	blob, err := w.open(d)
	if err != nil {
		return err
	}
	defer blob.close()
	return w.add(name, blob)
}

// oci writes a layout with these images and no others.
func (w *writer) oci(images []Image) error {
	index := ocispecs.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispecs.MediaTypeImageIndex}
	for _, img := range images {
		var m ocispecs.Manifest
		if err := w.readJSON(img.Manifest.Digest, &m); err != nil {
			return err
		}
		for _, d := range append([]ocispecs.Descriptor{img.Manifest, m.Config}, m.Layers...) {
			if err := w.blob("blobs/sha256/"+d.Digest.Encoded(), d.Digest); err != nil {
				return err
			}
		}
		d := img.Manifest
		d.Annotations = map[string]string{ocispecs.AnnotationRefName: img.Name, "io.containerd.image.name": img.Name}
		index.Manifests = append(index.Manifests, d)
	}
	if err := w.addJSON(ocispecs.ImageLayoutFile, ocispecs.ImageLayout{Version: ocispecs.ImageLayoutVersion}); err != nil {
		return err
	}
	return w.addJSON(ocispecs.ImageIndexFile, index)
}
