package compat

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/imgforge/imgforge/internal/version"
)

// Subject is an image to judge. An empty field is not judged.
type Subject struct {
	CUDA     string
	Torch    string
	Python   string
	Driver   string // the floor: 525.60.13, or >=525.60.13
	Suite    string // bookworm
	Platform string // linux/arm64
}

// The levels of a judgement. An error refuses the image.
const (
	Error   = "error"
	Warning = "warning"
	Note    = "note"
)

// Judgement is something that is known about an image.
type Judgement struct {
	Level  string `json:"level"`          // Error, Warning or Note
	What   string `json:"what"`           // one clause
	Why    string `json:"why"`            // the reason, and what is allowed
	Cure   string `json:"cure,omitempty"` // what to do; may be empty in a note
	Source string `json:"source,omitempty"`
	Field  string `json:"field"` // which field of the subject is at fault: torch, python, driver or platform
}

// String is what, why and what to do, without the level.
func (j Judgement) String() string { return j.What + ": " + j.Help() }

// Help is why and what to do.
func (j Judgement) Help() string {
	if j.Cure == "" {
		return j.Why
	}
	return j.Why + "; " + j.Cure
}

// rule is a row of rules.csv.
type rule struct {
	Judgement
	torches, cuda, python, driverBelow string
}

func (r *row) rule() rule {
	return rule{
		Judgement: Judgement{
			Level: r.oneOf("level", Error, Warning, Note), What: r.get("what"), Why: r.get("why"), Cure: r.get("cure"), Source: r.get("source"),
		},
		torches: r.torches("torch"), cuda: r.cuda("cuda"), python: r.opt("python"), driverBelow: r.driver("driver_below"),
	}
}

// Judge says everything that is known to be wrong or worth knowing about s:
// errors first, then warnings, then notes, always in the same order.
func Judge(s Subject) []Judgement {
	out := slices.Concat(about("torch", judgeBuild(s)), about("platform", judgePlatform(s)), about("python", judgeSuite(s)), about("driver", judgeDriver(s)),
		about("torch", judgeRules(s)), about("torch", judgeGPUs(s)))
	return byLevel(out)
}

// levels is all levels, the gravest first.
var levels = []string{Error, Warning, Note}

func byLevel(js []Judgement) []Judgement {
	slices.SortStableFunc(js, func(a, b Judgement) int {
		return slices.Index(levels, a.Level) - slices.Index(levels, b.Level)
	})
	return js
}

// about marks the field that judgements concern.
func about(field string, js []Judgement) []Judgement {
	for i := range js {
		js[i].Field = field
	}
	return js
}

// judgeBuild: the torch exists for the CUDA, and has a wheel for the Python.
func judgeBuild(s Subject) []Judgement {
	if s.Torch == "" || s.CUDA == "" {
		return nil
	}
	found, err := Lookup(s.Torch, s.CUDA)
	var none *missing
	if errors.As(err, &none) {
		return []Judgement{none.judgement()}
	}
	if err != nil {
		return []Judgement{{Level: Error, What: "the tables cannot be read", Why: err.Error(), Source: dir + "data"}}
	}
	return judgePython(s, found)
}

// judgePlatform: the build has wheels for the platform. builds.csv speaks of
// linux/amd64; other platforms are in archs.csv.
func judgePlatform(s Subject) []Judgement {
	_, known := archOf(s.Torch, s.CUDA, s.Platform)
	if _, err := Lookup(s.Torch, s.CUDA); known || err != nil || s.Platform == "" || s.Platform == AMD64 {
		return nil
	}
	return []Judgement{{Level: Error, What: fmt.Sprintf("torch %s for CUDA %s has no wheel for %s", s.Torch, s.CUDA, s.Platform),
		Why: "with one: " + buildsOn(s.Platform), Cure: "take one of these; to add one, extend " + dir + "data/archs.csv", Source: dir + "data/archs.csv"}}
}

// buildsOn lists the builds that have wheels for a platform.
func buildsOn(platform string) string {
	var out []string
	for _, cuda := range CUDAs() {
		torches := slices.DeleteFunc(torchesFor(cuda), func(torch string) bool {
			_, ok := archOf(torch, cuda, platform)
			return !ok
		})
		if len(torches) > 0 {
			out = append(out, fmt.Sprintf("torch %s for CUDA %s", strings.Join(torches, ", "), cuda))
		}
	}
	if out == nil {
		return "none"
	}
	return strings.Join(out, "; ")
}

