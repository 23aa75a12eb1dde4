package resolve

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/plan"
)

// pylockOf is uv's answer that is one wheel in two builds.
const pylockOf = `lock-version = "1.0"
[[packages]]
name = "numpy"
version = "1.26.4"
wheels = [
  { url = "https://files.example/numpy-1.26.4-cp311-cp311-manylinux_2_17_x86_64.whl", size = 1, hashes = { sha256 = "` + someHash + `" } },
  { url = "https://files.example/numpy-1.26.4-cp311-cp311-manylinux_2_17_aarch64.whl", size = 1, hashes = { sha256 = "` + someHash + `" } },
]
`

// What is for another platform than the engine's is solved on the engine's own:
// apt and uv are told for which.
func TestPlatforms(t *testing.T) {
	for _, c := range []struct {
		name            string
		engine          string
		arch            string // of the cell
		root, uv, wheel string
		args            string
	}{
		{"arm64 on amd64", "linux/amd64", "arm64", "amd64", "_x86_64.", "aarch64", "python3 /in/wheels.py aarch64 36"},
		{"arm64 on arm64", "linux/arm64", "arm64", "arm64", "_aarch64.", "aarch64", "python3 /in/wheels.py"},
		{"amd64 on arm64", "linux/arm64", "amd64", "arm64", "_aarch64.", "x86_64", "python3 /in/wheels.py x86_64 36"},
	} {
		t.Run(c.name, func(t *testing.T) {
			answers, _ := json.Marshal(wheelAnswers{Tags: []string{"cp311-cp311-manylinux_2_17_" + c.wheel}, Answers: []wheelAnswer{{Index: "first", Pylock: pylockOf}}})
			e := &engine{wheels: answers, apt: map[string]string{
				"apt libc6 debian-archive-keyring python3": strings.ReplaceAll(aptBase, "amd64", c.arch),
				"zsh": "Inst zsh (5.9-4 localhost [" + c.arch + "])\n",
			}}
			r := resolver(t, e)
			r.Platform = c.engine
			got, err := r.Resolve(context.Background(), []lock.Need{
				needOf("debs", func(r *lock.Request) { r.Arch, r.Packages = c.arch, []string{"zsh"} }),
				needOf("wheels", func(r *lock.Request) { r.Arch, r.Requirements = c.arch, []string{"numpy"} }),
			})
			if err != nil {
				t.Fatal(err)
			}
			want := strings.ReplaceAll("base: apt_2.6_ARCH libc6_2.36-9+deb12u1_ARCH python3_3.11.2-1+b1_ARCH\ndebs: zsh_5.9-4_ARCH\n", "ARCH", c.arch) +
				"wheels: numpy-1.26.4-cp311-cp311-manylinux_2_17_" + c.wheel + ".whl\n"
			if text := summary(got); text != want {
				t.Errorf("got:\n%s\nwant:\n%s", text, want)
			}
			for _, job := range e.jobs {
				if job.Root.Platform != "linux/"+c.root || slices.ContainsFunc(job.Root.Base, foreignTo(c.root)) {
					t.Errorf("%s runs on %s in %v", job.Name, job.Root.Platform, job.Root.Base)
				}
			}
			if args := strings.Join(e.jobs[0].Args, " "); args != "sh /in/debs.sh "+c.arch {
				t.Errorf("apt is asked by %s", args)
			}
			uv := e.jobs[2]
			if args := strings.Join(uv.Args, " "); args != c.args {
				t.Errorf("uv is asked by %s", args)
			}
			for name := range uv.Blobs {
				if strings.HasPrefix(name, "uv-") && !strings.Contains(name, c.uv) {
					t.Errorf("%s does not run on %s", name, c.root)
				}
			}
		})
	}
}

func TestTarget(t *testing.T) {
	for _, c := range []struct{ suite, arch, want string }{
		{"bookworm", "arm64", "aarch64 36"}, {"bookworm", "amd64", "x86_64 36"}, {"trixie", "arm64", "aarch64 40"}, // uv knows no 2.41
		{"bookworm", "riscv64", ""}, {"potato", "arm64", ""},
	} {
		got, err := target(lock.Request{Suite: c.suite, Arch: c.arch})
		if strings.Join(got, " ") != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s on %s: %q, %v; want %q", c.suite, c.arch, got, err, c.want)
		}
	}
}

// What no engine for another platform can lock, and no table knows, is refused
// with what to do.
func TestPlatformRefused(t *testing.T) {
	r := resolver(t, &engine{apt: map[string]string{"apt libc6 debian-archive-keyring python3": strings.ReplaceAll(aptBase, "amd64", "arm64")}})
	r.Runs = func(_ context.Context, platform string) error {
		if platform != "linux/arm64" {
			t.Errorf("it is asked for %s", platform)
		}
		return errors.New("name an arm64 engine")
	}
	arm := func(kind string, edit func(*lock.Request)) lock.Need {
		return needOf(kind, func(r *lock.Request) { r.Arch = "arm64"; edit(r) })
	}
	got, err := r.Resolve(context.Background(), []lock.Need{
		arm("base", func(r *lock.Request) { r.Base, r.Image = "jammy", "docker.io/library/ubuntu:22.04" }),
		arm("debs", func(r *lock.Request) { r.Base, r.On, r.Packages = "jammy", "base/jammy-aaaaaaaa", []string{"zsh"} }),
		arm("wheels", func(r *lock.Request) {
			r.Requirements, r.Torch, r.CUDA = []string{"torch==2.9.1+cu126"}, "2.9.1", "12.6"
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	text := summary(got)
	for _, want := range []string{
		"base failed: m.yaml:7:3: cannot lock base/jammy-", "debs failed: m.yaml:7:3: cannot lock debs/jammy-",
		"base jammy is of linux/arm64 and is locked by running its own apt and Python (a debian base needs no such engine): name an arm64 engine",
		"torch==2.9.1+cu126 is on the PyTorch index alone, which imgforge does not ask, and its tables hold no sha256 of a wheel for arm64; exclude the cells of linux/arm64, or list the recipe that asks for it with when: {platform: linux/amd64}",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if len(got.Failures) != 3 || len(got.Answers) != 0 {
		t.Errorf("answers %v, failures %d", got.Answers, len(got.Failures))
	}
}

// foreignTo tells .debs of another architecture.
func foreignTo(arch string) func(plan.Blob) bool {
	return func(b plan.Blob) bool { return !strings.HasSuffix(b.Name, "_"+arch+".deb") }
}
