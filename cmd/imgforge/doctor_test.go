package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/imgforge/imgforge/internal/matrix"
	"github.com/imgforge/imgforge/internal/store"
)

// healthy is a machine with a GPU on which everything is well.
func healthy() *patient {
	files := map[string]string{
		"/proc/self/uid_map":          "         0          0 4294967295\n",
		"/proc/self/mountinfo":        "30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		"/proc/filesystems":           "nodev\tproc\n\text4\nnodev\toverlay\n",
		"/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n",
	}
	outputs := map[string]string{
		"runc": "runc version 1.1.5\n", "buildkitd": "buildkitd github.com/moby/buildkit v0.34.2\n",
		"nvidia-smi": "NVIDIA A100-SXM4-80GB, 535.104.05\n",
	}
	return &patient{
		state: "/state", epoch: 1_700_000_000, need: need{download: 1 << 30, all: 2 << 30},
		cells:   []matrix.Cell{{Tag: "new", CUDA: "12.1", Torch: "2.4.1", Python: "3.11", Driver: "535.54.03"}, {Tag: "old", CUDA: "11.8", Torch: "2.4.1", Python: "3.11", Driver: "525.60.13"}},
		mirrors: []store.Profile{{Name: "near", Archives: map[string]string{"debian": "https://near.example/debian"}}},
		indexes: []store.Index{{Mirror: "near", URL: "https://pypi.example/simple"}},
		machine: machine{
			env: map[string]string{}, engine: "v0.34.2",
			now:    func() time.Time { return time.Unix(1_800_000_000, 0) },
			free:   func(string) int64 { return 1 << 40 },
			exists: func(string) bool { return true },
			read: func(path string) ([]byte, error) {
				if text, ok := files[path]; ok {
					return []byte(text), nil
				}
				return nil, fmt.Errorf("open %s: no such file", path)
			},
			find: func(given, name string) string {
				if given == "" && outputs[name] == "" {
					return ""
				}
				return "/bin/" + name
			},
			output: func(_ context.Context, program string, _ ...string) (string, error) {
				return outputs[strings.TrimPrefix(program, "/bin/")], nil
			},
			overlay: func(string) error { return nil },
			resolve: func(context.Context, string) error { return nil },
			answers: func(context.Context, string) error { return nil },
			dial:    func(context.Context, string, string) error { return nil },
		},
	}
}

// with changes what a file holds, "" for one that is not there.
func (p *patient) file(path, text string) {
	before := p.machine.read
	p.machine.read = func(asked string) ([]byte, error) {
		switch {
		case asked != path:
			return before(asked)
		case text == "":
			return nil, errors.New("open " + path + ": no such file")
		}
		return []byte(text), nil
	}
}

// prints changes what a program prints, "" for one that is not there.
func (p *patient) prints(program, text string) {
	find, output := p.machine.find, p.machine.output
	p.machine.find = func(given, name string) string {
		if name == program && text == "" {
			return ""
		}
		return find(given, name)
	}
	p.machine.output = func(ctx context.Context, name string, args ...string) (string, error) {
		if name == "/bin/"+program {
			return text, nil
		}
		return output(ctx, name, args...)
	}
}

func TestHealthyMachine(t *testing.T) {
	found := healthy().examine(t.Context())
	names := map[string]bool{}
	for _, f := range found {
		names[f.Check] = true
		if f.Level != levelOK {
			t.Errorf("%+v", f)
		}
	}
	if len(names) != len(looks) {
		t.Errorf("%d of %d checks say something: %v", len(names), len(looks), slices.Sorted(maps.Keys(names)))
	}
	if last := found[len(found)-1]; !strings.Contains(last.What, "runs 2 of 2 cells") {
		t.Errorf("cells: %q", last.What)
	}
}

