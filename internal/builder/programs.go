package builder

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

// findPrograms looks up buildkitd and runc and refuses what cannot work.
func findPrograms(p Paths) (buildkitd, runc string, err error) {
	if buildkitd = Find(p.Buildkitd, "buildkitd"); buildkitd == "" {
		return "", "", fmt.Errorf("%w: buildkitd is neither beside imgforge nor on PATH; `make build` makes both, %s", ErrNoEngine, elsewhere)
	}
	if runc = Find(p.Runc, "runc"); runc == "" {
		return "", "", fmt.Errorf("%w: runc is neither beside imgforge nor on PATH; install it (apt-get install runc), %s", ErrNoEngine, elsewhere)
	}
	out, err := exec.Command(runc, "--version").Output()
	if err != nil {
		return "", "", fmt.Errorf("%w: %s --version: %w", ErrNoEngine, runc, err)
	}
	return buildkitd, runc, CheckRuntime(runc, string(out))
}

var (
	runcVersion = regexp.MustCompile(`runc version (\d+)\.(\d+)\.(\d+)`)
	crunVersion = regexp.MustCompile(`crun version (\d+)\.(\d+)`)
)

// CheckRuntime takes what a runtime's --version prints. It refuses a runc before 1.1.5 and a crun before 1.9, which lacks
// the --keep that BuildKit runs it with.
func CheckRuntime(path, banner string) error {
	if v := runcVersion.FindStringSubmatch(banner); v != nil {
		if number(v[1:]) < number([]string{"1", "1", "5"}) {
			return fmt.Errorf("%w: %s is runc %s; 1.1.5 or newer is needed", ErrNoEngine, path, strings.Join(v[1:], "."))
		}
		return nil
	}
	if v := crunVersion.FindStringSubmatch(banner); v != nil {
		if number(v[1:]) < number([]string{"1", "9"}) {
			return fmt.Errorf("%w: %s is crun %s, which lacks `run --keep`; install runc, or crun 1.9 or newer", ErrNoEngine, path, strings.Join(v[1:], "."))
		}
		return nil
	}
	first, _, _ := strings.Cut(banner, "\n")
	return fmt.Errorf("%w: %s is neither runc nor crun: %q", ErrNoEngine, path, first)
}

func number(parts []string) int {
	n := 0
	for _, p := range parts {
		v, _ := strconv.Atoi(p)
		n = n*1000 + v
	}
	return n
}

// Find returns given, else name beside this program, else name on PATH.
func Find(given, name string) string {
	if given != "" {
		return given
	}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), name)
		if info, err := os.Stat(beside); err == nil && info.Mode()&0o111 != 0 {
			return beside
		}
	}
	path, _ := exec.LookPath(name)
	return path
}

// TryOverlay mounts an overlayfs below dir, as the engine will, and unmounts it.
func TryOverlay(dir string) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(dir, "overlay-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	at := map[string]string{}
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		at[name] = filepath.Join(tmp, name)
		if err := os.Mkdir(at[name], 0o700); err != nil {
			return err
		}
	}
	options := "lowerdir=" + at["lower"] + ",upperdir=" + at["upper"] + ",workdir=" + at["work"]
	if err := syscall.Mount("overlay", at["merged"], "overlay", 0, options); err != nil {
		return err
	}
	return syscall.Unmount(at["merged"], 0)
}
