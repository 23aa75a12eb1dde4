package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Result is everything one run measured.
type Result struct {
	Machine Machine  `json:"machine"`
	Wheels  *Wheels  `json:"wheels,omitempty"`
	Rebuild *Rebuild `json:"rebuild,omitempty"`
	Plan    []Plan   `json:"plan,omitempty"`
}

// Machine is what kind of machine that was; nothing in it names one.
type Machine struct {
	Cores  int    `json:"cores"`
	Memory uint64 `json:"memory"` // bytes
	CPU    string `json:"cpu"`
	Disk   string `json:"disk"` // rotating, solid state or virtual, and its file system
}

// Wheels are the seconds each contender took, round by round.
type Wheels struct {
	Names    []string             `json:"names"`
	Packed   int64                `json:"packed"`   // bytes of the wheels
	Unpacked int64                `json:"unpacked"` // bytes of the files in them
	Seconds  map[string][]float64 `json:"seconds"`  // by contender
	CPU      map[string][]float64 `json:"cpu"`      // processor seconds, by contender
}

// ratios are a's times over b's, pair by pair.
func ratios(seconds map[string][]float64, a, b string) []float64 {
	out := make([]float64, min(len(seconds[a]), len(seconds[b])))
	for i := range out {
		out[i] = seconds[a][i] / seconds[b][i]
	}
	return out
}

// spread is "median (least to most)".
func spread(values []float64, format string) string {
	s := slices.Sorted(slices.Values(values))
	if len(s) == 0 {
		return "-"
	}
	return fmt.Sprintf(format+" ("+format+" to "+format+")", s[len(s)/2], s[0], s[len(s)-1])
}

func describeMachine(dir string) Machine {
	m := Machine{Cores: runtime.NumCPU(), CPU: "unknown", Disk: "unknown"}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		m.Memory = info.Totalram * uint64(info.Unit)
	}
	data, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			m.CPU = strings.TrimSpace(value)
			break
		}
	}
	m.Disk = diskOf(dir)
	return m
}

// diskOf is the kind of disk below a directory.
func diskOf(dir string) string {
	var st unix.Stat_t
	for unix.Stat(dir, &st) != nil && dir != "/" {
		dir = filepath.Dir(dir)
	}
	dev := fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
	link, _ := os.Readlink(dev)
	rotating, err := os.ReadFile(dev + "/queue/rotational")
	if err != nil {
		rotating, _ = os.ReadFile(dev + "/../queue/rotational") // a partition
	}
	switch {
	case strings.Contains(link, "/virtio"):
		return "virtual"
	case bytes.HasPrefix(rotating, []byte("1")):
		return "rotating"
	case bytes.HasPrefix(rotating, []byte("0")):
		return "solid state"
	}
	return "unknown"
}
