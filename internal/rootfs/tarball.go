package rootfs

import (
	"archive/tar"
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

// tarballs bound what someone's root file system may unpack to.
var tarballs = limits{members: 2 << 20, total: 16 << 30, member: 4 << 30}

// FromTar writes the root file system that a tarball (plain, gzip, xz or zstd)
// holds to w as a tar: sorted, times no later than epoch (seconds), owners and
// modes kept, extended attributes dropped.
//
// Devices below dev are left out, since a container has its own; any elsewhere,
// and a member that reaches out of the root (.., a parent that is a link), comes
// twice, or makes it unpack to more than 16 GiB, is refused by its name. So is a
// tarball that is damaged. The tarball's own name is for messages.
func FromTar(w io.Writer, name string, r io.Reader, epoch int64) error {
	return fromTar(w, tarball{name, r}, epoch, tarballs)
}

type tarball struct {
	name string
	r    io.Reader
}

func fromTar(w io.Writer, in tarball, epoch int64, lim limits) error {
	spool, err := newSpool()
	if err != nil {
		return err
	}
	defer spool.Close()
	b := bufio.NewReaderSize(in.r, 1<<20)
	plain, done, err := decompress(b, suffixOf(b))
	if err != nil {
		return fmt.Errorf("%s: %w", in.name, err)
	}
	defer done()
	t := &tree{spool: spool, lim: lim, nodes: map[string]*inode{}}
	err = eachOf("tar", plain, lim.total, func(m *member) error {
		m.Name = strings.TrimPrefix(m.Name, "./")
		if device(m.Typeflag) && strings.HasPrefix(m.Name, "dev/") {
			return nil
		}
		m.Linkname = hardTarget(m.Header)
		return t.add(in.name, m)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", in.name, err)
	}
	for _, p := range slices.Collect(maps.Keys(t.nodes)) {
		for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
			t.own(dir, &inode{kind: tar.TypeDir, mode: 0o755})
		}
	}
	if err := t.check(); err != nil {
		return err
	}
	return t.write(w, epoch)
}

func device(kind byte) bool {
	return kind == tar.TypeChar || kind == tar.TypeBlock || kind == tar.TypeFifo
}

// hardTarget is a link's target; a hard link may name it as the tar names members.
func hardTarget(h *tar.Header) string {
	if h.Typeflag == tar.TypeLink {
		return strings.TrimPrefix(h.Linkname, "./")
	}
	return h.Linkname
}

// suffixOf tells the compression by the first bytes.
func suffixOf(b *bufio.Reader) string {
	magic, _ := b.Peek(6) // what is too short fails when it is read
	for suffix, start := range map[string]string{".gz": "\x1f\x8b", ".xz": "\xfd7zXZ\x00", ".zst": "\x28\xb5\x2f\xfd"} {
		if bytes.HasPrefix(magic, []byte(start)) {
			return suffix
		}
	}
	return ""
}
