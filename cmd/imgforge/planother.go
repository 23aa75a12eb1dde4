package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/report"
)

// githubMost is how many jobs GitHub Actions makes of one matrix.
const githubMost = 256

// showGitHub prints a matrix of GitHub Actions on one line: an entry a cell, with
// its axes, and in "only" what selects the cell.
func (a *app) showGitHub(p *planned) error {
	include := []map[string]string{}
	for i, c := range p.cells {
		if c.Err != nil {
			continue
		}
		cell := p.asked[i]
		entry := maps.Clone(cell.Free)
		if entry == nil {
			entry = map[string]string{}
		}
		maps.Copy(entry, map[string]string{
			"matrix": p.of[i].matrix.File, "tag": cell.Tag, "only": "tag=" + cell.Tag, "cuda": cell.CUDA, "torch": cell.Torch, "python": cell.Python,
			"driver": cell.Driver, "base": cell.BaseName, "platform": cell.Platform, "plan": c.Plan.Digest(),
		})
		include = append(include, entry)
	}
	if len(include) > githubMost {
		fmt.Fprintf(a.stderr, "warning: GitHub Actions runs at most %d jobs of one matrix, and this one has %d; split it with --only\n", githubMost, len(include))
	}
	return json.NewEncoder(a.stdout).Encode(map[string]any{"include": include})
}

// drawn is a layer of the picture.
type drawn struct {
	id, name string
	bytes    int64
	cells    int
}

// showDot prints cells and the layers they are made of, for graphviz. Equal layers
// are one node.
func (a *app) showDot(p *planned) error {
	nodes, at := []*drawn{}, map[string]*drawn{}
	var edges, boxes strings.Builder
	for _, c := range p.cells {
		if c.Err != nil {
			continue
		}
		fmt.Fprintf(&boxes, "  %s [label=%s, shape=box, style=bold];\n", quoted("cell "+c.Tag), quoted(c.Tag))
		for _, l := range layersOf(c.Plan) {
			if at[l.id] == nil {
				at[l.id] = &l
				nodes = append(nodes, &l)
			}
			at[l.id].cells++
			fmt.Fprintf(&edges, "  %s -> %s;\n", quoted("cell "+c.Tag), quoted(l.id))
		}
	}
	var names []string
	for _, in := range p.all {
		names = append(names, in.matrix.Name.Value)
	}
	fmt.Fprintf(a.stdout, "digraph %s {\n  rankdir=LR;\n  node [shape=box, style=rounded];\n%s", quoted(strings.Join(names, ", ")), boxes.String())
	for _, l := range nodes {
		text := l.name
		if l.bytes > 0 {
			text += "\n" + report.Bytes(l.bytes)
		}
		if l.cells > 1 {
			text += "\n" + strconv.Itoa(l.cells) + " cells"
		}
		fmt.Fprintf(a.stdout, "  %s [label=%s];\n", quoted(l.id), quoted(text))
	}
	_, err := fmt.Fprintf(a.stdout, "%s}\n", edges.String())
	return err
}

// layersOf lists the layers of a plan, each named by what it is made of. A wheel's
// layer depends on the Python and the wheel alone; those of .debs on the base, and
// that of the recipes on all below it.
func layersOf(p *plan.Plan) []drawn {
	var out []drawn
	add := func(name string, blobs []plan.Blob, of any) string {
		l := drawn{name: name, id: name + " " + hashOf(of)}
		for _, b := range blobs {
			l.bytes += b.Size
		}
		out = append(out, l)
		return l.id
	}
	base := p.Base
	switch {
	case p.Image != nil:
		base = p.Image.Parts
	case p.Rootfs != nil:
		base = []plan.Blob{*p.Rootfs}
	}
	below := []string{add("base", base, []any{base, p.Epoch, p.Platform})}
	if len(p.Debs) > 0 {
		below = append(below, add("debs", p.Debs, []any{below, p.Debs}))
	}
	for _, l := range p.Wheels {
		below = append(below, add(l.Name, l.Wheels, []any{l.Wheels, p.Python, p.Epoch, p.Platform}))
	}
	if len(p.Steps) > 0 {
		add("recipes", nil, []any{below, p.Steps})
	}
	return out
}

func hashOf(v any) string {
	data, _ := json.Marshal(v) // of plain types
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:6])
}

// quoted is a string of graphviz: it knows no escapes but of the quote, and \n.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}
