package main

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/builder"
	"github.com/imgforge/imgforge/internal/imagetest"
	"github.com/imgforge/imgforge/internal/record"
)

// elsewhere is the small world, locked and fetched, with an empty engine. The
// store's files are shared by hard links.
func elsewhere(t *testing.T, name string) world {
	t.Helper()
	w, _ := built(t)
	from := filepath.Join(w.state, "store", "blobs")
	w.state, w.dist = filepath.Join(scratch, name), filepath.Join(scratch, name+"-dist")
	if err := os.MkdirAll(filepath.Join(w.state, "store"), 0o755); err != nil {
		t.Fatal(err)
	}
	command(t, "cp", "--archive", "--link", from, filepath.Join(w.state, "store"))
	t.Cleanup(func() {
		os.RemoveAll(w.state)
		os.RemoveAll(w.dist)
	})
	return w
}

// isolated runs its arguments with loopback for a network, another host name and
// another place to ask for names.
var isolated = []string{"unshare", "--net", "--uts", "--mount", "sh", "-c",
	`ip link set lo up && hostname elsewhere-machine && f=$(mktemp) && echo nameserver 192.0.2.53 > "$f" &&
	mount --bind "$f" /etc/resolv.conf && rm "$f" && umask 077 && exec "$@"`, "sh"}

// fullDisk builds on an engine whose disk is too small: the error says so and what
// to do, and is the machine's. It returns what makes room.
func fullDisk(t *testing.T, w world) (more func()) {
	t.Helper()
	dir := filepath.Join(w.state, "engine")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	command(t, "mount", "-t", "tmpfs", "-o", "size=150m", "tmpfs", dir)
	t.Cleanup(func() { command(t, "umount", dir) })
	r := start(t, isolated, environ(), w.args("build", "--json", "--only", "driver=525")...).result(t).wants(t, exitInfra)
	reason := failedAs(t, rows(t, r), cellA, record.ClassEngine)
	for _, want := range []string{"disk is full", "imgforge builder prune", "the same command again"} {
		if !strings.Contains(reason, want) {
			t.Errorf("no %q in %q", want, reason)
		}
	}
	imgforge(t, "builder", "prune", "--all", "--state", w.state).wants(t, exitDone)
	if free := freeSpace(dir); free < 100<<20 {
		t.Errorf("%d bytes are free after the prune that the error speaks of", free)
	}
	return func() { command(t, "mount", "-o", "remount,size=6g", dir) }
}

// From an empty engine, with every network gone but loopback, on a machine of
// another name, user, time zone, language and umask: the same digests.
// pypa/pip#5648, #8414, lidofinance/lido-oracle#663: times and paths in byte code, logs and caches.
func TestColdBuild(t *testing.T) {
	t.Parallel() // with the next: a build from nothing leaves a core idle
	w := elsewhere(t, "cold")
	_, want := built(t)
	env := append(environ(), "TZ=Asia/Shanghai", "LANG=zh_CN.UTF-8", "LC_ALL=tr_TR.UTF-8", "HOME="+t.TempDir(), "SOURCE_DATE_EPOCH=1234567890")
	makeRoom := fullDisk(t, w)
	makeRoom()
	r := start(t, isolated, env, w.args("build", "--json", "--jobs", "3")...).result(t).wants(t, exitDone)
	if got := digests(rows(t, r)); !maps.Equal(got, digests(want)) {
		t.Errorf("a cold build gives\n%v\nwant\n%v", got, digests(want))
	}
	for _, row := range rows(t, r) {
		if row.Fetched != 0 {
			t.Errorf("%s downloaded %d bytes", row.Cell, row.Fetched)
		}
	}
	lazy := w
	lazy.dist += "-estargz"
	defer os.RemoveAll(lazy.dist)
	r2 := start(t, isolated, env, lazy.args("build", "--json", "--only", "driver=525", "--compression", "estargz")...).result(t).wants(t, exitDone)
	same := imagetest.Find(t, imagetest.Open(t, inCompression(t, "estargz").dist), cellA).Digest
	if got := rows(t, r2)[0].Digest; got != same {
		t.Errorf("in estargz, a cold build gives %s, want %s", got, same)
	}
	if !strings.Contains(r.stderr, "base: configure") {
		t.Error("nothing was built, so nothing was shown")
	}
}

// An engine that only has an address gets its files over the session, and gives
// the same digests.
func TestBuilderElsewhere(t *testing.T) {
	t.Parallel()
	w := elsewhere(t, "far")
	_, want := built(t)
	engine, err := builder.Start(context.WithoutCancel(t.Context()), filepath.Join(scratch, "far-engine"), builder.Paths{Buildkitd: buildkitd()})
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(filepath.Join(scratch, "far-engine"))
	defer engine.Close()
	r := call(t, append(environ(), "BUILDKIT_HOST=unix:///nonexistent"),
		w.args("build", "--json", "--only", "driver=535", "--builder", engine.Addr)...).wants(t, exitDone)
	got := digests(rows(t, r))
	for _, cell := range []string{cellB, cellC} {
		if got[cell] != digests(want)[cell] {
			t.Errorf("%s is %s elsewhere, %s here", cell, got[cell], digests(want)[cell])
		}
	}
	if strings.Contains(r.stderr, "start the engine") {
		t.Error("an engine of our own was started")
	}
	if _, err := os.Stat(filepath.Join(w.state, "engine")); err == nil {
		t.Error("the state directory has an engine")
	}
}
