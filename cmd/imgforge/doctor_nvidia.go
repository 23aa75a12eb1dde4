package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/imgforge/imgforge/internal/compat"
	"github.com/imgforge/imgforge/internal/matrix"
	versions "github.com/imgforge/imgforge/internal/version"
)

var moduleLine = regexp.MustCompile(`NVRM version:.*?\s(\d+\.\d+(?:\.\d+)?)\s`)

// checkNVIDIA finds the driver and the GPUs, and which cells run here. A machine
// without builds all the same.
func checkNVIDIA(ctx context.Context, p *patient) []finding {
	var driver string
	if data, err := p.machine.read("/proc/driver/nvidia/version"); err == nil {
		if m := moduleLine.FindSubmatch(data); m != nil {
			driver = string(m[1])
		}
	}
	smi := p.machine.find("", "nvidia-smi")
	switch {
	case driver == "" && smi == "":
		return found(levelNote, "no NVIDIA driver: images are built here, and their GPU is not tried", "")
	case driver == "":
		return found(levelWarning, "nvidia-smi is here, and the driver's kernel module is not loaded", "load it (modprobe nvidia), or install the driver anew for this kernel")
	case smi == "":
		return found(levelWarning, "driver "+driver+" is loaded, and nvidia-smi is not on PATH", "install the driver's tools (nvidia-utils) of the same version")
	}
	out, err := p.machine.output(ctx, smi, "--query-gpu=name,driver_version", "--format=csv,noheader")
	if err != nil {
		return found(levelError, fmt.Sprintf("driver %s is loaded, and nvidia-smi fails: %v", driver, err), "reboot after a driver's update, or install it anew: module and tools must be of one version")
	}
	all := fine("driver %s", driver)
	seen := map[string]bool{}
	for line := range strings.Lines(out) {
		name, of, _ := strings.Cut(strings.TrimSpace(line), ", ")
		if name == "" || seen[name] {
			continue
		}
		seen[name] = true
		if of != driver {
			all = append(all, found(levelError, fmt.Sprintf("nvidia-smi speaks of driver %s, and %s is loaded", of, driver), "reboot")...)
		}
		all = append(all, cellsOn(p.cells, name, driver)...)
	}
	return all
}

// cellsOn says which cells a GPU with that driver runs, and why not the others.
func cellsOn(cells []matrix.Cell, name, driver string) []finding {
	host := compat.Host{}
	var err error
	if host.Driver, err = compat.ParseHostDriver(driver); err != nil {
		return found(levelWarning, err.Error(), "")
	}
	var out []finding
	if host.GPU, err = compat.FindGPU(name); err != nil {
		out = found(levelNote, name+" is not known here; its cells are judged by the driver alone", "")
	}
	runs := 0
	var not strings.Builder
	for _, c := range cells {
		if why := unfit(c, host, driver); why != "" {
			not.WriteString("\n" + c.Tag + " does not: " + why)
			continue
		}
		runs++
	}
	level, cure := levelOK, ""
	if runs == 0 && len(cells) > 0 {
		level, cure = levelWarning, "use a newer driver, or cells with an older CUDA: `imgforge compat` tells which"
	}
	return append(out, found(level, fmt.Sprintf("%s with driver %s runs %d of %d cells%s", name, driver, runs, len(cells), not.String()), cure)...)
}

// unfit is why a cell does not run on a host; empty when it does.
func unfit(c matrix.Cell, host compat.Host, driver string) string {
	have, err := versions.ParseDriver(driver)
	if floor, ferr := versions.ParseDriver(c.Driver); err == nil && ferr == nil && have.Compare(floor) < 0 {
		return "its floor is driver " + c.Driver
	}
	for _, j := range compat.Fit(compat.Subject{CUDA: c.CUDA, Torch: c.Torch, Python: c.Python, Platform: c.Platform}, host) {
		if j.Level == compat.Error {
			return j.What
		}
	}
	return ""
}
