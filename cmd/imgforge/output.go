package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	ocispecs "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/imgforge/imgforge/internal/archive"
	"github.com/imgforge/imgforge/internal/builder"
)

// outputs are where a build's images go besides a registry.
type outputs struct {
	dir      string // OCI layout, which always exists
	kept     bool   // the layout was asked for
	archives []archiveFile
	images   []archive.Image // built
	unlock   func() error    // nil until open
}

// archiveFile is one docker:FILE or oci:FILE.
type archiveFile struct {
	format archive.Format
	path   string
}

// parseOutputs reads the values of --output.
func parseOutputs(values []string) (*outputs, error) {
	out := &outputs{}
	seen := map[string]bool{}
	for _, value := range values {
		format, file, err := splitOutput(value)
		if err != nil {
			return nil, err
		}
		path, err := filepath.Abs(file)
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(path)
		exists := err == nil
		switch {
		case seen[path]:
			return nil, fmt.Errorf("--output %q is given twice", value)
		case format != "" && exists && info.IsDir():
			return nil, fmt.Errorf("--output %q: %s is a directory; name a file, for example %s:images.tar", value, file, format)
		case format == "" && exists && !info.IsDir():
			return nil, fmt.Errorf("--output %q is a file; name a directory, or docker:%s for an archive", value, value)
		case format == "" && out.kept:
			return nil, fmt.Errorf("--output %q: one directory is enough, and there is %s already", value, out.dir)
		}
		seen[path] = true
		if format == "" {
			out.dir, out.kept = path, true
		} else {
			out.archives = append(out.archives, archiveFile{format, path})
		}
	}
	return out, nil
}

// splitOutput splits docker:FILE and oci:FILE; all else is a directory.
func splitOutput(value string) (format archive.Format, file string, err error) {
	kind, file, named := strings.Cut(value, ":")
	switch format = archive.Format(kind); {
	case value == "" || named && file == "":
		return "", "", fmt.Errorf("--output %q: name a directory, such as dist, or docker:FILE or oci:FILE", value)
	case named && (format == archive.Docker || format == archive.OCI):
		return format, file, nil
	case named && !strings.ContainsAny(kind, "./"):
		return "", "", fmt.Errorf("--output %q: there is no kind %q; give docker:FILE, oci:FILE or a directory (./%s for one of this name)", value, kind, value)
	}
	return "", value, nil
}

// open takes the layout's directory for this run alone. With archives only, the
// layout is a passing one beside the first, so on a disk that is meant for it.
func (o *outputs) open() (err error) {
	if o.unlock != nil {
		return nil
	}
	for _, a := range o.archives {
		if err := checkOutput(filepath.Dir(a.path)); err != nil {
			return err
		}
	}
	if o.kept {
		if err := checkOutput(o.dir); err != nil {
			return err
		}
	}
	if !o.kept {
		first := o.archives[0].path
		if err := os.MkdirAll(filepath.Dir(first), 0o755); err != nil {
			return infra(fmt.Errorf("cannot write the archive: %w", err))
		}
		if o.dir, err = os.MkdirTemp(filepath.Dir(first), "."+filepath.Base(first)+"-layout-*"); err != nil {
			return infra(fmt.Errorf("cannot write the archive: %w", err))
		}
	}
	unlock, err := builder.LockLayout(o.dir)
	if err != nil {
		return infra(err)
	}
	o.unlock = unlock
	return nil
}

// close gives the layout back, or removes it.
func (o *outputs) close() error {
	if o.unlock == nil {
		return nil
	}
	if !o.kept {
		return errors.Join(o.unlock(), os.RemoveAll(o.dir))
	}
	_ = os.Remove(o.dir) // only if nothing was built
	return o.unlock()
}

// checkOutput refuses a directory in which nothing can be written, before hours of
// work are done for it. It is not made yet: its nearest directory is tried.
func checkOutput(dir string) error {
	there := dir
	for _, err := os.Lstat(there); errors.Is(err, fs.ErrNotExist) && there != filepath.Dir(there); _, err = os.Lstat(there) {
		there = filepath.Dir(there)
	}
	probe, err := os.CreateTemp(there, ".imgforge-")
	if err == nil {
		err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	}
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err // the file's name is the probe's
	}
	if err != nil {
		return infra(fmt.Errorf("cannot write to --output %s: %w; choose another directory", dir, err))
	}
	return nil
}

// add notes what was built of a matrix, which archives name images after.
func (o *outputs) add(repository string, built []ocispecs.Descriptor) {
	for _, d := range slices.SortedFunc(slices.Values(built), byTag) {
		o.images = append(o.images, archive.Image{
			Manifest: ocispecs.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}, Name: repository + ":" + tagOf(d),
		})
	}
}

// archive writes the archives.
func (o *outputs) archive(display *display) error {
	var errs []error
	for _, a := range o.archives {
		t := display.begin(fmt.Sprintf("write %s archive of %d images", a.format, len(o.images)))
		err := archive.Write(a.path, a.format, o.dir, o.images)
		t.end(err)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
