package compat

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Wheel is a wheel that only the PyTorch index and its mirrors hold, so that no
// Python index can be asked about it.
type Wheel struct {
	File     string
	SHA256   string   // hex
	Size     int64    // bytes; 0 when not known
	Requires []string // Requires-Dist with markers, sorted, for the solver
	Source   string   // how many public sources agree on the hash, and which
}

var wheelFile = regexp.MustCompile(`^torch(vision|audio)?-[0-9.]+\+cu\d+-cp\d+-cp\d+-(linux|manylinux_2_28)_x86_64\.whl$`)

var sha256Hex = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (r *row) wheel() Wheel {
	w := Wheel{File: r.get("file"), SHA256: r.get("sha256")}
	if !wheelFile.MatchString(w.File) {
		r.bad.Add(r.pos, "", "%q is not the file name of a wheel of the PyTorch index", w.File)
	}
	if !sha256Hex.MatchString(w.SHA256) {
		r.bad.Add(r.pos, "write 64 hexadecimal digits", "%q is not a sha256", w.SHA256)
	}
	size, err := strconv.ParseInt(r.get("size"), 10, 64)
	if err != nil || size < 0 {
		r.bad.Add(r.pos, "write bytes, or 0 when not known", "%q is not a size", r.opt("size"))
	}
	w.Size = size
	agree, err := strconv.Atoi(r.get("agree"))
	if err != nil || agree < 1 {
		r.bad.Add(r.pos, "write how many sources agree", "%q is not a count", r.opt("agree"))
	}
	noun := "sources"
	if agree == 1 {
		noun = "source"
	}
	w.Source = fmt.Sprintf("%d public %s: %s", agree, noun, r.get("source"))
	return w
}

// requires is a row of requires.csv.
type requires struct {
	torches     []string
	cuda        string
	requirement string
}

func (r *row) requires() requires {
	return requires{torches: r.list("torch"), cuda: r.cuda("cuda"), requirement: r.get("requirement")}
}

// IndexWheel finds the torch wheel that only the PyTorch index holds for that
// torch, CUDA and Python; false when the tables lack its hash or what it
// requires, since either alone would lock a wrong environment.
func IndexWheel(torch, cuda, python string) (Wheel, bool) {
	t := known()
	tag := "cp" + strings.ReplaceAll(python, ".", "")
	file := fmt.Sprintf("torch-%s+%s-%s-%[3]s-", torch, local(cuda), tag) // its platform's tag changed with 2.6
	i := slices.IndexFunc(t.wheels, func(w Wheel) bool { return strings.HasPrefix(w.File, file) })
	if i < 0 {
		return Wheel{}, false
	}
	w := t.wheels[i]
	for _, r := range t.requires {
		if r.cuda == cuda && slices.Contains(r.torches, torch) {
			w.Requires = append(w.Requires, r.requirement)
		}
	}
	slices.Sort(w.Requires)
	return w, len(w.Requires) > 0
}
