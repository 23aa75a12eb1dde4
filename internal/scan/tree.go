package scan

import (
	"archive/tar"
	"maps"
	"path"
	"slices"
)

// Tree is an image's file system: its layers merged.
type Tree struct {
	files   map[string]*file
	order   []string // paths, sorted
	secrets []file   // of every layer, with its number
}

// merge puts layers over each other, base first.
func merge(layers []*layer) *Tree {
	t := &Tree{files: map[string]*file{}}
	for i, l := range layers {
		own := make(map[string]bool, len(l.files))
		replaced := false
		for n := range l.files {
			f := l.files[n] // the layer is shared by other images
			f.layer = i + 1
			if f.kind == tar.TypeLink {
				f = t.linked(f)
			}
			if old := t.files[f.path]; old != nil && old.kind == tar.TypeDir && f.kind != tar.TypeDir {
				replaced = true
			}
			t.files[f.path], own[f.path] = &f, true
		}
		if len(l.gone) > 0 || len(l.opaque) > 0 || replaced {
			t.settle(l, own)
		}
		for _, s := range l.secrets {
			s.layer = i + 1
			t.secrets = append(t.secrets, s)
		}
	}
	t.order = slices.Sorted(maps.Keys(t.files))
	return t
}

// linked is a hard link as the file it is.
func (t *Tree) linked(f file) file {
	target := t.files[path.Clean(f.link)]
	if target == nil {
		return f
	}
	out := *target
	out.path, out.layer = f.path, f.layer
	return out
}

// settle drops what a layer removed or replaced of those below.
func (t *Tree) settle(l *layer, own map[string]bool) {
	maps.DeleteFunc(t.files, func(p string, _ *file) bool {
		if own[p] {
			return false
		}
		if l.gone[p] || l.opaque["."] {
			return true
		}
		for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
			above := t.files[dir]
			if l.gone[dir] || l.opaque[dir] || above != nil && own[dir] && above.kind != tar.TypeDir {
				return true
			}
		}
		return false
	})
}

// each calls do for every regular file, in the order of paths.
func (t *Tree) each(do func(*file)) {
	for _, p := range t.order {
		if f := t.files[p]; f.kind == tar.TypeReg {
			do(f)
		}
	}
}
