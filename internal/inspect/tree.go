package inspect

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// kind is what a path is.
type kind byte

const (
	absent kind = iota
	file
	directory
	link
)

type node struct {
	kind   kind
	target string // of a link
	data   []byte // of a file that is read
}

// tree is the file system after the layers so far, by clean relative path.
type tree struct {
	nodes  map[string]node
	order  []string // cached by sorted
	newest int64    // time of the youngest member, in seconds
}

// most bounds a file that is kept in memory; dpkg's status is the largest.
const most = 64 << 20

// wanted tells whether a file's content is read.
func wanted(p string) bool {
	switch p {
	case "etc/os-release", "usr/lib/os-release", "var/lib/dpkg/status", "etc/apt/sources.list":
		return true
	}
	return path.Dir(p) == "etc/apt/sources.list.d" || strings.HasSuffix(p, "-packages/torch/version.py")
}

// apply puts one layer over those before it.
func (t *tree) apply(open Layer) error {
	raw, err := open()
	if err != nil {
		return err
	}
	defer raw.Close()
	plain, done, err := decompress(raw)
	if err != nil {
		return err
	}
	defer done()
	t.order = nil
	seen := map[string]bool{} // paths of this layer, which its whiteouts spare
	tr := tar.NewReader(plain)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := t.member(tr, h, seen); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
}

func (t *tree) member(r io.Reader, h *tar.Header, seen map[string]bool) error {
	p := path.Clean(strings.TrimPrefix(h.Name, "/"))
	if p == "." {
		return nil
	}
	if p == ".." || strings.HasPrefix(p, "../") {
		return errors.New("the path leaves the root")
	}
	dir, name := path.Split(p)
	if name == ".wh..wh..opq" {
		t.remove(dir, seen)
		return nil
	}
	if gone, ok := strings.CutPrefix(name, ".wh."); ok {
		delete(t.nodes, dir+gone)
		t.remove(dir+gone+"/", seen)
		return nil
	}
	t.newest = max(t.newest, h.ModTime.Unix())
	n := node{}
	switch h.Typeflag {
	case tar.TypeDir:
		n.kind = directory
	case tar.TypeSymlink:
		n.kind, n.target = link, h.Linkname
	case tar.TypeLink:
		n = t.nodes[path.Clean(strings.TrimPrefix(h.Linkname, "/"))]
	case tar.TypeReg:
		n.kind = file
		if wanted(p) {
			if h.Size > most {
				return fmt.Errorf("%d bytes, more than the %d that are read", h.Size, most)
			}
			data, err := io.ReadAll(r)
			if err != nil {
				return err
			}
			n.data = data
		}
	}
	if old := t.nodes[p]; old.kind == directory && n.kind != directory {
		t.remove(p+"/", seen)
	}
	t.nodes[p], seen[p] = n, true
	for dir := path.Dir(p); dir != "." && t.nodes[dir].kind == absent; dir = path.Dir(dir) {
		t.nodes[dir], seen[dir] = node{kind: directory}, true // a tar need not name them
	}
	return nil
}

// remove drops what lower layers have below a directory.
func (t *tree) remove(prefix string, seen map[string]bool) {
	maps.DeleteFunc(t.nodes, func(p string, _ node) bool { return strings.HasPrefix(p, prefix) && !seen[p] })
}

func (t *tree) sorted() []string {
	if t.order == nil {
		t.order = slices.Sorted(maps.Keys(t.nodes))
	}
	return t.order
}

// content is what a file that was read holds, links followed; nil when absent.
func (t *tree) content(p string) []byte { return t.nodes[t.resolve(p)].data }

// resolve follows links in every part of a path; a path that ends nowhere, or
// never, resolves to "".
func (t *tree) resolve(p string) string {
	todo := strings.Split(strings.Trim(path.Clean("/"+p), "/"), "/")
	at := ""
	for hops := 0; len(todo) > 0; {
		step := todo[0]
		todo = todo[1:]
		switch step {
		case "", ".":
			continue
		case "..":
			at = strings.TrimPrefix(path.Dir("/"+at), "/")
			continue
		}
		next := path.Join(at, step)
		n := t.nodes[next]
		if n.kind != link {
			at = next
			continue
		}
		if hops++; hops > 40 {
			return ""
		}
		if path.IsAbs(n.target) {
			at = ""
		}
		todo = append(strings.Split(n.target, "/"), todo...)
	}
	return at
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
		z, err := zstd.NewReader(b)
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	}
	return b, func() {}, nil
}
