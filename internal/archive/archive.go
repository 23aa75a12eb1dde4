// Package archive writes the images of an OCI layout to one tar file: for docker
// load (docker-archive), or the layout itself (oci-archive). The same images give
// the same bytes.
//
// The writer is our own because the known library for docker archives copies layers
// as they are, and only the newest engines load zstd from one.
package archive

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"
	ocispecs "github.com/opencontainers/image-spec/specs-go/v1"
)

// Format is what a tar file is for.
type Format string

// The formats.
const (
	Docker Format = "docker" // docker load, podman load
	OCI    Format = "oci"    // podman load, skopeo, ctr images import
)

// Image is one image of a layout.
type Image struct {
	Manifest ocispecs.Descriptor
	Name     string // repository:tag it is loaded as
}

// Write makes the file at path, whole or not at all, of images whose blobs lie in
// the OCI layout directory. Each byte of a layer is checked on the way; an error
// names the blob that is damaged or missing.
func Write(path string, format Format, layout string, images []Image) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("cannot write the archive: %w", err)
	}
	defer os.Remove(file.Name())
	w := &writer{file: file, layout: layout, have: map[string]bool{}}
	if format == Docker {
		err = w.docker(images)
	} else {
		err = w.oci(images)
	}
	if err == nil {
		_, err = file.Write(make([]byte, 2*block)) // the end of a tar
	}
	if err == nil {
		err = file.Chmod(0o644)
	}
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}

// block is the unit of a tar file, in bytes.
const block = 512

// writer writes a tar whose entries' sizes are known only once they are written:
// each header is filled in behind its content.
type writer struct {
	file   *os.File
	layout string
	have   map[string]bool // entries written
}

// add writes an entry once; more of the same name are left out.
func (w *writer) add(name string, content io.Reader) error {
	if w.have[name] {
		return nil
	}
	w.have[name] = true
	start, err := w.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if _, err := w.file.Write(make([]byte, block)); err != nil {
		return err
	}
	size, err := io.Copy(w.file, content)
	if err != nil {
		return err
	}
	if _, err := w.file.Write(make([]byte, (block-size%block)%block)); err != nil {
		return err
	}
	var header bytes.Buffer
	// GNU's is one block whatever the size.
	err = tar.NewWriter(&header).WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: size, Format: tar.FormatGNU})
	if err != nil {
		return err
	}
	_, err = w.file.WriteAt(header.Bytes(), start)
	return err
}

func (w *writer) addJSON(name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return w.add(name, bytes.NewReader(data))
}

// open reads a blob and checks it when it is read to its end.
func (w *writer) open(d digest.Digest) (*checked, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	file, err := os.Open(filepath.Join(w.layout, "blobs", d.Algorithm().String(), d.Encoded()))
	if err != nil {
		return nil, err
	}
	return &checked{Reader: file, close: file.Close, want: d, verifier: d.Verifier()}, nil
}

// readJSON reads a small blob.
func (w *writer) readJSON(d digest.Digest, into any) error {
	blob, err := w.open(d)
	if err != nil {
		return err
	}
	defer blob.close()
	data, err := io.ReadAll(blob)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// checked fails at its end when what was read has another digest than wanted.
type checked struct {
	io.Reader
	close    func() error
	want     digest.Digest
	verifier digest.Verifier
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	_, _ = c.verifier.Write(p[:n])
	if err == io.EOF && !c.verifier.Verified() {
		return n, fmt.Errorf("blob %s is damaged; build again with the same --output, which replaces it", c.want)
	}
	return n, err
}
