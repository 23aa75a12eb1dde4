// Package rootfs makes root file system tars: of .debs, which dpkg can then
// configure (merged-/usr links, an empty dpkg database, and every file of every
// package), or of someone's tarball, checked and put in order. The same input
// gives the same bytes.
package rootfs

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// Deb is one .deb.
type Deb struct {
	Name string // file name; orders the .debs and names them in errors
	Open func() (File, error)
}

// File is an opened .deb.
type File interface {
	io.ReaderAt
	io.Closer
}

// limits bound what hostile .debs can make us write.
type limits struct {
	members int   // files, directories and links in all
	total   int64 // unpacked bytes in all
	member  int64 // unpacked bytes of one file
}

var defaults = limits{members: 1 << 20, total: 4 << 30, member: 2 << 30}

// FromDebs writes the root file system of debs to w as a tar: sorted, owners and
// modes as the .debs have them, times no later than epoch (seconds). Where two
// .debs hold different files at one path, the later by name wins. File contents
// pass through a temporary file, not through memory.
//
// A .deb that is damaged, reaches out of the root (.., an absolute path, a parent
// that is a link), holds a device or unpacks to more than 4 GiB is refused with
// an error naming it and the member; each bad .deb is reported.
func FromDebs(w io.Writer, debs []Deb, epoch int64) error {
	return fromDebs(w, debs, epoch, defaults)
}

func fromDebs(w io.Writer, debs []Deb, epoch int64, lim limits) error {
	spool, err := newSpool()
	if err != nil {
		return err
	}
	defer spool.Close()
	t := newTree(spool, lim)
	sorted := slices.SortedFunc(slices.Values(debs), func(a, b Deb) int { return cmp.Compare(a.Name, b.Name) })
	var errs []error
	for i, deb := range sorted {
		if i > 0 && deb.Name == sorted[i-1].Name {
			errs = append(errs, fmt.Errorf("%s is given twice", deb.Name))
			continue
		}
		if err := t.unpack(deb); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	t.addSkeleton()
	if err := t.check(); err != nil {
		return err
	}
	return t.write(w, epoch)
}

// unpack adds the files of one .deb to the tree.
func (t *tree) unpack(deb Deb) error {
	f, err := deb.Open()
	if err != nil {
		return fmt.Errorf("%s: cannot open: %w", deb.Name, err)
	}
	defer f.Close()
	if err := eachMember(f, t.lim.total, func(m *member) error { return t.add(deb.Name, m) }); err != nil {
		return fmt.Errorf("%s: %w", deb.Name, err)
	}
	return nil
}

// newSpool is a file for contents. It is unlinked at once: nothing is left
// behind, however the process ends.
func newSpool() (*os.File, error) {
	spool, err := os.CreateTemp("", "imgforge-rootfs-*")
	if err != nil {
		return nil, fmt.Errorf("cannot make a temporary file to unpack to: %w", err)
	}
	if err := os.Remove(spool.Name()); err != nil {
		return nil, errors.Join(err, spool.Close())
	}
	return spool, nil
}
