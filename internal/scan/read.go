// Package scan reads the layers of an image, without starting anything, and checks
// what they hold: libraries that are there twice, files that others may write, secrets
// and caches left behind, files that are not what their wheel says.
package scan

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"
)

// Layer is one layer of an image: a tar, plain or compressed with gzip or zstd.
type Layer struct {
	Digest string
	Open   func() (io.ReadCloser, error)
}

// file is a member of a layer.
type file struct {
	path   string // clean, relative
	kind   byte   // tar's
	mode   int64  // permissions, with set-uid, set-gid and sticky
	uid    int
	gid    int
	size   int64
	mtime  int64 // seconds
	link   string
	caps   bool // has file capabilities
	hashed bool
	sum    [sha256.Size]byte
	data   []byte // of a file that is wanted
	layer  int    // from 1, set when layers are merged
}

// layer is what is kept of a layer: independent of the layers below.
type layer struct {
	files   []file
	gone    map[string]bool // paths it removes, with all below them
	opaque  map[string]bool // directories of which it keeps nothing
	secrets []file          // with what they hold, whatever layers above remove
}

// Bounds of one layer. The largest in use have a tenth.
const (
	mostMembers = 2_000_000
	mostBytes   = 100 << 30 // unpacked
	mostKept    = 256 << 20 // of files that are wanted
)

// Cache remembers layers by digest: cells share most of theirs. The zero value is
// empty; it may be used from many goroutines.
type Cache struct {
	mu     sync.Mutex
	layers map[string]func() (*layer, error)
}

func (c *Cache) layer(l Layer) (*layer, error) {
	c.mu.Lock()
	if c.layers == nil {
		c.layers = map[string]func() (*layer, error){}
	}
	once := c.layers[l.Digest]
	if once == nil {
		once = sync.OnceValues(func() (*layer, error) { return readLayer(l) })
		c.layers[l.Digest] = once
	}
	c.mu.Unlock()
	got, err := once()
	if err != nil { // it may have been interrupted: the next may try
		c.mu.Lock()
		delete(c.layers, l.Digest)
		c.mu.Unlock()
	}
	return got, err
}

// Read reads the layers of an image, base first, jobs of them at a time.
func (c *Cache) Read(layers []Layer, jobs int) (*Tree, error) {
	got := make([]*layer, len(layers))
	var group errgroup.Group
	group.SetLimit(max(1, jobs))
	for i, l := range layers {
		group.Go(func() (err error) {
			if got[i], err = c.layer(l); err != nil {
				err = fmt.Errorf("layer %d of %d (%s): %w", i+1, len(layers), l.Digest, err)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return merge(got), nil
}

func readLayer(l Layer) (*layer, error) {
	raw, err := l.Open()
	if err != nil {
		return nil, err
	}
	defer raw.Close()
	plain, done, err := decompress(raw)
	if err != nil {
		return nil, err
	}
	defer done()
	out := &layer{gone: map[string]bool{}, opaque: map[string]bool{}}
	counted := &counter{Reader: plain}
	tr := tar.NewReader(counted)
	kept := int64(0)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, counted) // to the end, where a digest is checked
			return out, err
		}
		if err != nil {
			return nil, err
		}
		f, err := out.member(tr, h)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", h.Name, err)
		}
		if kept += int64(len(f.data)); kept > mostKept || len(out.files) > mostMembers {
			return nil, fmt.Errorf("%s: too much is in the layer: %d members, %d bytes to look into", h.Name, len(out.files), kept)
		}
	}
}

// counter ends a bomb.
type counter struct {
	io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if c.n += int64(n); c.n > mostBytes {
		return n, fmt.Errorf("it unpacks to more than %d GiB", mostBytes>>30)
	}
	return n, err
}