// judgePython: the build has a wheel for the Python.
func judgePython(s Subject, found Torch) []Judgement {
	rel, _ := known().release(s.Torch)
	switch {
	case s.Python == "":
		return nil
	case !slices.Contains(found.Pythons, s.Python):
		return []Judgement{{Level: Error, What: fmt.Sprintf("torch %s has no wheel for Python %s", s.Torch, s.Python),
			Why: "it has wheels for Python " + strings.Join(found.Pythons, ", "), Cure: "take one of these, or another torch", Source: rel.source}}
	case rel.experimental == s.Python:
		return []Judgement{{Level: Warning, What: fmt.Sprintf("Python %s is experimental for torch %s", s.Python, s.Torch),
			Why: "wheels exist but upstream does not stand behind them", Cure: "take an older Python, or a newer torch", Source: rel.source}}
	}
	return nil
}

// judgeSuite: the suite is known and its Python is the one asked for.
func judgeSuite(s Subject) []Judgement {
	if s.Suite == "" {
		return nil
	}
	d, ok := DistributionOf(s.Suite)
	if !ok {
		return []Judgement{{Level: Error, What: fmt.Sprintf("the suite %s is not known", s.Suite), Why: "known: " + strings.Join(Suites(), ", "),
			Cure: fmt.Sprintf("to add one, extend %sdata/distributions.csv", dir), Source: dir + "data/distributions.csv"}}
	}
	if s.Python != "" && s.Python != d.Python {
		return []Judgement{{Level: Error, What: fmt.Sprintf("%s has Python %s, not %s", d.Suite, d.Python, s.Python),
			Why: "the image takes the Python of its suite", Cure: fmt.Sprintf("write %s, or another suite", d.Python), Source: d.source}}
	}
	return nil
}

// judgeDriver: the driver floor is one that the CUDA runs on.
func judgeDriver(s Subject) []Judgement {
	if s.Driver == "" {
		return nil
	}
	driver, err := version.ParseFloor(s.Driver)
	if err != nil {
		return []Judgement{{Level: Error, What: "the driver floor cannot be read", Why: err.Error(), Cure: `write the oldest driver, such as ">=525.60.13"`}}
	}
	f, ok := FloorOf(s.CUDA)
	if !ok {
		return nil
	}
	strict := "the driver it shipped with is of branch " + f.Branch
	if f.Strict != "" {
		strict = "the driver it shipped with, the strict floor, is " + f.Strict
	}
	some, all := HostDriver{s.Driver, driver}.Runs(f)
	if !some {
		return []Judgement{{Level: Error, What: fmt.Sprintf("driver floor %s is older than CUDA %s allows", driver, s.CUDA),
			Why: fmt.Sprintf("the oldest driver that runs it, the compat floor, is %s; %s", f.Compat, strict), Cure: "raise the floor, or take an older CUDA", Source: f.source}}
	}
	if all {
		return nil
	}
	cure := "raise the floor to have all of it"
	return []Judgement{
		{Level: Warning, What: fmt.Sprintf("driver floor %s runs CUDA %s by minor-version compatibility", driver, s.CUDA),
			Why: strict + "; on older ones compiled GPU code runs, but what needs the newer driver is missing", Cure: cure, Source: f.source},
		{Level: Note, What: fmt.Sprintf("PTX of CUDA %s does not compile on drivers as old as %s", s.CUDA, driver),
			Why: strict + "; kernels without machine code for the device fail there (unsupported PTX version)", Cure: cure, Source: f.source},
	}
}

// judgeRules: what the table of rules says.
func judgeRules(s Subject) []Judgement {
	driver, _ := version.ParseFloor(s.Driver) // a malformed one is reported by judgeDriver
	return rulesFor(s, driver)
}

func rulesFor(s Subject, driver version.Driver) []Judgement {
	var out []Judgement
	for _, r := range known().rules {
		old := r.driverBelow == "" || driver.Major() > 0 && older(driver, r.driverBelow)
		if applies(s.Torch, r.torches) && same(r.cuda, s.CUDA) && same(r.python, s.Python) && old {
			out = append(out, r.Judgement)
		}
	}
	return out
}

// judgeGPUs: which devices the wheel serves that the driver floor does not.
func judgeGPUs(s Subject) []Judgement {
	driver, err := version.ParseFloor(s.Driver)
	if err != nil {
		return nil
	}
	archs := Archs(s.Torch, s.CUDA)
	var names []string
	source := ""
	for _, g := range known().gpus {
		name := fmt.Sprintf("%s (%s)", g.Series, g.From())
		if g.Platform == AMD64 && runs(archs, g.Capability) && older(driver, g.From()) && !slices.Contains(names, name) {
			names = append(names, name)
			source = g.Source
		}
	}
	if names == nil {
		return nil
	}
	return []Judgement{{Level: Note, What: fmt.Sprintf("some GPUs need a driver newer than %s whatever the image", driver),
		Why: "the first that runs them: " + strings.Join(names, ", "), Source: source}}
}

// older tells whether driver is older than a version of the tables.
func older(driver version.Driver, than string) bool {
	d, err := version.ParseDriver(than)
	return err == nil && driver.Compare(d) < 0
}
