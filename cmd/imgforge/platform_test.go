package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/record"
)

// armRecipe has a .deb and a wheel that differ between machines.
const armRecipe = `name: compiled
summary: a test's own
debs: [hello]
wheels: [markupsafe]
`

const armMatrix = `version: 1
name: platforms
bases:
  debian12:
    debian: {suite: bookworm}
  foreign:
    rootfs: {url: no-such-file.tar.gz, sha256: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}
axes:
  cuda: ["12.8"]
  torch: ["2.9.1"]
  python: ["3.11"]
  driver: [">=570.26"]
  platform: [linux/amd64, linux/arm64]
  base:
    platform linux/amd64: [debian12]
    platform linux/arm64: [debian12, foreign]
recipes: [compiled]
tag: "${base}-${arch}"
`

// An engine of another platform locks what it cannot build, and builds what it can.
func TestPlatforms(t *testing.T) {
	needsEngine(t)
	dir := t.TempDir()
	w := world{
		matrix: filepath.Join(dir, "matrix.yaml"), lock: filepath.Join(dir, "matrix.lock"), recipes: []string{filepath.Join(dir, "recipes")},
		state: filepath.Join(scratch, "state"), dist: filepath.Join(dir, "dist"),
	}
	for name, text := range map[string]string{w.matrix: armMatrix, filepath.Join(dir, "recipes", "compiled.yaml"): armRecipe} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const ofDebian = "base=debian12"
	t.Run("lock", func(t *testing.T) {
		imgforge(t, w.args("lock", "--only", ofDebian, "--progress", "plain")...).wants(t, exitDone)
		imgforge(t, w.args("lock", "--only", ofDebian, "--check")...).wants(t, exitDone)
		data, err := os.ReadFile(w.lock)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"\ndeb libc6_2.36-9", "_amd64 debian/pool/main/g/glibc/libc6_", "_arm64 debian/pool/main/g/glibc/libc6_",
			"_arm64 debian/pool/main/h/hello/hello_", "_amd64 debian/pool/main/h/hello/hello_",
			"_aarch64.whl pypi:markupsafe==", "_x86_64.whl pypi:markupsafe==",
		} {
			if !strings.Contains(string(data), want) {
				t.Errorf("the lock has no %q", want)
			}
		}
	})
	t.Run("lock of a base that cannot run", func(t *testing.T) {
		r := imgforge(t, w.args("lock", "--only", "base=foreign", "--dry-run", "--progress", "plain")...).wants(t, exitInfra)
		for _, want := range []string{"cannot lock base/foreign-", "(foreign-arm64)", "is of linux/arm64 and is locked by running its own apt and Python", "no build engine for linux/arm64: this one runs linux/amd64"} {
			if !strings.Contains(r.stderr, want) {
				t.Errorf("no %q in:\n%s", want, tail(r.stderr, 10))
			}
		}
	})
	t.Run("build", func(t *testing.T) {
		r := imgforge(t, w.args("build", "--only", ofDebian, "--json")...).wants(t, exitInfra)
		all := rows(t, r)
		reason := failedAs(t, all, "debian12-arm64", record.ClassEngine)
		if !strings.Contains(reason, "no build engine for linux/arm64: this one runs linux/amd64") || !strings.Contains(reason, "--builder") {
			t.Errorf("refused with: %s", reason)
		}
		if digests(all)["debian12-amd64"] == "" {
			t.Errorf("the other cell is not built: %+v", all)
		}
	})
}
