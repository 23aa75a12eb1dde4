package plan

import (
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
	settings := make([]*setting, len(cells))
	for i, cell := range cells {
		settings[i], out[i].Err = p.setting(cell)
	}
	// What is left is labels and hashing, which is most of the work.
	var all sync.WaitGroup
	chunk := len(cells)/runtime.GOMAXPROCS(0) + 1
	for first := 0; first < len(cells); first += chunk {
		all.Go(func() {
			for i := first; i < min(first+chunk, len(cells)); i++ {
				if out[i].Err == nil {
					out[i].Plan = settings[i].finish(cells[i])
				}
			}
		})
	}
	all.Wait()
	return out
}

// planner remembers what cells share.
type planner struct {
	set      *recipe.Set
	locked   *lock.File
	lists    map[string]*list
	asked    map[key]*asking
	drafts   map[key]*draft
	settings map[settingKey]*setting
}

func newPlanner(set *recipe.Set, locked *lock.File) *planner {
	return &planner{set: set, locked: locked, lists: map[string]*list{}, asked: map[key]*asking{}, drafts: map[key]*draft{},
		settings: map[settingKey]*setting{}}
}

// list is a list of recipes that some cells have.
type list struct {
	recipes []*recipe.Recipe
	names   []string // what the templates of their packages and commands name
	env     []string // what those of their environment name
	err     error    // why they do not go together
}

// all are the names of the recipes.
func (l *list) all() []string {
	var names []string
	for _, rec := range l.recipes {
		names = append(names, rec.Name)
	}
	return names
}

// key is everything of a cell that its packages and steps depend on.
type key struct {
	list                       *list
	base                       matrix.Base
	baseName, platform         string
	cuda, torch, python, named string
}

// settingKey is everything of a cell that its configuration depends on, but labels.
type settingKey struct {
	draft         *draft
	driver, named string
}

// asked is a question to the lock under its name.
type asked struct {
	set     string
	request lock.Request
}

// asking is all that cells ask, or why they cannot.
type asking struct {
	questions []asked
	err       error
}

// draft is a plan without tag and configuration, which many cells share.
type draft struct {
	Plan
	list    *list
	build   recipe.Vars // what templates may name beyond the cell's own values
	archs   string
	lock    string
	created string
	body    string // digest of all but tag and configuration
	err     error  // why there is no plan
}

// setting is a draft with a configuration without labels.
type setting struct {
	draft  *draft
	config Config
}

func (p *planner) keyOf(cell matrix.Cell) (key, error) {
	var names strings.Builder
	for _, name := range cell.Recipes {
		names.WriteString(name.Value + " ")
	}
	l := p.lists[names.String()]
	if l == nil {
		l = &list{}
		l.recipes, l.err = recipesOf(cell, p.set)
		for _, rec := range l.recipes {
			for _, v := range rec.Env {
				l.env = append(l.env, recipe.Names(v.Value)...)
			}
			l.names = append(l.names, rec.Names()...)
		}
		l.names, l.env = sortedSet(l.names), sortedSet(l.env)
		p.lists[names.String()] = l
	}
	if l.err != nil {
		return key{}, l.err
	}
	return key{l, cell.Base, cell.BaseName, cell.Platform, cell.CUDA, cell.Torch, cell.Python, valuesOf(cell, l.names)}, nil
}

// valuesOf is the cell's values of some names as one text. The names that only
// plan knows follow from torch and CUDA.
func valuesOf(cell matrix.Cell, names []string) string {
	var out strings.Builder
	for _, name := range names {
		value, _ := cell.Var(name)
		out.WriteString(value + "\x00")
	}
	return out.String()
}

// ask lists a cell's questions to the lock.
func (p *planner) ask(cell matrix.Cell) ([]asked, error) {
	k, err := p.keyOf(cell)
	if err != nil {
		return nil, err
	}
	a := p.asked[k]
	if a == nil {
		a = &asking{}
		r, err := requestsFor(cell, k.list.recipes)
		for _, request := range r.asked() {
			a.questions = append(a.questions, asked{request.Set(), request})
		}
		a.err = err
		p.asked[k] = a
	}
	return a.questions, a.err
}

func (p *planner) draft(cell matrix.Cell) (*draft, error) {
	k, err := p.keyOf(cell)
	if err != nil {
		return nil, err
	}
	if d, ok := p.drafts[k]; ok {
		return d, d.err
	}
	questions, err := p.ask(cell)
	if err != nil {
		return nil, err
	}
	d := &draft{list: k.list, build: buildVars(cell), archs: strings.Join(compat.ArchsOn(cell.Torch, cell.CUDA, cell.Platform), " ")}
	d.err = d.fill(cell, questions, p.locked)
	p.drafts[k] = d
	return d, d.err
}

func (p *planner) setting(cell matrix.Cell) (*setting, error) {
	d, err := p.draft(cell)
	if err != nil {
		return nil, err
	}
	k := settingKey{d, cell.Driver, valuesOf(cell, d.list.env)}
	if s, ok := p.settings[k]; ok {
		return s, nil
	}
	var bad diag.List
	s := &setting{draft: d, config: configOf(cell, d, &bad)}
	if err := bad.Err(); err != nil {
		return nil, err
	}
	p.settings[k] = s
	return s, nil
}

// finish makes the setting a cell's plan. It changes nothing of the setting.
func (s *setting) finish(cell matrix.Cell) *Plan {
	p := s.draft.Plan
	p.Tag, p.Config = cell.Tag, s.config
	p.Config.Labels = p.labels(cell, s.draft)
	p.digest = digestOf(identity{p.Tag, s.draft.body, p.Config})
	p.Config.Labels[planLabel] = p.digest
	return &p
}

// vars is what templates may name in a cell of the draft.
func (d *draft) vars(cell matrix.Cell) recipe.Vars {
	vars := recipe.Vars(cell.Vars())
	maps.Copy(vars, d.build)
	return vars
}
