package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/imgforge/imgforge/internal/compat"
	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/matrix"
	"github.com/imgforge/imgforge/internal/recipe"
)

// relock is the cure for everything a stale lock can lack.
const relock = "run `imgforge lock` to bring the lock up to date"

// ErrStale is wrapped by every error that a fresh lock would mend.
var ErrStale = errors.New("the lock is stale")

// fill joins a cell with its recipes and the lock's answers to its questions.
func (d *draft) fill(cell matrix.Cell, questions []asked, locked *lock.File) error {
	d.Plan = Plan{Platform: cell.Platform, Epoch: epochOf(cell, locked), Python: cell.Python}
	var stale diag.List
	picks := pickAll(cell, questions, locked, &stale)
	fresh(d.list.recipes, locked, &stale)
	sameTarball(cell, picks["base"], &stale)
	if err := stale.Err(); err != nil {
		return fmt.Errorf("%w:\n%w", ErrStale, err)
	}
	d.setBase(cell, picks["base"])
	d.Debs, d.Tools = picks["debs"], picks["tools"]
	d.Wheels = group(picks["wheels"])
	var bad diag.List
	conflicts(cell, picks["wheels"], &bad)
	twoCuDNN(cell, picks["wheels"], &bad)
	cuDNNOfDebs(cell, picks["debs"], picks["wheels"], &bad)
	vars := d.vars(cell)
	for _, rec := range d.list.recipes {
		if step := stepOf(rec, vars, &bad); len(step.Files)+len(step.Run) > 0 {
			d.Steps = append(d.Steps, step)
		}
	}
	overwrites(d.list.recipes, &bad)
	if err := bad.Err(); err != nil {
		return err
	}
	d.blobs = d.Blobs()
	d.lock = d.lockDigest(locked)
	d.created = time.Unix(d.Epoch, 0).UTC().Format(time.RFC3339)
	d.body = d.bodyDigest()
	return nil
}

// cuDNNOfDebs refuses .debs with a cuDNN beside the one that wheels bring, as
// twoCuDNN refuses a base's.
func cuDNNOfDebs(cell matrix.Cell, debs, wheels []Blob, bad *diag.List) {
	if !slices.ContainsFunc(wheels, func(b Blob) bool { return ofTorch(DistributionOf(b)) }) {
		return
	}
	for _, d := range debs {
		if name, _, _ := strings.Cut(d.Name, "_"); strings.HasPrefix(name, "libcudnn") || strings.HasPrefix(name, "nvidia-cudnn") {
			bad.Add(cell.Pos, "list it in no recipe; the wheels bring the cuDNN that torch was built with",
				"%s puts cuDNN into the system of cell %s, and its wheels bring another to /opt/venv/lib/python%s/site-packages", d.Name, cell.Tag, cell.Python)
		}
	}
}

// pickAll reads the lock's answers to a cell's requests.
func pickAll(cell matrix.Cell, questions []asked, locked *lock.File, stale *diag.List) map[string][]Blob {
	out := map[string][]Blob{}
	if locked.Epoch() == 0 {
		stale.Add(cell.Pos, relock, "the lock has no %s", lock.EpochKey)
	}
	for _, q := range questions {
		entries, ok, err := locked.Answer(q.set, q.request)
		switch {
		case err != nil:
			stale.Add(cell.Pos, relock, "%s", err)
		case !ok:
			stale.Add(cell.Pos, relock, "nothing is locked for its %s (%s)", q.request.Kind, q.set)
		}
		for _, e := range entries {
			out[q.request.Kind] = append(out[q.request.Kind], blobOf(e))
		}
	}
	return out
}

func blobOf(e lock.Entry) Blob {
	name := e.Key
	switch e.Kind {
	case lock.Deb:
		name = e.Value[strings.LastIndexByte(e.Value, '/')+1:]
	case lock.Rootfs:
		name = strings.TrimPrefix(e.Key, e.Value+"_")
	}
	return Blob{Name: name, Origin: e.Value, SHA256: strings.TrimPrefix(e.Hash, "sha256:"), Size: e.Size}
}

// conflicts refuses distributions that overwrite each other.
func conflicts(cell matrix.Cell, wheels []Blob, bad *diag.List) {
	names := make([]string, len(wheels))
	for i, w := range wheels {
		names[i] = DistributionOf(w)
	}
	for _, c := range compat.Conflicts(names) {
		bad.Add(cell.Pos, "keep one of the two", "%s", c)
	}
}

// DistributionOf is the normalized name of the distribution a wheel blob holds.
func DistributionOf(b Blob) string {
	_, requirement, _ := strings.Cut(b.Origin, ":")
	name, _, _ := strings.Cut(requirement, "==")
	return name
}

