package main

import (
	"archive/tar"
	"archive/zip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/imagetest"
)

// inside is a container of one cell, with the scripts of testdata/inside and a
// wheel of the test's own at /mnt.
func inside(t *testing.T) *imagetest.Container {
	t.Helper()
	img := cellImage(t, cellA)
	mount := t.TempDir()
	if err := os.CopyFS(mount, os.DirFS(filepath.Join("testdata", "inside"))); err != nil {
		t.Fatal(err)
	}
	ownWheel(t, filepath.Join(mount, "own_thing-1.0-py3-none-any.whl"))
	return imagetest.Unpack(t, img, mount)
}

// ownWheel writes a wheel with a module and a console script.
func ownWheel(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	var record strings.Builder
	for _, file := range [][2]string{
		{"own_thing.py", "def main():\n    print('own thing')\n"},
		{"own_thing-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: own-thing\nVersion: 1.0\n"},
		{"own_thing-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{"own_thing-1.0.dist-info/entry_points.txt", "[console_scripts]\nown-thing = own_thing:main\n"},
	} {
		w, err := z.Create(file[0])
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, file[1])
		fmt.Fprintf(&record, "%s,,\n", file[0])
	}
	w, err := z.Create("own_thing-1.0.dist-info/RECORD")
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, record.String()+"own_thing-1.0.dist-info/RECORD,,\n")
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
}

// silent checks that a command ends well and prints nothing.
func silent(t *testing.T, c *imagetest.Container, uid uint32, env []string, args ...string) {
	t.Helper()
	if r := c.Run(t, uid, env, args...); r.Code != 0 || r.Stdout+r.Stderr != "" {
		t.Errorf("%s as %d: exit code %d\n%s%s", strings.Join(args, " "), uid, r.Code, tail(r.Stdout, 30), tail(r.Stderr, 30))
	}
}

// prints checks that a command ends well and prints just this, and no warning.
func prints(t *testing.T, c *imagetest.Container, uid uint32, env []string, want string, args ...string) {
	t.Helper()
	if r := c.Run(t, uid, env, args...); r.Code != 0 || strings.TrimSpace(r.Stdout) != want || r.Stderr != "" {
		t.Errorf("%s as %d: exit code %d, %q %q, want %q", strings.Join(args, " "), uid, r.Code, r.Stdout, r.Stderr, want)
	}
}

// The image works as its users expect, run by runc with no network.
// matplotlib#29713, #8929: a display that is named and not there, a home that cannot be written.
func TestImage(t *testing.T) {
	c := inside(t)
	t.Run("python", func(t *testing.T) {
		prints(t, c, 0, nil, "No broken requirements found.", "pip", "check")
		prints(t, c, 0, nil, "/opt/venv", "python", "-c", "import sys; print(sys.prefix)")
		prints(t, c, 1000, nil, "/opt/venv", "bash", "-lc", "python -c 'import sys; print(sys.prefix)'")
	})
	t.Run("matplotlib", func(t *testing.T) {
		show := "import matplotlib.pyplot as p; p.plot([1, 2]); p.savefig('/tmp/a.png'); print(p.get_backend().lower())"
		for _, env := range [][]string{nil, {"DISPLAY=:0"}, {"DISPLAY=:0", "HOME=/nonexistent"}} {
			prints(t, c, 0, env, "agg", "python", "-c", show)
			prints(t, c, 1000, env, "agg", "python", "-c", show)
		}
	})
	t.Run("zsh", func(t *testing.T) {
		plugins := "print $+functions[_zsh_autosuggest_start] $+functions[_zsh_highlight]"
		for uid, home := range map[uint32]string{0: "/root", 1000: "/nonexistent", 4242: "/"} {
			env := []string{"HOME=" + home, "TERM=xterm-256color"}
			silent(t, c, uid, env, "zsh", "-ic", "true")
			silent(t, c, uid, env, "zsh", "-lic", "true")
			prints(t, c, uid, env, "1 1", "zsh", "-ic", plugins)
		}
	})
	t.Run("mirrors", func(t *testing.T) {
		settings := c.Output(t, 1000, "pip", "config", "list")
		if !strings.Contains(settings, "global.index-url='https://pypi.tuna.tsinghua.edu.cn/simple'\n") {
			t.Errorf("pip is configured with %s", settings)
		}
		targets := strings.Fields(c.Output(t, 0, "apt-get", "indextargets", "--no-release-info", "--format", "$(URI)"))
		for _, uri := range targets {
			if !strings.HasPrefix(uri, "http://mirrors.aliyun.com/debian") {
				t.Errorf("apt asks %s", uri)
			}
		}
		if len(targets) == 0 {
			t.Error("apt has no sources")
		}
	})
	t.Run("recipe", func(t *testing.T) {
		prints(t, c, 1000, nil, "Hello, world!\n/opt/venv", "remark")
	})
	t.Run("bytecode", func(t *testing.T) { silent(t, c, 0, nil, "python", "/mnt/bytecode.py") })
	t.Run("record", func(t *testing.T) { silent(t, c, 0, nil, "python", "/mnt/record.py") })
	t.Run("imports", func(t *testing.T) { silent(t, c, 0, nil, "python", "-W", "ignore", "/mnt/imports.py") })
	t.Run("pip install", func(t *testing.T) { pipInstall(t, c) })
}

