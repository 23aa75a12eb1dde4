package resolve

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/plan"
)

// The tools are pinned here, so that what resolves and installs wheels changes
// only with imgforge itself. To move one, put its new wheel's name, sha256 and
// size into the table.
//
//go:embed data/tools.csv
var toolTable string

// tool is a wheel that works on wheels.
type tool struct {
	use                 string // "install": in the build; "resolve": when locking
	name, version, file string
	sha256              string
	size                int64
	arch                string // Debian architecture, or "all"
	python              string // 3.11, or "any"; one for some Pythons only is a help that can be missing
}

// tools lists what serves a use on an architecture, for a Python.
func tools(use, arch, python string) ([]tool, error) {
	rows, err := csv.NewReader(strings.NewReader(toolTable)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("embedded tools.csv: %w", err)
	}
	var out []tool
	served := map[string]bool{}
	for _, row := range rows[1:] {
		size, err := strconv.ParseInt(row[5], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("embedded tools.csv: %s: %w", row[3], err)
		}
		t := tool{use: row[0], name: row[1], version: row[2], file: row[3], sha256: row[4], size: size, arch: row[6], python: row[7]}
		if t.use != use || t.python != "any" && t.python != python {
			continue
		}
		fits := t.arch == arch || t.arch == "all"
		served[t.name] = served[t.name] || fits
		if fits {
			out = append(out, t)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(served)) {
		if !served[name] {
			return nil, fmt.Errorf("imgforge has no %s for %s, which it needs to %s wheels", name, arch, use)
		}
	}
	return out, nil
}

func (t tool) origin() string { return pypi + ":" + t.name + "==" + t.version }

func (t tool) entry() lock.Entry {
	return lock.Entry{Kind: lock.Wheel, Key: t.file, Value: t.origin(), Size: t.size, Hash: "sha256:" + t.sha256}
}

func (t tool) blob() plan.Blob {
	return plan.Blob{Name: t.file, Origin: t.origin(), SHA256: t.sha256, Size: t.size}
}

// tools answers a tools need: nothing is to be solved.
func (s *session) tools(n lock.Need) {
	pinned, err := tools("install", n.Request.Arch, n.Request.Python)
	if err != nil {
		s.fail(n, "", err)
		return
	}
	var entries []lock.Entry
	for _, t := range pinned {
		entries = append(entries, t.entry())
	}
	s.answer(n, entries)
}
