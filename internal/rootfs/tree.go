package rootfs

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// merged are the links of a merged /usr; what .debs ship under them goes to
// their targets.
var merged = map[string]string{"bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64", "sbin": "usr/sbin"}

// inode is what a path stands for. Hard links share one.
type inode struct {
	deb      string // where it comes from; empty when it is ours
	kind     byte   // tar.TypeReg, TypeDir or TypeSymlink
	mode     int64
	uid, gid int
	mtime    int64 // seconds
	target   string
	offset   int64 // of the content in the spool
	size     int64
}

// tree is the root file system being gathered, by clean relative path.
type tree struct {
	spool  *os.File
	end    int64 // of the spool
	lim    limits
	merged map[string]string // links whose targets take what is put below them
	nodes  map[string]*inode
}

// newTree is the empty root that .debs are unpacked to.
func newTree(spool *os.File, lim limits) *tree {
	t := &tree{spool: spool, lim: lim, merged: merged, nodes: map[string]*inode{}}
	for name, target := range merged {
		t.nodes[name] = &inode{kind: tar.TypeSymlink, mode: 0o777, target: target}
		t.nodes[target] = &inode{kind: tar.TypeDir, mode: 0o755}
	}
	return t
}

// clean turns a tar member's name into a path of the tree.
func (t *tree) clean(name string) (string, error) {
	switch {
	case path.IsAbs(name):
		return "", errors.New("the path is absolute")
	case len(name) > 4096:
		return "", errors.New("the path is longer than 4096 bytes")
	case strings.ContainsRune(name, 0):
		return "", errors.New("the path holds a NUL")
	case slices.Contains(strings.Split(name, "/"), ".."):
		return "", errors.New("the path holds ..")
	}
	p := path.Clean(name)
	first, rest, below := strings.Cut(p, "/")
	if target, ok := t.merged[first]; ok && below {
		return target + "/" + rest, nil
	}
	return p, nil
}

// add puts one member of the named .deb into the tree.
func (t *tree) add(deb string, m *member) error {
	p, err := t.clean(m.Name)
	if err != nil {
		return err
	}
	if p == "." {
		return nil
	}
	n := &inode{deb: deb, kind: m.Typeflag, mode: m.Mode & 0o7777, uid: m.Uid, gid: m.Gid, mtime: m.ModTime.Unix()}
	switch m.Typeflag {
	case tar.TypeDir:
		p, n.mtime = t.mergedDir(p), max(n.mtime, 0)
	case tar.TypeSymlink:
		if n.target = m.Linkname; n.target == "" || strings.ContainsRune(n.target, 0) {
			return errors.New("a symbolic link without a usable target")
		}
		n.mode = 0o777
	case tar.TypeReg:
		if err := t.store(n, m); err != nil {
			return err
		}
	case tar.TypeLink:
		if n, err = t.linked(deb, m.Linkname); err != nil {
			return err
		}
	default:
		return fmt.Errorf("type %q: only files, directories and links may be in it", m.Typeflag)
	}
	return t.place(p, n)
}

// mergedDir maps a directory named bin, lib, lib64 or sbin to where it is.
func (t *tree) mergedDir(p string) string {
	if target, ok := t.merged[p]; ok {
		return target
	}
	return p
}

// store copies a file's content to the spool.
func (t *tree) store(n *inode, m *member) error {
	if m.Size > t.lim.member {
		return fmt.Errorf("%d bytes, more than the %d allowed for one file", m.Size, t.lim.member)
	}
	if t.end+m.Size > t.lim.total {
		return fmt.Errorf("it unpacks to more than the %d bytes allowed", t.lim.total)
	}
	size, err := io.Copy(t.spool, m.body)
	n.offset, n.size = t.end, size
	t.end += size
	return err
}

// linked returns the file a hard link of deb names; it must be deb's own.
func (t *tree) linked(deb, name string) (*inode, error) {
	p, err := t.clean(name)
	if err != nil {
		return nil, fmt.Errorf("hard link to %q: %w", name, err)
	}
	n := t.nodes[p]
	if n == nil || n.kind != tar.TypeReg || n.deb != deb {
		return nil, fmt.Errorf("hard link to %q, which is no earlier file of it", name)
	}
	return n, nil
}

