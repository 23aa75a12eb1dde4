package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/imgforge/imgforge/internal/compat"
	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/matrix"
	"github.com/imgforge/imgforge/internal/recipe"
)

// environment is the recipe every image starts from: pip and what it needs.
const environment = "python"

// Needs lists what must be locked for the cells: each request once, in a stable
// order. Mistakes in recipes and matrix are reported together.
func Needs(cells []matrix.Cell, set *recipe.Set) ([]lock.Need, error) {
	var bad diag.List
	bySet := map[string]*lock.Need{}
	planner := newPlanner(set, nil)
	for _, cell := range cells {
		questions, err := planner.ask(cell)
		if err != nil {
			bad.AddErr(cell.Pos, err)
			continue
		}
		for _, q := range questions {
			if bySet[q.set] == nil {
				bySet[q.set] = &lock.Need{Set: q.set, Request: q.request, Pos: cell.Pos}
			}
			bySet[q.set].Cells = append(bySet[q.set].Cells, cell.Tag)
		}
	}
	needs := make([]lock.Need, 0, len(bySet))
	for _, name := range slices.Sorted(maps.Keys(bySet)) {
		needs = append(needs, *bySet[name])
	}
	return needs, bad.Err()
}

// requests are a cell's four questions to the lock.
type requests struct{ base, debs, wheels, tools lock.Request }

// asked are the questions that are not empty.
func (r requests) asked() []lock.Request {
	out := []lock.Request{r.base}
	if len(r.debs.Packages) > 0 {
		out = append(out, r.debs)
	}
	if len(r.wheels.Requirements) > 0 {
		out = append(out, r.tools, r.wheels)
	}
	return out
}

func requestsFor(cell matrix.Cell, recipes []*recipe.Recipe) (requests, error) {
	var bad diag.List
	base := baseRequest(cell)
	r := requests{base: base}
	if !foreign(cell.Base) || cell.Base.Facts != nil {
		on := onBase(cell, base)
		r.debs, r.wheels, r.tools = on, on, on
		r.debs.Kind, r.wheels.Kind, r.tools.Kind = "debs", "wheels", "tools"
		r.tools.On = ""
		r.askRecipes(cell, recipes, &bad)
		r.fitBase(cell)
	}
	r.debs.Packages = sortedSet(r.debs.Packages)
	r.wheels.Requirements = sortedSet(r.wheels.Requirements)
	r.wheels.Constraints = sortedSet(r.wheels.Constraints)
	return r, bad.Err()
}

// askRecipes adds what recipes ask for, and what compat knows of it.
func (r *requests) askRecipes(cell matrix.Cell, recipes []*recipe.Recipe, bad *diag.List) {
	vars := varsOf(cell)
	for _, rec := range recipes {
		r.debs.Packages = append(r.debs.Packages, expandAll(rec.Debs, vars, bad)...)
		r.wheels.Requirements = append(r.wheels.Requirements, expandAll(rec.Wheels, vars, bad)...)
		r.wheels.Constraints = append(r.wheels.Constraints, expandAll(rec.Limits, vars, bad)...)
	}
	r.wheels.Python, r.tools.Python = cell.Python, cell.Python
	if slices.ContainsFunc(r.wheels.Requirements, isTorch) {
		r.wheels.Torch, r.wheels.CUDA = cell.Torch, cell.CUDA
		for _, limit := range compat.Limits(cell.Torch, cell.CUDA, cell.Python) {
			r.wheels.Constraints = append(r.wheels.Constraints, limit.Requirement)
		}
	}
}

// recipesOf finds a cell's recipes, the environment first, and holds them to
// what they require of each other.
func recipesOf(cell matrix.Cell, set *recipe.Set) ([]*recipe.Recipe, error) {
	var bad diag.List
	names := cell.Recipes
	if !slices.ContainsFunc(names, func(s diag.Str) bool { return s.Value == environment }) {
		names = append([]diag.Str{{Value: environment, Pos: cell.Pos}}, names...)
	}
	listed := map[string]diag.Str{}
	var out []*recipe.Recipe
	for _, name := range names {
		if _, twice := listed[name.Value]; twice {
			continue // two conditions of the matrix hold for this cell
		}
		rec, ok := set.Get(name.Value)
		if !ok {
			bad.Add(name.Pos, diag.Allowed(name.Value, set.Names()), "unknown recipe %q", name.Value)
			continue
		}
		listed[name.Value] = name
		out = append(out, rec)
	}
	for _, rec := range out {
		for _, other := range rec.Requires {
			if _, ok := listed[other.Value]; !ok {
				bad.Add(listed[rec.Name].Pos, fmt.Sprintf("list %q before it", other.Value), "recipe %s requires %s", rec.Name, other.Value)
			}
		}
		for _, other := range rec.Conflicts {
			if _, ok := listed[other.Value]; ok {
				bad.Add(listed[rec.Name].Pos, "keep one of the two", "recipes %s and %s exclude each other", rec.Name, other.Value)
			}
		}
	}
	return out, bad.Err()
}

// varsOf is what a recipe's templates may name.
func varsOf(cell matrix.Cell) recipe.Vars {
	vars := recipe.Vars(cell.Vars())
	maps.Copy(vars, buildVars(cell))
	return vars
}

// buildVars is what templates may name of the cell's torch.
func buildVars(cell matrix.Cell) recipe.Vars {
	vars := recipe.Vars{"torch.requirement": compat.TorchRequirementOn(cell.Torch, cell.CUDA, cell.Platform)}
	if t, err := compat.Lookup(cell.Torch, cell.CUDA); err == nil {
		vars["torchvision"], vars["torchaudio"] = t.Torchvision, t.Torchaudio
	}
	return vars
}

func expandAll(in []diag.Str, vars recipe.Vars, bad *diag.List) []string {
	var out []string
	for _, s := range in {
		value, err := recipe.Expand(s, vars)
		if err != nil {
			bad.AddErr(s.Pos, err)
			continue
		}
		out = append(out, value)
	}
	return out
}

// isTorch tells whether a PEP 508 requirement is for torch itself.
func isTorch(requirement string) bool { return lock.NameOf(requirement) == "torch" }

func debianArch(platform string) string {
	_, arch, _ := strings.Cut(platform, "/")
	return arch
}

func values(in []diag.Str) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = s.Value
	}
	return out
}

func sortedSet(in []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(in)))
}

// RecipeNames lists the recipes that any of the cells uses, sorted; recipes that
// do not exist are left to Needs to report.
func RecipeNames(cells []matrix.Cell, set *recipe.Set) []string {
	names := []string{environment}
	for _, cell := range cells {
		for _, name := range cell.Recipes {
			if _, ok := set.Get(name.Value); ok {
				names = append(names, name.Value)
			}
		}
	}
	return sortedSet(names)
}