// member takes in one member.
func (l *layer) member(r io.Reader, h *tar.Header) (file, error) {
	p := path.Clean(strings.TrimPrefix(h.Name, "/"))
	switch dir, name := path.Split(p); {
	case p == ".":
		return file{}, nil
	case p == ".." || strings.HasPrefix(p, "../"):
		return file{}, errors.New("the path leaves the root")
	case name == ".wh..wh..opq":
		l.opaque[path.Clean(dir)] = true
		return file{}, nil
	case strings.HasPrefix(name, ".wh."):
		l.gone[dir+strings.TrimPrefix(name, ".wh.")] = true
		return file{}, nil
	}
	f := file{path: p, kind: h.Typeflag, mode: h.Mode & 0o7777, uid: h.Uid, gid: h.Gid, size: h.Size, mtime: h.ModTime.Unix(), link: h.Linkname}
	f.caps = h.PAXRecords["SCHILY.xattr.security.capability"]+h.PAXRecords["LIBARCHIVE.xattr.security.capability"] != ""
	if f.kind == tar.TypeReg {
		if err := f.read(r); err != nil {
			return f, err
		}
		if what := secretIn(f); what != "" {
			l.secrets = append(l.secrets, file{path: p, link: what})
		}
		if !keepsData(p) {
			f.data = nil
		}
	}
	l.files = append(l.files, f)
	return f, nil
}

// read takes of a file's content what checks need.
func (f *file) read(r io.Reader) error {
	var into []io.Writer
	hash := sha256.New()
	if f.hashed = isHashed(f.path); f.hashed {
		into = append(into, hash)
	}
	var head bytes.Buffer
	if most := wanted(f.path, f.size); most > 0 {
		into = append(into, &limited{&head, most})
	}
	if len(into) == 0 {
		return nil // the tar reader skips it
	}
	if _, err := io.Copy(io.MultiWriter(into...), r); err != nil {
		return err
	}
	hash.Sum(f.sum[:0])
	f.data = head.Bytes()
	return nil
}

// limited takes the first bytes and throws the others away.
type limited struct {
	to   *bytes.Buffer
	most int64
}

func (l *limited) Write(p []byte) (int, error) {
	if left := l.most - int64(l.to.Len()); left > 0 {
		l.to.Write(p[:min(left, int64(len(p)))])
	}
	return len(p), nil
}

// inPackages tells whether a path lies in a directory of Python's packages, or in the
// image's environment.
func inPackages(p string) bool {
	return strings.HasPrefix(p, "opt/venv/") || strings.Contains(p, "/site-packages/")
}

// isHashed are the files that a RECORD may speak of.
func isHashed(p string) bool { return inPackages(p) && path.Ext(p) != ".pyc" }

const (
	pycHeader   = 16
	mostRecord  = 32 << 20
	mostSecret  = 256 << 10
	mostSetting = 64 << 10
)

// wanted is how much of a file is read.
func wanted(p string, size int64) int64 {
	switch {
	case path.Ext(p) == ".pyc":
		return pycHeader
	case path.Base(p) == "RECORD" && strings.HasSuffix(path.Dir(p), ".dist-info"):
		return mostRecord
	case p == "etc/machine-id" || strings.HasPrefix(p, "etc/ld.so.conf"):
		return mostSetting
	case mayHoldSecret(p) && size <= mostSecret:
		return mostSecret
	}
	return 0
}

// keepsData are the files whose content a check reads once layers are merged.
func keepsData(p string) bool {
	return path.Ext(p) == ".pyc" || path.Base(p) == "RECORD" || strings.HasPrefix(p, "etc/ld.so.conf") || p == "etc/machine-id"
}

// decompress tells the compression by the first bytes.
func decompress(r io.Reader) (plain io.Reader, done func(), err error) {
	b := bufio.NewReaderSize(r, 1<<20)
	magic, err := b.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(b)
		return z, func() {}, err
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(b, zstd.WithDecoderMaxWindow(512<<20), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	}
	return b, func() {}, nil
}