// place puts n at p, or settles with what is there.
func (t *tree) place(p string, n *inode) error {
	old := t.nodes[p]
	switch {
	case old == nil:
		if len(t.nodes) >= t.lim.members {
			return fmt.Errorf("more than the %d files allowed", t.lim.members)
		}
	case old.kind != n.kind:
		return fmt.Errorf("a %s here, a %s in %s", kindName(n), kindName(old), owner(old))
	case n.kind == tar.TypeDir:
		if !plainer(old, n) {
			return nil
		}
	case n.kind == tar.TypeSymlink && n.target == old.target:
		return nil
	case t.merged[p] != "":
		return fmt.Errorf("link to %q, but a merged /usr needs %q", n.target, old.target)
	case old.deb == n.deb:
		return errors.New("it is there twice")
	}
	t.nodes[p] = n
	return nil
}

// plainer reports whether old has nothing to say about a directory that n has:
// many .debs name /tmp, one of them knows its mode.
func plainer(old, n *inode) bool {
	plain := func(n *inode) bool { return n.mode == 0o755 && n.uid == 0 && n.gid == 0 }
	return old.deb == "" || plain(old) && !plain(n)
}

func owner(n *inode) string {
	if n.deb == "" {
		return "the root's own layout"
	}
	return n.deb
}

func kindName(n *inode) string {
	switch n.kind {
	case tar.TypeDir:
		return "directory"
	case tar.TypeSymlink:
		return "symbolic link"
	}
	return "file"
}

// addSkeleton adds what dpkg needs to run and no .deb ships, and the missing
// parents of every path.
func (t *tree) addSkeleton() {
	for _, p := range []string{"alternatives", "info", "parts", "triggers", "updates"} {
		t.own("var/lib/dpkg/"+p, &inode{kind: tar.TypeDir, mode: 0o755})
	}
	for _, p := range []string{"available", "status"} {
		t.own("var/lib/dpkg/"+p, &inode{kind: tar.TypeReg, mode: 0o644})
	}
	if t.nodes["usr/bin/mawk"] != nil {
		// Maintainer scripts call awk before mawk's own has run.
		t.own("usr/bin/awk", &inode{kind: tar.TypeSymlink, mode: 0o777, target: "mawk"})
	}
	for _, p := range slices.Collect(maps.Keys(t.nodes)) {
		for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
			t.own(dir, &inode{kind: tar.TypeDir, mode: 0o755})
		}
	}
}

func (t *tree) own(p string, n *inode) {
	if t.nodes[p] == nil {
		t.nodes[p] = n
	}
}

// check refuses paths below something that is no directory: written in order,
// they would leave the root through a link.
func (t *tree) check() error {
	var errs []error
	for _, p := range slices.Sorted(maps.Keys(t.nodes)) {
		parent := path.Dir(p)
		if parent == "." {
			continue
		}
		if n := t.nodes[parent]; n.kind != tar.TypeDir {
			errs = append(errs, fmt.Errorf("%s: %s: its parent is a %s in %s",
				owner(t.nodes[p]), p, kindName(n), owner(n)))
		}
	}
	return errors.Join(errs...)
}

// write emits the tar.
func (t *tree) write(w io.Writer, epoch int64) error {
	tw := tar.NewWriter(w)
	written := map[*inode]string{}
	for _, p := range slices.Sorted(maps.Keys(t.nodes)) {
		n := t.nodes[p]
		if err := t.writeOne(tw, p, written[n], epoch); err != nil {
			return fmt.Errorf("%s: %s: %w", owner(n), p, err)
		}
		if n.kind == tar.TypeReg && written[n] == "" {
			written[n] = p
		}
	}
	return tw.Close()
}

// writeOne emits one path; first is an earlier path of the same file, if any.
func (t *tree) writeOne(tw *tar.Writer, p, first string, epoch int64) error {
	n := t.nodes[p]
	mtime := epoch
	if n.deb != "" {
		mtime = min(max(n.mtime, 0), epoch)
	}
	hdr := &tar.Header{
		Typeflag: n.kind, Name: p, Linkname: n.target, Size: n.size,
		Mode: n.mode, Uid: n.uid, Gid: n.gid, ModTime: time.Unix(mtime, 0),
	}
	switch {
	case n.kind == tar.TypeDir:
		hdr.Name += "/"
	case first != "":
		hdr.Typeflag, hdr.Linkname, hdr.Size = tar.TypeLink, first, 0
	}
	if err := tw.WriteHeader(hdr); err != nil {
		return err
	}
	if hdr.Size == 0 {
		return nil
	}
	_, err := io.Copy(tw, io.NewSectionReader(t.spool, n.offset, n.size))
	return err
}
