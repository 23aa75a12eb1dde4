package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go"
	ocispecs "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/imgforge/imgforge/internal/record"
)

// layout is an OCI layout directory whose blobs the engine writes; it keeps the
// index, sorted by tag, so that equal runs leave equal files.
type layout struct {
	dir   string
	built map[string]*record.Built // by tag
	added []ocispecs.Descriptor
}

func newLayout(dir string) *layout { return &layout{dir: dir, built: map[string]*record.Built{}} }

// see tags what was built; a cell that failed its checks afterwards is not tagged, and
// a tag that stands already stays where it is.
func (l *layout) see(ev record.Event) {
	switch {
	case ev.Built != nil:
		l.built[ev.Cell] = ev.Built
	case ev.Failed != nil:
		delete(l.built, ev.Cell)
	}
}

// settle tags what was built and did not fail.
func (l *layout) settle() error {
	var errs []error
	for _, tag := range slices.Sorted(maps.Keys(l.built)) {
		errs = append(errs, l.add(tag, l.built[tag]))
	}
	return errors.Join(errs...)
}

// add tags a built image.
func (l *layout) add(tag string, b *record.Built) error {
	info, err := os.Stat(filepath.Join(l.dir, "blobs", "sha256", digest.Digest(b.Digest).Encoded()))
	if err != nil {
		return fmt.Errorf("the engine left no manifest %s in %s: %w", b.Digest, l.dir, err)
	}
	l.added = append(l.added, ocispecs.Descriptor{
		MediaType:   ocispecs.MediaTypeImageManifest,
		Digest:      digest.Digest(b.Digest),
		Size:        info.Size(),
		Annotations: map[string]string{ocispecs.AnnotationRefName: tag},
	})
	return nil
}

// write merges what was added into index.json; other tags stay.
func (l *layout) write() error {
	if len(l.added) == 0 {
		return nil
	}
	index := ocispecs.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispecs.MediaTypeImageIndex}
	path := filepath.Join(l.dir, ocispecs.ImageIndexFile)
	switch data, err := os.ReadFile(path); {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(data, &index); err != nil {
			return fmt.Errorf("%s is not an OCI index: %w; remove it or choose another --output", path, err)
		}
	}
	index.Manifests = slices.DeleteFunc(index.Manifests, func(d ocispecs.Descriptor) bool {
		return slices.ContainsFunc(l.added, func(n ocispecs.Descriptor) bool { return tagOf(n) == tagOf(d) })
	})
	index.Manifests = append(index.Manifests, l.added...)
	slices.SortStableFunc(index.Manifests, byTag)
	marker, _ := json.Marshal(ocispecs.ImageLayout{Version: ocispecs.ImageLayoutVersion})
	if err := replaceFile(filepath.Join(l.dir, ocispecs.ImageLayoutFile), marker); err != nil {
		return err
	}
	_ = os.Remove(filepath.Join(l.dir, "ingest")) // the writer's own, empty once all is written
	data, err := json.MarshalIndent(index, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(path, append(data, '\n'))
}

func tagOf(d ocispecs.Descriptor) string { return d.Annotations[ocispecs.AnnotationRefName] }

func byTag(a, b ocispecs.Descriptor) int { return cmp.Compare(tagOf(a), tagOf(b)) }

// replaceFile writes a file whole or not at all.
func replaceFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Chmod(0o644)
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
