package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A lock made afresh is complete; asking again resolves nothing and changes nothing.
func TestLock(t *testing.T) {
	w := locked(t)
	before, err := os.ReadFile(w.lock)
	if err != nil {
		t.Fatal(err)
	}
	for _, package_ := range []string{"\ndeb libc6_", "\ndeb zsh_", "\ndeb hello_", "\nwheel matplotlib-", "\nwheel tqdm-4.67.1-", "\nwheel tqdm-4.66.5-"} {
		if !strings.Contains(string(before), package_) {
			t.Errorf("the lock has no line that begins with %q", strings.TrimSpace(package_))
		}
	}
	check := imgforge(t, w.args("lock", "--check")...).wants(t, exitDone)
	if !strings.Contains(check.stdout, "is complete") {
		t.Errorf("--check says %q", check.stdout)
	}
	// Without an engine: what is locked already takes neither one nor a network.
	again := call(t, append(environ(), "IMGFORGE_BUILDKITD=/nonexistent"), w.args("lock", "--mirrors", "snapshot")...).wants(t, exitDone)
	if !strings.Contains(again.stdout, " 0 new, 0 gone; 0 sets resolved, 0 failed") {
		t.Errorf("a second lock says %q", again.stdout)
	}
	if after, _ := os.ReadFile(w.lock); string(after) != string(before) {
		t.Error("a second lock changed the file")
	}
}

// The lock can be used anywhere: it holds nothing of this machine.
func TestLockNamesNoPlace(t *testing.T) {
	w := locked(t)
	data, err := os.ReadFile(w.lock)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	if i := strings.Index(text, "://"); i >= 0 {
		t.Errorf("a URL: %q", text[max(0, i-40):i+40])
	}
	for what, secret := range traces(t, w) {
		if strings.Contains(text, secret) {
			t.Errorf("the lock names the %s", what)
		}
	}
}

// A lock that lacks something fails --check, and says what.
func TestLockCheckFails(t *testing.T) {
	w := locked(t)
	data, err := os.ReadFile(w.lock)
	if err != nil {
		t.Fatal(err)
	}
	cut := regexp.MustCompile(`(?m)^recipe note .*\n`).ReplaceAllString(string(data), "")
	if cut == string(data) {
		t.Fatal("the lock has no line for the recipe note")
	}
	w.lock = filepath.Join(t.TempDir(), "cut.lock")
	if err := os.WriteFile(w.lock, []byte(cut), 0o644); err != nil {
		t.Fatal(err)
	}
	r := imgforge(t, w.args("lock", "--check")...).wants(t, exitCheck)
	if !strings.Contains(r.stdout, "missing: ") || !strings.Contains(r.stdout, "note") {
		t.Errorf("--check says %q", r.stdout)
	}
}
