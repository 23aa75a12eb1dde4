package compat

import (
	"fmt"
	"slices"
	"strings"

	"github.com/imgforge/imgforge/internal/version"
)

// Floor is what a CUDA release asks of the driver; versions are bare, and empty
// where the release notes give none.
type Floor struct {
	Compat  string `json:"compat"`            // oldest driver that runs it at all
	Strict  string `json:"strict,omitempty"`  // driver of its first release: below it, no PTX of that toolkit compiles
	Shipped string `json:"shipped,omitempty"` // driver of its newest update
	Branch  string `json:"branch"`            // driver branch of the toolkit: R530
	CUDA    string `json:"-"`
	source  string
}

func (r *row) floor() Floor {
	return Floor{
		CUDA: r.cuda("cuda"), Compat: r.driver("compat"), Strict: r.driver("strict"),
		Shipped: r.driver("shipped"), Branch: r.get("branch"), source: r.get("source"),
	}
}

// FloorOf is what cuda ("12.1") asks of the driver; false when it is not known.
func FloorOf(cuda string) (Floor, bool) {
	for _, f := range known().floors {
		if f.CUDA == cuda {
			return f, true
		}
	}
	return Floor{}, false
}

// Floors lists what every CUDA release asks of the driver, oldest CUDA first;
// some of them have no torch.
func Floors() []Floor { return slices.Clone(known().floors) }

// all is the driver that has all of the CUDA, as far as it is known.
func (f Floor) all() string {
	if f.Strict != "" {
		return f.Strict
	}
	return "of branch " + f.Branch
}

// toolkit is a row of updates.csv.
type toolkit struct{ update, driver string }

func (r *row) toolkit() toolkit { return toolkit{r.updateOf("update"), r.driver("driver")} }

// Updates lists the updates of a CUDA release, oldest first: 12.1.0, 12.1.1.
func Updates(cuda string) []string {
	var out []string
	for _, u := range known().updates {
		if strings.HasPrefix(u.update, cuda+".") {
			out = append(out, u.update)
		}
	}
	return out
}

// BaseImage is a CUDA update that nvidia/cuda has development images of.
type BaseImage struct {
	Update  string // 12.1.1
	CuDNN   string // major version inside
	Ubuntus []string
}

func (r *row) baseImage() BaseImage {
	return BaseImage{Update: r.updateOf("update"), CuDNN: r.get("cudnn"), Ubuntus: r.list("ubuntus")}
}

// BaseImages lists the nvidia/cuda images of a CUDA release, oldest first.
func BaseImages(cuda string) []BaseImage {
	var out []BaseImage
	for _, i := range known().images {
		if strings.HasPrefix(i.Update, cuda+".") {
			i.Ubuntus = slices.Clone(i.Ubuntus)
			out = append(out, i)
		}
	}
	return out
}

// Branch is a driver branch.
type Branch struct {
	Name string   `json:"branch"`         // R535
	Kind string   `json:"kind,omitempty"` // long-term support, production or new feature; empty when not known
	End  string   `json:"end,omitempty"`  // month that its support ends, ended where only that is known; empty when not known
	CUDA []string `json:"cuda,omitempty"` // the CUDA releases whose toolkit shipped with it, oldest first
}

func (r *row) branch() Branch {
	r.get("source")
	return Branch{Name: r.get("branch"), Kind: r.opt("kind"), End: r.get("end")}
}

// BranchOf is what is known of a branch, by its number: 535.
func BranchOf(major int) Branch {
	name := fmt.Sprintf("R%d", major)
	out := Branch{Name: name}
	for _, b := range known().branches {
		if b.Name == name {
			out = b
		}
	}
	for _, f := range known().floors {
		if f.Branch == name {
			out.CUDA = append(out.CUDA, f.CUDA)
		}
	}
	return out
}

// Branches lists the driver branches that a table speaks of, oldest first.
func Branches() []Branch {
	var majors []int
	add := func(name string) {
		if d, err := version.ParseDriver(strings.TrimPrefix(name, "R")); err == nil {
			majors = append(majors, d.Major())
		}
	}
	for _, f := range known().floors {
		add(f.Branch)
	}
	for _, b := range known().branches {
		add(b.Name)
	}
	slices.Sort(majors)
	var out []Branch
	for _, m := range slices.Compact(majors) {
		out = append(out, BranchOf(m))
	}
	return out
}

// HostDriver is the driver that a machine has. The zero HostDriver is not known.
type HostDriver struct {
	text string
	at   version.Driver
}

// ParseHostDriver reads a driver version as nvidia-smi prints it (535.104.05), or
// a branch (535, R535, 535.x), which stands for the newest driver of it. The
// error says what is allowed.
func ParseHostDriver(s string) (HostDriver, error) {
	text := strings.TrimSuffix(strings.TrimPrefix(s, "R"), ".x")
	d, err := version.ParseDriver(text)
	if err != nil {
		return HostDriver{}, fmt.Errorf("%q is no driver: write its version, such as 535.104.05, or its branch, such as 535 or R535", s)
	}
	if !strings.Contains(text, ".") {
		d, err = version.ParseDriver(text + ".99999")
	}
	return HostDriver{text: text, at: d}, err
}

// Known tells whether there is a driver at all.
func (d HostDriver) Known() bool { return d.text != "" }

// String is the version, or the number of the branch.
func (d HostDriver) String() string { return d.text }

// Major is the number of the driver's branch.
func (d HostDriver) Major() int { return d.at.Major() }

// Runs tells whether the driver runs that CUDA at all, and whether it has all of it.
func (d HostDriver) Runs(f Floor) (some, all bool) {
	some = !older(d.at, f.Compat)
	if f.Strict == "" {
		return some, some && d.Major() >= branchMajor(f.Branch)
	}
	return some, some && !older(d.at, f.Strict)
}

func branchMajor(branch string) int {
	d, _ := version.ParseDriver(strings.TrimPrefix(branch, "R"))
	return d.Major()
}