// pipInstall has a user's own wheel come and go, and everything else stay.
func pipInstall(t *testing.T, c *imagetest.Container) {
	before := tree(t, c.Root+"/opt/venv")
	install := []string{"pip", "install", "--no-index", "--root-user-action", "ignore", "/mnt/own_thing-1.0-py3-none-any.whl"}
	if r := c.Run(t, 0, nil, install...); r.Code != 0 || strings.Contains(r.Stdout+r.Stderr, "externally-managed") || r.Stderr != "" {
		t.Fatalf("pip install: exit code %d\n%s\n%s", r.Code, r.Stdout, r.Stderr)
	}
	prints(t, c, 1000, nil, "own thing", "own-thing")
	if r := c.Run(t, 0, nil, "pip", "uninstall", "--yes", "--root-user-action", "ignore", "own-thing"); r.Code != 0 {
		t.Fatalf("pip uninstall: exit code %d\n%s\n%s", r.Code, r.Stdout, r.Stderr)
	}
	// Distributions of the image can be replaced too.
	if r := c.Run(t, 0, nil, "pip", "uninstall", "--yes", "--root-user-action", "ignore", "tqdm"); r.Code != 0 {
		t.Fatalf("pip uninstall tqdm: exit code %d\n%s\n%s", r.Code, r.Stdout, r.Stderr)
	}
	left := tree(t, c.Root+"/opt/venv")
	for path := range left {
		if strings.Contains(path, "own_thing") || strings.Contains(path, "/tqdm") {
			t.Errorf("%s is left behind", path)
		}
		if !before[path] {
			t.Errorf("%s is new", path)
		}
	}
	for path := range before {
		if !left[path] && !strings.Contains(path, "tqdm") {
			t.Errorf("%s is gone", path)
		}
	}
}

func tree(t *testing.T, dir string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out[strings.TrimPrefix(path, dir)] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// privileged are the programs of the image that run with another's rights.
var privileged = []string{
	"usr/bin/chage", "usr/bin/chfn", "usr/bin/chsh", "usr/bin/expiry", "usr/bin/gpasswd", "usr/bin/mount",
	"usr/bin/newgrp", "usr/bin/passwd", "usr/bin/su", "usr/bin/umount", "usr/sbin/unix_chkpwd",
}

// Nothing but Debian's own programs is setuid, and no file has no owner.
func TestPrivileges(t *testing.T) {
	found := map[string]bool{}
	cellImage(t, cellA).EachFile(t, func(_ int, h *tar.Header, _ io.Reader) {
		mode := h.FileInfo().Mode()
		if h.Typeflag == tar.TypeReg && mode&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
			found[h.Name] = true
		}
		if h.Typeflag == tar.TypeReg && mode&0o002 != 0 {
			t.Errorf("%s may be written by everyone", h.Name)
		}
		if h.Uid > 999 || h.Gid > 999 {
			t.Errorf("%s belongs to %d:%d, who is nobody in the image", h.Name, h.Uid, h.Gid)
		}
	})
	var names []string
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	if !slices.Equal(names, privileged) {
		t.Errorf("setuid and setgid are %q, want %q", names, privileged)
	}
}