// One thing is wrong at a time; just that is found, with a cure.
func TestFindings(t *testing.T) {
	far := func(p *patient) { p.remote = "tcp://far:1234" }
	fails := func(context.Context, string) error { return errors.New("no such host") }
	tests := []struct {
		check, level, what string
		sick               func(p *patient)
	}{
		{"matrix", levelWarning, "no such matrix", func(p *patient) { p.inputs = errors.New("no such matrix") }},
		{"builder", levelError, "refused", func(p *patient) {
			far(p)
			p.machine.dial = func(context.Context, string, string) error { return errors.New("refused") }
		}},
		{"root", levelError, "user 1000", func(p *patient) { p.machine.uid = 1000 }},
		{"root", levelNote, "needs none of it", func(p *patient) { p.machine.uid = 1000; far(p) }},
		{"root", levelWarning, "user namespace", func(p *patient) { p.file("/proc/self/uid_map", "0 1000 1\n") }},
		{"runtime", levelError, "no runc", func(p *patient) { p.prints("runc", "") }},
		{"runtime", levelError, "1.1.4", func(p *patient) { p.prints("runc", "runc version 1.1.4\n") }},
		{"runtime", levelError, "--keep", func(p *patient) { p.prints("runc", "crun version 1.8.1\n") }},
		{"buildkitd", levelError, "no buildkitd", func(p *patient) { p.prints("buildkitd", "") }},
		{"buildkitd", levelWarning, "v0.33.0", func(p *patient) { p.prints("buildkitd", "buildkitd github.com/moby/buildkit v0.33.0\n") }},
		{"cgroups", levelError, "no cgroups", func(p *patient) { p.file("/proc/self/mountinfo", "1 0 0:1 / / rw - ext4 /dev/vda rw\n") }},
		{"overlayfs", levelError, "kernel has no", func(p *patient) { p.file("/proc/filesystems", "nodev\tproc\n") }},
		{"overlayfs", levelError, "invalid argument", func(p *patient) {
			p.machine.overlay = func(string) error { return errors.New("invalid argument") }
		}},
		{"disk", levelError, "512MiB are free", func(p *patient) { p.machine.free = func(string) int64 { return 512 << 20 } }},
		{"disk", levelWarning, "4GiB are free", func(p *patient) { p.machine.free = func(string) int64 { return 4 << 30 } }},
		{"clock", levelError, "before the lock's epoch", func(p *patient) { p.machine.now = func() time.Time { return time.Unix(1, 0) } }},
		{"proxy", levelError, "HTTPS_PROXY", func(p *patient) { p.machine.env["HTTPS_PROXY"] = "proxy.example" }},
		{"proxy", levelError, "no such file", func(p *patient) { p.machine.env["SSL_CERT_FILE"] = "/none.pem" }},
		{"proxy", levelError, "no certificate", func(p *patient) { p.machine.env["SSL_CERT_FILE"] = "/proc/filesystems" }},
		{"dns", levelError, "no such host", func(p *patient) { p.machine.resolve = fails }},
		{"mirrors", levelError, "1GiB are to be downloaded", func(p *patient) { p.machine.answers = fails }},
		{"mirrors", levelWarning, "pypi.example: no such host", func(p *patient) { p.machine.answers = fails }},
		{"nvidia", levelNote, "no NVIDIA driver", func(p *patient) { p.file("/proc/driver/nvidia/version", ""); p.prints("nvidia-smi", "") }},
		{"nvidia", levelWarning, "not loaded", func(p *patient) { p.file("/proc/driver/nvidia/version", "") }},
		{"nvidia", levelWarning, "not on PATH", func(p *patient) { p.prints("nvidia-smi", "") }},
		{"nvidia", levelError, "speaks of driver 550.54.14", func(p *patient) { p.prints("nvidia-smi", "NVIDIA A100-SXM4-80GB, 550.54.14\n") }},
		{"nvidia", levelOK, "runs 1 of 2 cells\nnew does not: its floor is driver 535.54.03", func(p *patient) {
			p.file("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  525.125.06  Tue\n")
			p.prints("nvidia-smi", "NVIDIA A100-SXM4-80GB, 525.125.06\n")
		}},
		{"nvidia", levelWarning, "runs 0 of 2 cells", func(p *patient) {
			p.file("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.57.02  Tue\n")
			p.prints("nvidia-smi", "NVIDIA A100-SXM4-80GB, 470.57.02\n")
		}},
		{"nvidia", levelNote, "Mystery 9000 is not known", func(p *patient) { p.prints("nvidia-smi", "Mystery 9000, 535.104.05\n") }},
	}
	for _, test := range tests {
		t.Run(test.check+" "+test.what, func(t *testing.T) {
			p := healthy()
			test.sick(p)
			hit := false
			for _, f := range p.examine(t.Context()) {
				hit = hit || f.Check == test.check && f.Level == test.level && strings.Contains(f.What, test.what)
				if f.Check != test.check && f.Level != levelOK && p.remote == "" {
					t.Errorf("also found: %+v", f)
				}
				if (f.Level == levelError || f.Level == levelWarning) && f.Cure == "" {
					t.Errorf("no cure for %+v", f)
				}
			}
			if !hit {
				t.Errorf("not found; the findings are %+v", p.examine(t.Context()))
			}
		})
	}
}

// Where these tests run, so does the engine: the doctor finds nothing against it.
func TestDoctorHere(t *testing.T) {
	needsEngine(t)
	var found []finding
	r := imgforge(t, "doctor", "--json", "--mirrors", "host", "--state", t.TempDir(), "--matrix", small().matrix, "--recipes", small().recipes[0])
	if err := json.Unmarshal([]byte(r.stdout), &found); err != nil {
		t.Fatalf("exit code %d: %v\n%s\n%s", r.code, err, r.stdout, r.stderr)
	}
	levels := map[string]string{}
	for _, f := range found {
		levels[f.Check] = f.Level
	}
	for _, name := range []string{"matrix", "builder", "root", "runtime", "buildkitd", "cgroups", "overlayfs", "clock"} {
		if levels[name] != levelOK {
			t.Errorf("%s: %q in %s", name, levels[name], r.stdout)
		}
	}
}
