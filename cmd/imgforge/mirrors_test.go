package main

import (
	"encoding/json"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/store"
	"github.com/imgforge/imgforge/internal/store/storetest"
)

// fixtures are two mirrors of the flow case's lock: all of it, and its .debs alone.
func fixtures(t *testing.T) (all, debs *storetest.Mirror, args []string) {
	t.Helper()
	dir := repository("testdata", "flow", "small")
	data, err := os.ReadFile(dir + "/small.lock")
	if err != nil {
		t.Fatal(err)
	}
	file, err := lock.Parse("small.lock", data)
	if err != nil {
		t.Fatal(err)
	}
	all, debs = storetest.New(t), storetest.New(t)
	for _, e := range file.Entries {
		switch e.Kind {
		case lock.Deb:
			all.Add("/"+e.Value, make([]byte, e.Size))
			debs.Add("/"+e.Value, make([]byte, e.Size))
		case lock.Wheel:
			project, _, _ := strings.Cut(strings.TrimPrefix(e.Value, "pypi:"), "==")
			all.Add("/files/"+e.Key, make([]byte, e.Size))
			all.List("/simple/"+project+"/", e.Key, "/files/"+path.Base(e.Key), strings.TrimPrefix(e.Hash, "sha256:"))
		}
	}
	return all, debs, []string{"mirrors", "--matrix", dir + "/matrix.yaml", "--recipes", dir + "/recipes", "--lock", dir + "/small.lock", "--progress", "plain"}
}

func TestMirrors(t *testing.T) {
	all, debs, args := fixtures(t)
	file := profiles(t, debs.URL, all.URL, storetest.Closed(t))
	args = append(args, "--mirror-file", file)
	r := imgforge(t, append(args, "--mirrors", "first,second,third")...).wants(t, exitDone)
	for _, want := range []string{"first ", " yes ", "4/9", "9/9", "third ", "connection refused", "Asked for 9 files.", "Recommended: --mirrors ", "first: 404 Not Found: ", "numpy-1.0-py3-none-any.whl"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no %q in\n%s", want, r.stdout)
		}
	}
	r = imgforge(t, append(args, "--mirrors", "first,third", "--json")...).wants(t, exitCheck)
	var got store.ProbeResult
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Nowhere) != 5 || len(got.Order) != 1 || got.Order[0] != "first" || got.Mirrors[1].Reachable {
		t.Errorf("got %+v", got)
	}
	r = imgforge(t, append(args, "--mirrors", "third")...).wants(t, exitCheck)
	if !strings.Contains(r.stdout, "None of these mirrors is of use here.") {
		t.Errorf("got\n%s", r.stdout)
	}
	r = imgforge(t, append(args, "--mirrors", "nope")...).wants(t, exitInput)
	if !strings.Contains(r.stderr, `unknown mirror profile "nope"`) {
		t.Errorf("got\n%s", r.stderr)
	}
}
