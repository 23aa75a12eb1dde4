package lock

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	hexA  = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	hexB  = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	tree  = "h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	tree2 = "h1:BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA="
)

// example has every kind, a blob of unknown size, and a blob that two sets share.
func example(t testing.TB) (*File, []byte) {
	t.Helper()
	data, err := os.ReadFile("testdata/example.lock")
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse("example.lock", data)
	if err != nil {
		t.Fatal(err)
	}
	return f, data
}

func TestRoundTrip(t *testing.T) {
	var all []Entry
	for _, name := range []string{"testdata/example.lock", "testdata/bases.lock"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := Parse(name, data)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Format(); string(got) != string(data) {
			t.Errorf("read and written again, %s is\n%s", name, got)
		}
		all = append(all, f.Entries...)
	}
	for _, kind := range kinds {
		if !slices.ContainsFunc(all, func(e Entry) bool { return e.Kind == kind }) {
			t.Errorf("the examples have no %s", kind)
		}
	}
}

func TestParseFields(t *testing.T) {
	f, _ := example(t)
	want := Entry{
		Kind: Wheel, Key: "torch-2.1.2+cu118-cp311-cp311-linux_x86_64.whl",
		Value: "pytorch/cu118:torch==2.1.2+cu118", Size: 2325870400, Hash: hexB,
	}
	if !slices.Contains(f.Entries, want) {
		t.Errorf("no %+v in %+v", want, f.Entries)
	}
	if f.Epoch() != 1735689600 || f.RecipeHash("zsh") != tree || f.RecipeHash("fish") != "" {
		t.Errorf("epoch %d, zsh %q, fish %q", f.Epoch(), f.RecipeHash("zsh"), f.RecipeHash("fish"))
	}
	if blobs := f.Blobs(); len(blobs) != 3 || blobs[want.Key] != want {
		t.Errorf("blobs are %v", blobs)
	}
}

// Comments, empty lines and another system's line ends are no part of a lock.
func TestParseTolerates(t *testing.T) {
	f, data := example(t)
	lines := strings.SplitAfter(string(data), "\n")
	loose := lines[0] + "\n# a remark\n" + strings.Join(lines[1:], "\n# more\n")
	for _, text := range []string{loose, strings.ReplaceAll(loose, "\n", "\r\n"), strings.TrimSuffix(string(data), "\n")} {
		got, err := Parse("x.lock", []byte(text))
		if err != nil || got.Digest() != f.Digest() {
			t.Errorf("%v, or another lock, from\n%s", err, text)
		}
	}
}

func TestParseReportsEveryLine(t *testing.T) {
	_, err := Parse("x.lock", []byte(header+"\nbad\nrecipe zsh - - "+tree+"\nworse\nrecipe zsh - - "+tree2+"\n"))
	want := []string{"x.lock:2:1: ", "x.lock:4:1: ", "x.lock:5:1: recipe zsh is already on line 3"}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(want) {
		t.Fatalf("got %d problems, want %d:\n%s", len(lines), len(want), err)
	}
	for i, line := range lines {
		if !strings.HasPrefix(line, want[i]) || !strings.Contains(line, "imgforge lock") {
			t.Errorf("got %q, want %q and what to do", line, want[i])
		}
	}
}

func TestParseOtherVersion(t *testing.T) {
	for _, text := range []string{"", "\n", "# imgforge lock 2\nrecipe zsh - - " + tree, "recipe zsh - - " + tree, header + "0\n"} {
		if _, err := Parse("x.lock", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), "x.lock:1:1: not an imgforge lock of version 1") {
			t.Errorf("%q gives %v", text, err)
		}
	}
}

func TestAnyOrderGivesEqualBytes(t *testing.T) {
	f, data := example(t)
	random := rand.New(rand.NewPCG(1, 2))
	for range 25 {
		shuffled := slices.Clone(f.Entries)
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		whole := &File{Entries: shuffled}
		put := &File{}
		for _, e := range shuffled {
			put.Put(e, e) // a second time changes nothing
		}
		if string(whole.Format()) != string(data) || string(put.Format()) != string(data) {
			t.Fatalf("another order, another lock:\n%s", put.Format())
		}
		if whole.Digest() != f.Digest() {
			t.Fatal("another order, another digest")
		}
	}
}

func TestPutReplaces(t *testing.T) {
	f, _ := example(t)
	n := len(f.Entries)
	f.Put(Entry{Kind: Recipe, Key: "zsh", Hash: tree2})
	if len(f.Entries) != n || f.RecipeHash("zsh") != tree2 {
		t.Errorf("%d entries after %d, zsh %s", len(f.Entries), n, f.RecipeHash("zsh"))
	}
	before := f.Digest()
	f.Put(Entry{Kind: Recipe, Key: "zsh", Hash: tree})
	if f.Digest() == before {
		t.Error("another hash, the same digest")
	}
}

func TestPicked(t *testing.T) {
	f, _ := example(t)
	got, ok, err := f.Picked("wheels/one-00000001")
	if err != nil || !ok || len(got) != 2 || got[0].Key > got[1].Key {
		t.Errorf("picked %v, %v, %v", got, ok, err)
	}
	if got, ok, err := f.Picked("wheels/none-00000000"); ok || err != nil || got != nil {
		t.Errorf("a set that is not locked gives %v, %v, %v", got, ok, err)
	}
	f.Put(Entry{Kind: Pick, Key: "wheels/one-00000001", Value: "gone.whl"})
	if _, ok, err := f.Picked("wheels/one-00000001"); !ok || err == nil || !strings.Contains(err.Error(), "gone.whl") {
		t.Errorf("a pick without its blob gives %v, %v", ok, err)
	}
}

// Whatever Parse is given, it returns; what it accepts can be written and read.
// The same holds of Mend, which takes all that Parse takes, and changes none of it.
func FuzzParse(f *testing.F) {
	_, data := example(f)
	f.Add(data)
	f.Add([]byte(header + "\r\n# x\r\n\r\nepoch source-date-epoch 999999999 - -\r\n"))
	f.Add([]byte(header + "\npick a/b c 007 \x00\ndeb - - - -\n"))
	f.Add([]byte(header + "\npick debs/x-1 - - -\nrequires a_1_all b,c - -\n"))
	broken, err := filepath.Glob("testdata/err/*.lock")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range broken {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		read, err := Parse("x.lock", data)
		mended, merr := Mend("x.lock", data)
		for _, e := range []error{err, merr} {
			if e != nil && !strings.HasPrefix(e.Error(), "x.lock:") {
				t.Fatalf("an error without a place: %v", e)
			}
		}
		if err == nil {
			written(t, read)
			if merr != nil || !slices.Equal(read.Entries, mended.Entries) {
				t.Fatalf("Mend changes a whole lock: %v", merr)
			}
		}
		if merr == nil {
			written(t, mended)
		}
	})
}

// written holds that a lock is the same once it is written and read.
func written(t *testing.T, f *File) {
	text := f.Format()
	again, err := Parse("x.lock", text)
	if err != nil {
		t.Fatalf("cannot read what was written: %v\n%s", err, text)
	}
	if !slices.Equal(f.Entries, again.Entries) || string(again.Format()) != string(text) {
		t.Fatalf("%+v and %+v differ", f.Entries, again.Entries)
	}
}
