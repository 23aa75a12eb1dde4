package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/imgforge/imgforge/internal/imagetest"
	"github.com/imgforge/imgforge/internal/record"
	"github.com/imgforge/imgforge/internal/report"
)

// checked is a build of the small world's first cell, with a recipe of the test's own
// and its checks.
func checked(t *testing.T, name, recipe string, more ...string) (world, result, report.Row) {
	t.Helper()
	w := locked(t).with(t, name, "", recipe)
	w.smoke = true
	r := imgforge(t, w.args("build", append([]string{"--json", "--only", "tag=" + cellA}, more...)...)...)
	got := rows(t, r)
	if len(got) != 1 || got[0].Smoked == nil {
		t.Fatalf("no checks have run: %+v\n%s", got, tail(r.stderr, 20))
	}
	return w, r, got[0]
}

func statusOf(t *testing.T, row report.Row, name string) record.Check {
	t.Helper()
	i := slices.IndexFunc(row.Smoked.Checks, func(c record.Check) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("no check %s in %+v", name, row.Smoked.Checks)
	}
	return row.Smoked.Checks[i]
}

// What a recipe declares is run on the image that was built of it: as the image's user
// would, as another one, with both streams apart, and never from a cache.
func TestSmoke(t *testing.T) {
	recipe := `env: {GREETING: hello}
checks:
  - {name: env, run: "echo $GREETING $PWD; echo noise >&2", expect: {stdout: "hello /workspace"}}
  - {name: nobody, run: "id -u; touch /tmp/x", user: nobody, expect: {stdout: "65534"}}
  - {name: offline, run: "test $(wc -l < /proc/net/route) -le 1"}
  - {name: once, run: "cat /proc/sys/kernel/random/uuid"}
  - {name: code, run: "exit 7", expect: {exit: 7}}
  - {name: warns, run: "exit 1", severity: warning}
  - {name: floods, run: "yes | head -c 50000000; echo end", expect: {match: "end$"}}
`
	w, r, row := checked(t, "proof", recipe)
	r.wants(t, exitDone)
	for _, c := range row.Smoked.Checks {
		want := record.CheckPassed
		if c.Name == "warns" {
			want = record.CheckWarned
		}
		if c.Status != want {
			t.Errorf("%s %s: %+v", c.Name, c.Status, c)
		}
	}
	if row.Status != string(record.Tested) || row.Smoked.Runner != "buildkit" || row.Smoked.Image != row.Digest {
		t.Errorf("%s by %s of %s, built %s", row.Status, row.Smoked.Runner, row.Smoked.Image, row.Digest)
	}
	again := rows(t, imgforge(t, w.args("build", "--json", "--only", "tag="+cellA)...).wants(t, exitDone))[0]
	first, second := statusOf(t, row, "once").Summary, statusOf(t, again, "once").Summary
	if first == "" || first == second || again.Digest != row.Digest {
		t.Errorf("two runs print %q and %q: the second was not run", first, second)
	}

	// The same image from its layout, over the session.
	junit := filepath.Join(t.TempDir(), "smoke.xml")
	args := []string{"smoke", "oci:" + w.dist + ":" + cellA, "--state", w.state, "--json", "--junit", junit}
	for _, dir := range w.recipes {
		args = append(args, "--recipes", dir)
	}
	out := rows(t, imgforge(t, args...).wants(t, exitDone))
	if len(out) != 1 || out[0].Smoked.Verdict() != record.Tested || out[0].Smoked.Image != row.Digest || len(out[0].Smoked.Checks) != len(row.Smoked.Checks) {
		t.Errorf("from the layout: %+v", out)
	}
	if xml, err := os.ReadFile(junit); err != nil || !strings.Contains(string(xml), `<testcase name="nobody"`) {
		t.Errorf("JUnit: %v\n%s", err, xml)
	}
}

// broken runs the checks of an image that a step has broken: those that say, and no
// others, fail.
func broken(t *testing.T, name, recipe string, says map[string]string) (world, report.Row) {
	t.Helper()
	w, r, row := checked(t, name, recipe)
	r.wants(t, exitCheck)
	for _, c := range row.Smoked.Checks {
		want, fails := says[c.Name]
		switch {
		case fails != (c.Status == record.CheckFailed):
			t.Errorf("%s %s: %+v", c.Name, c.Status, c)
		case fails && !strings.Contains(fmt.Sprint(c.Problems), want):
			t.Errorf("%s does not say %q: %+v", c.Name, want, c.Problems)
		}
	}
	for name := range says {
		statusOf(t, row, name)
	}
	return w, row
}

