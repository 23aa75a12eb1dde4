package scan

import (
	"archive/tar"
	"encoding/base64"
	"encoding/binary"
	"encoding/csv"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
)

var cached = regexp.MustCompile(`^(.+)\.[a-z]+-?[0-9]+(\.opt-[0-9])?\.pyc$`)

// stalePyc refuses compiled files that Python would not use, or that no longer belong
// to their source: each start compiles anew, or runs what is no longer written.
func stalePyc(f *findings) {
	const do = "compile them unchecked: python -m compileall --invalidation-mode unchecked-hash"
	n := 0
	f.tree.each(func(x *file) {
		if path.Ext(x.path) != ".pyc" || !strings.Contains(x.path, "/python3") {
			return
		}
		n++
		dir, name := path.Split(x.path)
		m := cached.FindStringSubmatch(name)
		if path.Base(dir) != "__pycache__" || m == nil {
			return // on its own, without a source
		}
		flags := byte(0) // by time and size; 1: by a hash that nobody checks; 3: by a hash
		if len(x.data) == pycHeader {
			flags = x.data[4]
		}
		source := f.tree.source(path.Join(path.Dir(path.Clean(dir)), m[1]+".py"))
		switch {
		case source == nil:
			f.add(do, "%s has no source", at(x))
		case len(x.data) < pycHeader:
			f.add(do, "%s is cut off", at(x))
		case flags&1 == 0:
			if when, size := binary.LittleEndian.Uint32(x.data[8:]), binary.LittleEndian.Uint32(x.data[12:]); when != uint32(source.mtime) || size != uint32(source.size) {
				f.add(do, "%s is of another time or size than /%s", at(x), source.path)
			}
		case source.layer > x.layer && flags&2 == 0:
			f.add(do, "%s is of before layer %d wrote /%s anew, and is run in its place", at(x), source.layer, source.path)
		case source.layer > x.layer:
			f.add(do, "%s is of before layer %d wrote /%s anew: each start compiles it", at(x), source.layer, source.path)
		}
	})
	if n == 0 {
		f.add(do, "nothing is compiled: there is no .pyc of any Python")
	}
	f.summary = fmt.Sprintf("%d compiled files belong to their sources", n)
}

// source follows one link: Debian's packages link modules.
func (t *Tree) source(p string) *file {
	x := t.files[p]
	if x != nil && x.kind == tar.TypeSymlink {
		target := x.link
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(p), target)
		}
		x = t.files[strings.TrimPrefix(path.Clean(target), "/")]
	}
	return x
}

// records holds every installed file to its wheel's RECORD.
func records(f *findings) {
	known := map[string]bool{} // files that a RECORD speaks of
	dirs := map[string]bool{}  // of packages
	n := 0
	f.tree.each(func(x *file) {
		info := path.Dir(x.path)
		if path.Base(x.path) != "RECORD" && path.Base(x.path) != "METADATA" || !strings.HasSuffix(info, ".dist-info") || !strings.HasSuffix(path.Dir(info), "/site-packages") {
			return // a distribution that another carries with it is as that one made it
		}
		dirs[path.Dir(info)] = true
		switch record := f.tree.files[info+"/RECORD"]; {
		case record == x:
			n++
			f.record(x, path.Dir(info), known)
		case record == nil || record.kind != tar.TypeReg:
			f.add(again, "/%s has no RECORD", info)
		}
	})
	if len(dirs) == 0 {
		f.add("", "no distribution is installed in a site-packages")
	}
	f.tree.each(func(x *file) {
		if known[x.path] || path.Ext(x.path) == ".pyc" {
			return
		}
		for dir := path.Dir(x.path); dir != "."; dir = path.Dir(dir) {
			if dirs[dir] {
				f.add("install it from a wheel, or place it outside of site-packages", "%s is of no wheel", at(x))
				return
			}
		}
	})
	f.summary = fmt.Sprintf("%d distributions, %d files as recorded", n, len(known))
}

const again = "build the image again from its lock"

// unhashed are the files that a RECORD may name without saying what is in them.
var unhashed = regexp.MustCompile(`(\.dist-info/RECORD(\.jws|\.p7s)?|\.pyc)$`)

// record checks the lines of one RECORD.
func (f *findings) record(x *file, dir string, known map[string]bool) {
	name := strings.TrimSuffix(path.Base(path.Dir(x.path)), ".dist-info")
	r := csv.NewReader(strings.NewReader(string(x.data)))
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil || len(rows) == 0 {
		f.add(again, "%s cannot be read: %v", at(x), err)
		return
	}
	for _, row := range rows {
		if len(row) < 3 || row[0] == "" {
			f.add(again, "%s has a line without path, hash and size", at(x))
			return
		}
		p := path.Join(dir, row[0])
		if path.IsAbs(row[0]) {
			p = strings.TrimPrefix(path.Clean(row[0]), "/")
		}
		known[p] = true
		got := f.tree.files[p]
		switch algorithm, sum, _ := strings.Cut(row[1], "="); {
		case got == nil || got.kind != tar.TypeReg:
			f.add(again, "/%s of %s is missing", p, name)
		case row[2] != "" && row[2] != strconv.FormatInt(got.size, 10):
			f.add(again, "%s has %d bytes, and %s records %s", at(got), got.size, name, row[2])
		case sum == "" && !unhashed.MatchString(p):
			f.add(again, "%s has no hash in what %s records", at(got), name)
		case algorithm == "sha256" && got.hashed && strings.TrimRight(sum, "=") != base64.RawURLEncoding.EncodeToString(got.sum[:]):
			f.add(again, "%s is not what %s records", at(got), name)
		}
	}
}
