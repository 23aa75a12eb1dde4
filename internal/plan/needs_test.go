package plan

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/matrix"
)

func mustNeed(t *testing.T, cells []matrix.Cell) []lock.Need {
	t.Helper()
	_, set := shipped(t)
	needs, err := Needs(cells, set)
	if err != nil {
		t.Fatal(err)
	}
	return needs
}

// Twenty cells ask for ten sets of wheels, since a floor changes none, and share
// the rest.
func TestNeedsOfTheShippedMatrix(t *testing.T) {
	cells, _ := shipped(t)
	needs := mustNeed(t, cells)
	kinds := map[string]int{}
	for _, n := range needs {
		kinds[n.Request.Kind]++
		want := len(cells)
		if n.Request.Kind == "wheels" {
			want = 2
		}
		if len(n.Cells) != want {
			t.Errorf("%s is needed by %d cells, not %d", n.Set, len(n.Cells), want)
		}
		if n.Set != n.Request.Set() || n.Pos.File != "universal.yaml" || n.Pos.Line == 0 {
			t.Errorf("%s is asked at %s for %s", n.Set, n.Pos, n.Request.Set())
		}
	}
	if len(needs) != 13 || kinds["base"] != 1 || kinds["debs"] != 1 || kinds["tools"] != 1 || kinds["wheels"] != 10 {
		t.Errorf("needs by kind: %v", kinds)
	}
	if !slices.IsSortedFunc(needs, func(a, b lock.Need) int { return strings.Compare(a.Set, b.Set) }) {
		t.Error("needs are in no order")
	}
}

// The plain wheel of torch 2.1 to 2.4 carries CUDA 12.1; every other must be
// asked for by its local part, or a solver takes the wrong CUDA.
// pypa/pip#8606, #11458: the index that answers first decided which CUDA it was.
func TestTorchRequirementNamesItsCUDA(t *testing.T) {
	cells, _ := shipped(t)
	want := map[string]string{"2.5.1 12.1": "torch==2.5.1+cu121"}
	for _, torch := range []string{"2.1.2", "2.2.2", "2.3.1", "2.4.1", "2.5.1"} {
		want[torch+" 11.8"] = "torch==" + torch + "+cu118"
		if torch != "2.5.1" {
			want[torch+" 12.1"] = "torch==" + torch
		}
	}
	seen := 0
	for _, n := range mustNeed(t, cells) {
		if r := n.Request; r.Kind == "wheels" {
			seen++
			if w := want[r.Torch+" "+r.CUDA]; !slices.Contains(r.Requirements, w) {
				t.Errorf("%s asks for %v, not %s", n.Set, r.Requirements, w)
			}
		}
	}
	if seen != len(want) {
		t.Errorf("%d sets of wheels, want %d", seen, len(want))
	}
}

// jupyter/notebook#7522, ai2cm/ace#378: pip knows nothing of numpy<2.
func TestConstraints(t *testing.T) {
	cells, _ := shipped(t)
	for torch, old := range map[string]bool{"2.1.2": true, "2.2.2": true, "2.4.1": false} {
		cell := cellOf(t, cells, "12.1", torch, "525.60.13")
		for _, n := range mustNeed(t, []matrix.Cell{cell}) {
			switch r := n.Request; r.Kind {
			case "wheels":
				if slices.Contains(r.Constraints, "numpy<2") != old || !slices.Contains(r.Constraints, "setuptools<70") {
					t.Errorf("torch %s is constrained by %v", torch, r.Constraints)
				}
				if !slices.IsSorted(r.Requirements) || !slices.IsSorted(r.Constraints) {
					t.Errorf("unsorted: %v, %v", r.Requirements, r.Constraints)
				}
			case "debs":
				if !slices.Contains(r.Packages, "python3.11-dev") || r.Torch != "" || r.Suite != "bookworm" || r.Arch != "amd64" {
					t.Errorf("debs are asked for by %+v", r)
				}
			}
		}
	}
}

func TestRecipeOrderChangesNoNeed(t *testing.T) {
	cells, _ := shipped(t)
	turned := cells[0]
	turned.Recipes = slices.Clone(turned.Recipes)
	slices.Reverse(turned.Recipes)
	turned.Recipes = append(turned.Recipes, turned.Recipes[0]) // two conditions that both hold
	a, b := mustNeed(t, cells[:1]), mustNeed(t, []matrix.Cell{turned})
	for i := range a {
		if a[i].Set != b[i].Set {
			t.Errorf("%s became %s", a[i].Set, b[i].Set)
		}
	}
}

