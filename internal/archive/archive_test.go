package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
	ocispecs "github.com/opencontainers/image-spec/specs-go/v1"
)

// put writes a blob into a layout.
func put(t *testing.T, layout string, data []byte) ocispecs.Descriptor {
	t.Helper()
	d := digest.FromBytes(data)
	path := filepath.Join(layout, "blobs", "sha256", d.Encoded())
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o644)); err != nil {
		t.Fatal(err)
	}
	return ocispecs.Descriptor{Digest: d, Size: int64(len(data))}
}

func layer(t *testing.T, file string) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: file, Mode: 0o644, Size: int64(len(file))}), write(w, file), w.Close()); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func write(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return err
}

func zipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	if err := errors.Join(write(w, string(data)), w.Close()); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func squeezed(t *testing.T, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(data, nil)
}

// images are two that share a layer of zstd; one has another of gzip, the other a
// plain one.
func images(t *testing.T, layout string) []Image {
	t.Helper()
	var out []Image
	shared := put(t, layout, squeezed(t, layer(t, "shared")))
	shared.MediaType = ocispecs.MediaTypeImageLayerZstd
	gz := put(t, layout, zipped(t, layer(t, "gz")))
	gz.MediaType = ocispecs.MediaTypeImageLayerGzip
	plain := put(t, layout, layer(t, "plain"))
	plain.MediaType = ocispecs.MediaTypeImageLayer
	for i, own := range []ocispecs.Descriptor{gz, plain} {
		file := []string{"gz", "plain"}[i]
		config, _ := json.Marshal(ocispecs.Image{Author: file, Platform: ocispecs.Platform{OS: "linux", Architecture: "amd64"},
			RootFS: ocispecs.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromBytes(layer(t, "shared")), digest.FromBytes(layer(t, file))}}})
		m := ocispecs.Manifest{MediaType: ocispecs.MediaTypeImageManifest, Config: put(t, layout, config), Layers: []ocispecs.Descriptor{shared, own}}
		data, _ := json.Marshal(m)
		d := put(t, layout, data)
		d.MediaType = ocispecs.MediaTypeImageManifest
		out = append(out, Image{Manifest: d, Name: "team/small:" + file})
	}
	return out
}

func names(t *testing.T, path string) (out []string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for r := tar.NewReader(file); ; {
		h, err := r.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, h.Name)
	}
}

// Another reader of docker archives finds both images whole.
func TestDocker(t *testing.T) {
	layout, path := t.TempDir(), filepath.Join(t.TempDir(), "images.tar")
	if err := Write(path, Docker, layout, images(t, layout)); err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{"gz", "plain"} {
		ref, err := name.NewTag("team/small:" + tag)
		if err != nil {
			t.Fatal(err)
		}
		img, err := tarball.ImageFromPath(path, &ref)
		if err != nil {
			t.Fatal(err)
		}
		layers, err := img.Layers()
		if err != nil || len(layers) != 2 {
			t.Fatalf("%s: %d layers, %v", tag, len(layers), err)
		}
		for i, want := range []string{"shared", tag} {
			r, err := layers[i].Uncompressed()
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, layer(t, want)) {
				t.Errorf("%s: layer %d differs: %v", tag, i, err)
			}
		}
	}
	if n := len(names(t, path)); n != 3+2+1 {
		t.Errorf("%d entries, want three layers, two configurations and a manifest: %v", n, names(t, path))
	}
}

func TestOCI(t *testing.T) {
	layout, path := t.TempDir(), filepath.Join(t.TempDir(), "images.tar")
	all := images(t, layout)
	put(t, layout, []byte("of no image here"))
	if err := Write(path, OCI, layout, all); err != nil {
		t.Fatal(err)
	}
	got := names(t, path)
	if len(got) != 2+2+3+2 || !slices.Contains(got, "index.json") || !slices.Contains(got, "oci-layout") {
		t.Errorf("entries %v", got)
	}
}

func TestSameBytes(t *testing.T) {
	for _, format := range []Format{Docker, OCI} {
		var first []byte
		for range 2 {
			layout, path := t.TempDir(), filepath.Join(t.TempDir(), "x.tar")
			if err := Write(path, format, layout, images(t, layout)); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = data
			} else if !bytes.Equal(first, data) {
				t.Errorf("%s: the same images gave other bytes", format)
			}
		}
	}
}

// What is damaged or missing is named, and no file is left.
func TestDamage(t *testing.T) {
	for _, format := range []Format{Docker, OCI} {
		for what, damage := range map[string]func(path string) error{
			"missing": os.Remove,
			"damaged": func(path string) error { return os.WriteFile(path, zipped(t, layer(t, "zz")), 0o644) },
		} {
			layout, dir := t.TempDir(), t.TempDir()
			all := images(t, layout)
			blob := digest.FromBytes(zipped(t, layer(t, "gz"))).Encoded()
			if err := damage(filepath.Join(layout, "blobs", "sha256", blob)); err != nil {
				t.Fatal(err)
			}
			err := Write(filepath.Join(dir, "x.tar"), format, layout, all)
			if err == nil || !strings.Contains(err.Error(), blob) {
				t.Errorf("%s, %s: %v", format, what, err)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("%s, %s: left behind: %v", format, what, left)
			}
		}
	}
}
