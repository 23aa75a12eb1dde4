package main

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/record"
	"github.com/imgforge/imgforge/internal/store/storetest"
)

// lostFile is a locked file that the store had and has no more.
type lostFile struct {
	name    string
	where   string // in its archive, such as debian/pool/...; empty for a wheel
	content []byte
}

// lose removes a .deb and a wheel of the first cell from the store, until the
// test ends.
func lose(t *testing.T, w world) (deb, wheel lostFile) {
	t.Helper()
	data, err := os.ReadFile(w.lock)
	if err != nil {
		t.Fatal(err)
	}
	file, err := lock.Parse(w.lock, data)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range file.Entries {
		switch {
		case e.Kind == lock.Deb && strings.HasPrefix(e.Key, "hello_"):
			deb = lostFile{path.Base(e.Value), e.Value, remove(t, w, e.Hash)}
		case e.Kind == lock.Wheel && strings.HasPrefix(e.Key, "tqdm-4.67.1-"):
			wheel = lostFile{e.Key, "", remove(t, w, e.Hash)}
		}
	}
	if deb.content == nil || wheel.content == nil {
		t.Fatal("the lock has no hello or no tqdm")
	}
	return deb, wheel
}

func remove(t *testing.T, w world, hash string) []byte {
	t.Helper()
	at := filepath.Join(w.state, "store", "blobs", strings.Replace(hash, ":", "/", 1))
	content, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(at); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := os.Stat(at); err == nil {
			return // it was fetched
		}
		if err := os.WriteFile(at, content, 0o644); err != nil {
			t.Fatal(err)
		}
	})
	return content
}

// mirror serves the two files, with other bytes when it lies.
func mirror(t *testing.T, deb, wheel lostFile, lies bool) *storetest.Mirror {
	m := storetest.New(t)
	m.Add("/"+deb.where, deb.content)
	m.Wheel("/simple/tqdm/", wheel.name, wheel.content)
	if lies {
		for _, f := range []lostFile{deb, wheel} {
			wrong := bytes.Clone(f.content)
			wrong[len(wrong)/2] ^= 1
			at := "/" + f.where
			if f.where == "" {
				at = "/packages/" + storetest.Sum(f.content)[:8] + "/" + f.name
			}
			m.Add(at, wrong)
		}
	}
	return m
}

// profiles writes a file of mirror profiles, one a URL, and names it.
func profiles(t *testing.T, urls ...string) string {
	t.Helper()
	var text strings.Builder
	for i, url := range urls {
		fmt.Fprintf(&text, "- name: %s\n  archives: {debian: %s/debian, debian-security: %s/debian-security}\n  indexes: [%s/simple]\n",
			[]string{"first", "second", "third"}[i], url, url, url)
	}
	file := filepath.Join(t.TempDir(), "mirrors.yaml")
	if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// mirrored are a build's arguments with nothing but the mirrors of a file.
func (w world) mirrored(file, names string) []string {
	args := w.args("build", "--json", "--only", "driver=525", "--mirror-file", file, "--mirrors", names)
	for i, a := range args {
		if a == "--mirrors" && args[i+1] == "host" {
			return append(args[:i:i], args[i+2:]...)
		}
	}
	return args
}

// The first mirror is refused, the second serves wrong bytes, the third is good:
// the build succeeds and says all that.
func TestThirdMirror(t *testing.T) {
	w, before := built(t)
	w.dist = filepath.Join(t.TempDir(), "dist")
	deb, wheel := lose(t, w)
	second, third := mirror(t, deb, wheel, true), mirror(t, deb, wheel, false)
	file := profiles(t, storetest.Closed(t), second.URL, third.URL)
	r := imgforge(t, w.mirrored(file, "first,second,third")...).wants(t, exitDone)
	if got, want := rows(t, r)[0], digests(before)[cellA]; got.Digest != want || got.Fetched < int64(len(deb.content)+len(wheel.content)) {
		t.Errorf("%+v, want %s with both files downloaded", got, want)
	}
	for _, want := range []string{"first", "connection refused", "second", "sha256"} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("the output does not say %q:\n%s", want, head(r.stderr, 40))
		}
	}
	if len(second.Asked()) == 0 || len(third.Asked()) == 0 {
		t.Errorf("asked of the second %v, of the third %v", second.Asked(), third.Asked())
	}
}

// With all mirrors dead the error names each, each file and why.
func TestAllMirrorsDead(t *testing.T) {
	w, _ := built(t)
	w.dist = filepath.Join(t.TempDir(), "dist")
	deb, wheel := lose(t, w)
	empty, liar := storetest.New(t), mirror(t, deb, wheel, true)
	refused := storetest.Closed(t)
	file := profiles(t, refused, liar.URL, empty.URL)
	r := imgforge(t, w.mirrored(file, "first,second,third")...).wants(t, exitInfra)
	reason := failedAs(t, rows(t, r), cellA, record.ClassMirror)
	for _, want := range []string{deb.name, wheel.name, "first: connection refused", refused, "second: ", "third: 404", liar.URL, empty.URL} {
		if !strings.Contains(reason, want) {
			t.Errorf("no %q in:\n%s", want, reason)
		}
	}
}

// head is the first lines of a text.
func head(text string, lines int) string {
	all := strings.SplitN(text, "\n", lines+1)
	return strings.Join(all[:min(lines, len(all))], "\n")
}
