package builder

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// sweep ends what steps of an engine in dir still run. An engine that is killed
// cannot end its containers, and they are no children of ours; but each sees its
// root file system mounted from dir, in a mount namespace that is not ours.
func sweep(dir string) {
	root := []byte(filepath.Join(dir, "root") + "/")
	own, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return
	}
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range processes {
		space, err := os.Readlink(filepath.Join(proc, "ns", "mnt"))
		if err != nil || space == own {
			continue
		}
		mounts, err := os.ReadFile(filepath.Join(proc, "mountinfo"))
		first, _, _ := bytes.Cut(mounts, []byte("\n"))
		if err != nil || !bytes.Contains(first, root) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(proc)); err == nil && pid > 1 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