// fresh holds every recipe to the hash it was locked with.
func fresh(recipes []*recipe.Recipe, locked *lock.File, stale *diag.List) {
	for _, rec := range recipes {
		switch got := locked.RecipeHash(rec.Name); got {
		case rec.Hash:
		case "":
			stale.Add(rec.Pos, relock, "recipe %s is not in the lock", rec.Name)
		default:
			stale.Add(rec.Pos, relock, "recipe %s has changed since it was locked", rec.Name)
		}
	}
}

func stepOf(rec *recipe.Recipe, vars recipe.Vars, bad *diag.List) Step {
	step := Step{Recipe: rec.Name}
	for _, f := range rec.Files {
		step.Files = append(step.Files, File{Path: f.Path, Mode: uint32(f.Mode), Content: f.Content, Link: f.Link, Dir: f.Dir})
	}
	for _, r := range rec.Run {
		command, err := recipe.Expand(diag.Str{Pos: r.Pos, Value: r.Command}, vars)
		if err != nil {
			bad.AddErr(r.Pos, err)
			continue
		}
		step.Run = append(step.Run, Run{Name: r.Name, Command: command, Pos: r.Pos})
	}
	return step
}

// overwrites refuses two recipes that place something at one path, or below what
// the other makes no directory, unless both want the same directory.
func overwrites(recipes []*recipe.Recipe, bad *diag.List) {
	type placed struct {
		recipe string
		file   recipe.File
	}
	at := map[string]placed{}    // by path
	below := map[string]placed{} // by every directory above a path
	for _, rec := range recipes {
		for _, f := range rec.Files {
			same := func(other recipe.File) bool { return f.Dir && other.Dir && f.Mode == other.Mode }
			if was, ok := at[f.Path]; ok && !same(was.file) {
				bad.Add(f.Pos, "keep one of the two", "recipes %s and %s both place %s", was.recipe, rec.Name, f.Path)
			}
			if was, ok := below[f.Path]; ok && !f.Dir {
				bad.Add(f.Pos, "keep one of the two", "recipe %s makes %s no directory, but recipe %s places %s", rec.Name, f.Path, was.recipe, was.file.Path)
			}
			for dir := path.Dir(f.Path); dir != "/"; dir = path.Dir(dir) {
				if was, ok := at[dir]; ok && !was.file.Dir {
					bad.Add(f.Pos, "keep one of the two", "recipe %s makes %s no directory, but recipe %s places %s", was.recipe, dir, rec.Name, f.Path)
				}
				below[dir] = placed{rec.Name, f}
			}
			at[f.Path] = placed{rec.Name, f}
		}
	}
}

// Blobs lists every locked file the plan needs, once each, sorted by name. The
// list is not the caller's to change.
func (p *Plan) Blobs() []Blob {
	if p.blobs != nil {
		return p.blobs
	}
	byHash := map[string]Blob{}
	add := func(blobs []Blob) {
		for _, b := range blobs {
			byHash[b.SHA256] = b
		}
	}
	add(p.Base)
	if p.Rootfs != nil {
		add([]Blob{*p.Rootfs})
	}
	if p.Image != nil {
		add(p.Image.Parts)
	}
	add(p.Debs)
	add(p.Tools)
	for _, l := range p.Wheels {
		add(l.Wheels)
	}
	return slices.SortedFunc(maps.Values(byHash), func(a, b Blob) int {
		return strings.Compare(a.Name+a.SHA256, b.Name+b.SHA256)
	})
}

// Digest identifies the plan: "sha256:..." over its tag, its configuration without
// the label that holds this very digest, and a digest of all the rest, which many
// cells share.
func (p *Plan) Digest() string {
	if p.digest != "" {
		return p.digest
	}
	config := p.Config
	config.Labels = maps.Clone(p.Config.Labels)
	delete(config.Labels, planLabel)
	return digestOf(identity{p.Tag, p.bodyDigest(), config})
}

// identity is what a plan's digest is of.
type identity struct {
	Tag    string `json:"tag"`
	Body   string `json:"body"`
	Config Config `json:"config"`
}

func (p *Plan) bodyDigest() string {
	body := *p
	body.Tag, body.Config = "", Config{}
	return digestOf(body)
}

// digestOf is the sha256 of a value's canonical JSON: fields in the order of the
// struct, maps sorted.
func digestOf(v any) string {
	canonical, _ := json.Marshal(v) // of plain types alone
	sum := sha256.Sum256(canonical)
	return "sha256:" + hex.EncodeToString(sum[:])
}
