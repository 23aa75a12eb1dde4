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
	exec   bool   // a file that may be run
	target string // of a link
	data   []byte // of a file that is read
}

// tree is the file system after the layers so far, by clean relative path.
type tree struct {
	nodes  map[string]node
	order  []string // cached by sorted
	newest int64    // time of the youngest member, in seconds

	members, kept, unpacked int64 // so far, of all layers
}

// What one image may hold, in all layers. The largest images in use have a tenth.
const (
	mostMembers  = 4_000_000
	mostUnpacked = 200 << 30 // bytes of tar
	mostKept     = 128 << 20 // bytes of files that are read
	mostStatus   = 64 << 20  // of dpkg's status
	mostOther    = 1 << 20   // of any other file that is read
)

// wanted is how many bytes of a file are read at most; 0 for one that is not.
func wanted(p string) int64 {
	switch p {
	case "var/lib/dpkg/status":
		return mostStatus
	case "etc/os-release", "usr/lib/os-release", "etc/apt/sources.list":
		return mostOther
	}
	if path.Dir(p) == "etc/apt/sources.list.d" || strings.HasSuffix(p, "-packages/torch/version.py") {
		return mostOther
	}
	return 0
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
	over := overlay{seen: map[string]bool{}, gone: map[string]bool{}, opaque: map[string]bool{}}
	tr := tar.NewReader(&bounded{plain, &t.unpacked})
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			t.settle(over)
			return nil
		}
		if err != nil {
			return err
		}
		if t.members++; t.members > mostMembers {
			return fmt.Errorf("more than %d members in all layers", mostMembers)
		}
		if err := t.member(tr, h, over); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
}

// bounded counts what is read, of all layers, and stops at the most.
type bounded struct {
	io.Reader
	n *int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if *b.n += int64(n); *b.n > mostUnpacked {
		return n, fmt.Errorf("the layers unpack to more than %d GiB", mostUnpacked>>30)
	}
	return n, err
}

// overlay is what a layer says of those below it, whatever the order it says it in.
type overlay struct {
	seen   map[string]bool // its own paths, which its whiteouts spare
	gone   map[string]bool // paths it removes, with all below them
	opaque map[string]bool // directories of which it keeps nothing
}

func (t *tree) member(r io.Reader, h *tar.Header, over overlay) error {
	p := path.Clean(strings.TrimPrefix(h.Name, "/"))
	if p == "." {
		return nil
	}
	if p == ".." || strings.HasPrefix(p, "../") {
		return errors.New("the path leaves the root")
	}
	p = t.landing(p)
	dir, name := path.Split(p)
	if name == ".wh..wh..opq" {
		over.opaque[path.Clean(dir)] = true
		return nil
	}
	if gone, ok := strings.CutPrefix(name, ".wh."); ok {
		over.gone[dir+gone] = true
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
		n = t.nodes[t.landing(path.Clean(strings.TrimPrefix(h.Linkname, "/")))]
	case tar.TypeReg:
		n.kind, n.exec = file, h.Mode&0o111 != 0
		var err error
		if n.data, err = t.read(r, p, h.Size); err != nil {
			return err
		}
	}
	t.nodes[p], over.seen[p] = n, true
	for dir := path.Dir(p); dir != "." && (t.nodes[dir].kind == absent || !over.seen[dir]); dir = path.Dir(dir) {
		if t.nodes[dir].kind == absent {
			t.nodes[dir] = node{kind: directory} // a tar need not name them
		}
		over.seen[dir] = true
	}
	return nil
}

// landing is where a member of a layer comes to lie: links of lower layers that it
// goes through are followed.
func (t *tree) landing(p string) string {
	dir, name := path.Split(p)
	for at := path.Clean(dir); at != "."; at = path.Dir(at) {
		if t.nodes[at].kind == link {
			return path.Join(t.resolve(dir), name)
		}
	}
	return p
}

// read takes the content of a file that is wanted.
func (t *tree) read(r io.Reader, p string, size int64) ([]byte, error) {
	most := wanted(p)
	switch {
	case most == 0:
		return nil, nil
	case size > most:
		return nil, fmt.Errorf("%d bytes, more than the %d that are read", size, most)
	case t.kept+size > mostKept:
		return nil, fmt.Errorf("more than %d MiB in files that are read", mostKept>>20)
	}
	t.kept += size
	return io.ReadAll(r)
}

// settle drops what lower layers have and this one removed or replaced.
func (t *tree) settle(over overlay) {
	replaced := false
	for p := range over.seen {
		replaced = replaced || t.nodes[p].kind != directory
	}
	if len(over.gone) == 0 && len(over.opaque) == 0 && !replaced {
		return
	}
	maps.DeleteFunc(t.nodes, func(p string, _ node) bool {
		if over.seen[p] {
			return false
		}
		if over.gone[p] || over.opaque["."] {
			return true
		}
		for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
			if over.gone[dir] || over.opaque[dir] || t.nodes[dir].kind != directory {
				return true
			}
		}
		return false
	})
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
		z, err := zstd.NewReader(b, zstd.WithDecoderMaxWindow(512<<20))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	}
	return b, func() {}, nil
}
