package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"runtime"
	"strings"
	"sync"

	"github.com/imgforge/imgforge/internal/compat"
	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/matrix"
	"github.com/imgforge/imgforge/internal/recipe"
)

// Made is a cell's plan, or why it has none.
type Made struct {
	Plan *Plan
	Err  error
}

// Make joins one cell with its recipes and the lock. What the lock lacks is an
// error that names it and wraps ErrStale; nothing is looked up elsewhere.
func Make(cell matrix.Cell, set *recipe.Set, locked *lock.File) (*Plan, error) {
	made := All([]matrix.Cell{cell}, set, locked)[0]
	return made.Plan, made.Err
}

// All makes a plan of every cell, in their order. What cells share is worked out
// once and shared by their plans, which nobody may change.
func All(cells []matrix.Cell, set *recipe.Set, locked *lock.File) []Made {
	p := newPlanner(set, locked)
	out := make([]Made, len(cells))
	drafts := make([]*draft, len(cells))
	for i, cell := range cells {
		drafts[i], out[i].Err = p.draft(cell)
	}
	var all sync.WaitGroup
	chunk := len(cells)/runtime.GOMAXPROCS(0) + 1
	for first := 0; first < len(cells); first += chunk {
		all.Go(func() {
			for i := first; i < min(first+chunk, len(cells)); i++ {
				if out[i].Err == nil {
					out[i].Plan, out[i].Err = drafts[i].finish(cells[i])
				}
			}
		})
	}
	all.Wait()
	return out
}

// planner remembers what cells share.
type planner struct {
	set    *recipe.Set
	locked *lock.File
	lists  map[string]*list
	asked  map[key][]asked
	drafts map[key]*draft
}

func newPlanner(set *recipe.Set, locked *lock.File) *planner {
	return &planner{set: set, locked: locked, lists: map[string]*list{}, asked: map[key][]asked{}, drafts: map[key]*draft{}}
}

// list is a list of recipes that some cells have.
type list struct {
	recipes []*recipe.Recipe
	names   []string // what the templates of their packages and commands name
}

// key is everything of a cell that its packages and steps depend on.
type key struct {
	list                       *list
	base                       matrix.Base
	baseName, platform         string
	cuda, torch, python, named string
}

// asked is a question to the lock under its name.
type asked struct {
	set     string
	request lock.Request
}

// draft is a plan without tag and configuration, which many cells share.
type draft struct {
	Plan
	recipes []*recipe.Recipe
	build   recipe.Vars // what templates may name beyond the cell's own values
	archs   string
	json    []byte // the draft's canonical JSON between tag and configuration
	lock    string
}

func (p *planner) keyOf(cell matrix.Cell) (key, error) {
	var names strings.Builder
	for _, name := range cell.Recipes {
		names.WriteString(name.Value + " ")
	}
	l := p.lists[names.String()]
	if l == nil {
		recipes, err := recipesOf(cell, p.set)
		if err != nil {
			return key{}, err
		}
		l = &list{recipes: recipes}
		for _, rec := range recipes {
			l.names = append(l.names, rec.Names()...)
		}
		l.names = sortedSet(l.names)
		p.lists[names.String()] = l
	}
	var named strings.Builder
	for _, name := range l.names {
		value, _ := cell.Var(name)
		named.WriteString(value + "\x00")
	}
	return key{l, cell.Base, cell.BaseName, cell.Platform, cell.CUDA, cell.Torch, cell.Python, named.String()}, nil
}

// ask lists a cell's questions to the lock.
func (p *planner) ask(cell matrix.Cell) ([]asked, error) {
	k, err := p.keyOf(cell)
	if err != nil {
		return nil, err
	}
	if got, ok := p.asked[k]; ok {
		return got, nil
	}
	r, err := requestsFor(cell, k.list.recipes)
	if err != nil {
		return nil, err
	}
	var out []asked
	for _, request := range r.asked() {
		out = append(out, asked{request.Set(), request})
	}
	p.asked[k] = out
	return out, nil
}

func (p *planner) draft(cell matrix.Cell) (*draft, error) {
	k, err := p.keyOf(cell)
	if err != nil {
		return nil, err
	}
	if d, ok := p.drafts[k]; ok {
		return d, nil
	}
	questions, err := p.ask(cell)
	if err != nil {
		return nil, err
	}
	d := &draft{recipes: k.list.recipes, build: buildVars(cell), archs: strings.Join(compat.Archs(cell.Torch, cell.CUDA), " ")}
	if err := d.fill(cell, questions, p.locked); err != nil {
		return nil, err
	}
	p.drafts[k] = d
	return d, nil
}

// The canonical JSON of a plan begins with its tag and ends with its configuration.
const jsonStart, jsonConfig = `{"tag":`, `,"config":`

// seal keeps what finish needs of the draft's JSON.
func (d *draft) seal() {
	whole, _ := json.Marshal(d.Plan)
	config, _ := json.Marshal(d.Config)
	whole = bytes.TrimPrefix(whole, []byte(jsonStart+`""`))
	d.json = bytes.TrimSuffix(whole, []byte(jsonConfig+string(config)+"}"))
}

// finish makes the draft a cell's plan. It changes nothing of the draft.
func (d *draft) finish(cell matrix.Cell) (*Plan, error) {
	var bad diag.List
	p := d.Plan
	p.Tag = cell.Tag
	p.Config = configOf(cell, d, &bad)
	if err := bad.Err(); err != nil {
		return nil, err
	}
	p.label(cell, d)
	tag, _ := json.Marshal(p.Tag)
	config, _ := json.Marshal(p.Config)
	h := sha256.New()
	for _, part := range [][]byte{[]byte(jsonStart), tag, d.json, []byte(jsonConfig), config, []byte("}")} {
		h.Write(part)
	}
	p.digest = "sha256:" + hex.EncodeToString(h.Sum(nil))
	p.Config.Labels[planLabel] = p.digest
	return &p, nil
}

// vars is what templates may name in a cell of the draft.
func (d *draft) vars(cell matrix.Cell) recipe.Vars {
	vars := recipe.Vars(cell.Vars())
	maps.Copy(vars, d.build)
	return vars
}