// A cell whose check fails is not tagged; its image is there by digest, and the others
// are tagged.
func TestSmokeFails(t *testing.T) {
	w, row := broken(t, "broken", `
run:
  - name: break what lies in the image
    run: |
      chmod 666 /etc/zsh/zshrc; echo echo hi >> /etc/zsh/zshrc
      sed -i 's/^backend.*/backend: TkAgg/' /etc/matplotlibrc
      mkdir -p /usr/local/cuda/compat; echo x > /usr/local/cuda/compat/libcuda.so.530.30.02
      echo x > /usr/lib/libcudnn.so.8; echo x > /usr/lib/libcudnn.so.9
      chmod u+s /usr/bin/hello
      echo machine example login me password x > /root/.netrc
      cd /opt/venv/lib/python3.11/site-packages
      echo >> tqdm/std.py
      mkdir opencv_python-4.9.dist-info; printf 'Name: opencv-python\nVersion: 4.9\n' > opencv_python-4.9.dist-info/METADATA
checks:
  - {name: hangs, run: "echo begun; sleep 1000", timeout: 2s}
`, map[string]string{
		"writable": "every user may write /etc/zsh/zshrc", "zsh": "zsh prints when it starts: hi", "matplotlib-agg": "the backend is TkAgg, not agg",
		"cuda-compat": "a driver library: /usr/local/cuda/compat/libcuda.so.530.30.02", "two-cuda": "libcudnn is there 2 times", "setuid": "/usr/bin/hello",
		"leftovers": "/root/.netrc", "stale-pyc": "/tqdm/std.py anew, and is run in its place", "one-opencv": "opencv-python opens windows", "record": "opencv_python-4.9.dist-info has no RECORD",
		"hangs": "killed after 2s",
	})
	if row.Failed == nil || row.Failed.Class != record.ClassSmoke || row.Digest == "" {
		t.Errorf("%+v", row)
	}
	if _, err := os.Stat(filepath.Join(w.dist, "index.json")); err == nil {
		if images := imagetest.Open(t, w.dist); len(images) != 0 {
			t.Errorf("a failed cell is tagged: %s", images[0].Tag)
		}
	}
}

// What an image lacks is no pass, and what its distributions lack is told.
func TestSmokeLacks(t *testing.T) {
	broken(t, "lacking", `
run:
  - name: break what is installed
    run: |
      cd /opt/venv/lib/python3.11/site-packages
      sed -i '/^Name:/a Requires-Dist: no-such>=1' tqdm-*.dist-info/METADATA
      rm -r cycler
checks: [opencv, torch-numpy, jupyter-kernel, compiler]
`, map[string]string{
		"pip-check": "requires no-such, which is not installed", "imports": "No module named 'cycler'", "matplotlib-agg": "No module named 'cycler'",
		"record": "cycler/__init__.py of cycler-0.12.1 is missing", "opencv": "add the recipe opencv-headless", "torch-numpy": "No module named 'torch'",
		"jupyter-kernel": "add the recipe jupyter", "compiler": "add the recipe devel",
	})
}

// Without a GPU a check that needs one fails, or the image is untested: as the policy says.
func TestSmokeWithoutGPU(t *testing.T) {
	recipe := "checks:\n  - {name: gpu, kind: gpu, run: nvidia-smi}\n"
	_, r, row := checked(t, "wants-gpu", recipe, "--gpu", "require")
	r.wants(t, exitCheck)
	if c := statusOf(t, row, "gpu"); c.Status != record.CheckFailed || !strings.Contains(c.Summary, "no GPU") {
		t.Errorf("required: %+v", c)
	}
	for _, policy := range []string{"skip", "auto"} {
		_, r, row := checked(t, "wants-gpu", recipe, "--gpu", policy)
		r.wants(t, exitDone)
		if c := statusOf(t, row, "gpu"); c.Status != record.CheckSkipped || row.Status != string(record.Untested) {
			t.Errorf("%s: %s, %+v", policy, row.Status, c)
		}
	}
}

// Ctrl-C ends a check at once.
func TestSmokeInterrupted(t *testing.T) {
	w := locked(t).with(t, "long", "", "checks:\n  - {name: long, run: sleep 316.5, timeout: 20m}\n")
	w.smoke = true
	p := start(t, nil, environ(), w.args("build", "--json", "--only", "tag="+cellA)...)
	until(t, "the check to run", func() bool { return len(running("sleep 316.5")) > 0 })
	p.signal(t, p.cmd.Process.Pid, syscall.SIGINT)
	r := p.result(t).wants(t, exitInfra)
	var got []report.Row
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil || got[0].Failed == nil || got[0].Failed.Class != record.ClassCancel {
		t.Errorf("%v: %s", err, r.stdout)
	}
	nothingLeft(t, w, "sleep 316.5")
}
