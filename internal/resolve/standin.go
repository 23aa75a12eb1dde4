package resolve

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/imgforge/imgforge/internal/compat"
	"github.com/imgforge/imgforge/internal/lock"
)

// indexWheel is a wheel known to exist on an index that may be out of reach:
// its metadata are enough to solve with, its hash is enough to lock.
type indexWheel struct {
	origin   string // the lock's value: pytorch/cu118:torch==2.1.2+cu118
	file     string
	sha256   string
	size     int64 // 0 when not known
	requires []string
}

// parts splits the file name into distribution, version and tags.
func (w indexWheel) parts() (name, version, tags string, err error) {
	fields := strings.SplitN(strings.TrimSuffix(w.file, ".whl"), "-", 3)
	if len(fields) != 3 || !strings.HasSuffix(w.file, ".whl") {
		return "", "", "", fmt.Errorf("%q is no wheel's file name", w.file)
	}
	return fields[0], fields[1], fields[2], nil
}

// standIn is a wheel of that name with metadata and nothing else. Only a solver
// may see it.
func (w indexWheel) standIn() ([]byte, error) {
	name, version, tags, err := w.parts()
	if err != nil {
		return nil, err
	}
	var meta strings.Builder
	fmt.Fprintf(&meta, "Metadata-Version: 2.1\nName: %s\nVersion: %s\n", name, version)
	for _, r := range w.requires {
		if strings.ContainsAny(r, "\r\n") {
			return nil, fmt.Errorf("%s: requirement %q spans lines", w.file, r)
		}
		fmt.Fprintf(&meta, "Requires-Dist: %s\n", r)
	}
	dir := name + "-" + version + ".dist-info/"
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range []struct{ name, body string }{
		{"METADATA", meta.String()},
		{"WHEEL", "Wheel-Version: 1.0\nGenerator: imgforge\nRoot-Is-Purelib: false\nTag: " + tags + "\n"},
		{"RECORD", dir + "METADATA,,\n" + dir + "WHEEL,,\n" + dir + "RECORD,,\n"},
	} {
		out, err := z.Create(dir + f.name)
		if err != nil {
			return nil, err
		}
		if _, err := out.Write([]byte(f.body)); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// entry is the lock's line for the real wheel.
func (w indexWheel) entry() lock.Entry {
	return lock.Entry{Kind: lock.Wheel, Key: w.file, Value: w.origin, Size: w.size, Hash: "sha256:" + w.sha256}
}

// knownWheel finds what a requirement with a local version, such as
// torch==2.1.2+cu118, comes to: no Python index holds those.
func knownWheel(requirement string, req lock.Request) (indexWheel, error) {
	if req.Arch != "amd64" {
		return indexWheel{}, fmt.Errorf("%s is on the PyTorch index alone, which imgforge does not ask, and its tables hold no sha256 of a wheel for %s", requirement, req.Arch)
	}
	missing := fmt.Errorf("%s is on the PyTorch index alone, which imgforge does not ask, and its tables hold no sha256 and requirements of it for Python %s", requirement, req.Python)
	if requirement != compat.TorchRequirement(req.Torch, req.CUDA) {
		return indexWheel{}, missing
	}
	w, ok := compat.IndexWheel(req.Torch, req.CUDA, req.Python)
	if !ok {
		return indexWheel{}, missing
	}
	return indexWheel{
		origin: "pytorch/cu" + strings.ReplaceAll(req.CUDA, ".", "") + ":" + requirement,
		file:   w.File, sha256: w.SHA256, size: w.Size, requires: w.Requires,
	}, nil
}

// conflicts refuses distributions that overwrite each other, saying who wants them.
func conflicts(wheels []wheel, via string) error {
	names := make([]string, len(wheels))
	for i, w := range wheels {
		names[i] = w.name
	}
	var bad []string
	for _, c := range compat.Conflicts(names) {
		reason := c.String()
		for _, name := range []string{c.A, c.B} {
			if who := wanters(via, name); len(who) > 0 {
				reason += fmt.Sprintf("; %s is wanted by %s", name, strings.Join(who, ", "))
			}
		}
		bad = append(bad, reason)
	}
	if len(bad) > 0 {
		return errors.New(strings.Join(bad, "; "))
	}
	return nil
}