// Without torch nothing depends on torch or CUDA, so all cells share one answer;
// without .debs none are asked for.
func TestNeedsWithoutTorch(t *testing.T) {
	cells, _ := shipped(t)
	set := own(t, map[string]string{"tiny": "wheels: [tqdm]"})
	for i := range cells {
		cells[i].Recipes = with(t, "tiny").Recipes
	}
	needs, err := Needs(cells, set)
	if err != nil || len(needs) != 3 {
		t.Fatalf("%d needs, %v", len(needs), err)
	}
	for i, kind := range []string{"base", "tools", "wheels"} {
		if r := needs[i].Request; r.Kind != kind || r.Torch != "" || r.CUDA != "" || len(needs[i].Cells) != len(cells) {
			t.Errorf("%+v for %d cells", r, len(needs[i].Cells))
		}
	}
	if got := needs[2].Request.Requirements; !slices.Equal(got, []string{"pip", "tqdm"}) {
		t.Errorf("wheels asked for: %v", got)
	}
}

func TestNeedsRefuses(t *testing.T) {
	set := own(t, map[string]string{
		"kernel": "requires: [lab]", "lab": "", "zsh": "conflicts: [fish]", "fish": "",
		"typo": "debs:\n  - python${pyton}-dev\nwheels:\n  - torch==${torhc}",
	})
	for name, c := range map[string]struct {
		recipes []string
		want    []string
	}{
		"unknown":   {[]string{"lab", "zhs"}, []string{`m.yaml:2:5: unknown recipe "zhs"; did you mean "zsh"? allowed: fish, kernel, lab, python, typo, zsh`}},
		"requires":  {[]string{"kernel"}, []string{`m.yaml:1:5: recipe kernel requires lab; list "lab" before it`}},
		"conflicts": {[]string{"fish", "zsh"}, []string{"m.yaml:2:5: recipes zsh and fish exclude each other"}},
		"at once": {[]string{"kernel", "nosuchthing", "zsh", "fish"}, []string{
			"m.yaml:1:5: recipe kernel requires lab", `m.yaml:2:5: unknown recipe "nosuchthing"`, "m.yaml:3:5: recipes zsh and fish exclude",
		}},
		"template": {[]string{"typo"}, []string{
			`recipes/typo.yaml:4:5: unknown name ${pyton} in "python${pyton}-dev"; did you mean "python"?`, "recipes/typo.yaml:6:5: unknown name ${torhc}",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cell := with(t, c.recipes...)
			_, err := Needs([]matrix.Cell{cell, cell}, set) // each problem once
			if err == nil {
				t.Fatal("accepted")
			}
			lines := strings.Split(err.Error(), "\n")
			for i, line := range lines {
				if i >= len(c.want) || !strings.HasPrefix(line, c.want[i]) {
					t.Errorf("got %q", line)
				}
			}
			if len(lines) != len(c.want) {
				t.Errorf("got %d problems, want %q", len(lines), c.want)
			}
			if _, made := Make(cell, set, &lock.File{}); made == nil || made.Error() != err.Error() {
				t.Errorf("Make says otherwise: %v", made)
			}
		})
	}
}

func TestEveryImageNeedsItsEnvironment(t *testing.T) {
	_, err := Needs([]matrix.Cell{with(t, "zsh")}, loadRecipes(t, fstest.MapFS{"zsh.yaml": {Data: []byte("name: zsh\nsummary: x\n")}}))
	if err == nil || !strings.Contains(err.Error(), `unknown recipe "python"`) {
		t.Errorf("recipes without python give %v", err)
	}
}

func TestIsTorch(t *testing.T) {
	for requirement, want := range map[string]bool{
		"torch": true, "torch==2.4.1": true, "torch==2.4.1+cu118": true, "torch>2,<3": true, "torch ~= 2.4": true, "Torch!=2": true,
		"torch[opt]==2": true, "torch; python_version<'4'": true,
		"torchvision==0.19": false, "torch-geometric": false, "pytorch": false, "": false,
	} {
		if got := isTorch(requirement); got != want {
			t.Errorf("%q is torch: %t", requirement, got)
		}
	}
}

func TestRecipeNames(t *testing.T) {
	set := own(t, map[string]string{"zsh": "", "lab": "", "unused": ""})
	got := RecipeNames([]matrix.Cell{with(t, "zsh", "lab"), with(t, "zsh", "nosuch")}, set)
	if want := []string{"lab", "python", "zsh"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
