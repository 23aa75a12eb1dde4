package lock

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// asks are the sets of two flavours, each with what its recipe asks for.
func asks(left, right string) []Need {
	var needs []Need
	for flavour, names := range map[string]string{"left": left, "right": right} {
		r := Request{Kind: "wheels", Base: flavour, Python: "3.11", Torch: flavour, CUDA: "12.1", Arch: "amd64", Requirements: strings.Fields(names)}
		needs = append(needs, Need{Set: r.Set(), Request: r, Cells: []string{flavour}})
	}
	return needs
}

// lockFor brings a lock up to date as `imgforge lock` would: what has no answer is
// resolved, here to what is asked for and a dependency of each. It tells how many
// sets that were.
func lockFor(f *File, needs []Need, recipes map[string]string) (*File, int) {
	c := Change{Sets: map[string][]Entry{}, Epoch: "1735689600"}
	for _, n := range needs {
		if _, ok, err := f.Answer(n.Set, n.Request); ok && err == nil {
			continue
		}
		for _, name := range n.Request.Requirements {
			c.Sets[n.Set] = append(c.Sets[n.Set], wheelOf(name, hexA), wheelOf(name+"-core", hexA))
			e, _ := RequiresOf(wheelOf(name, hexA).Key, []string{name + "-core"})
			c.Requires = append(c.Requires, e)
		}
	}
	return f.Updated(needs, recipes, c), len(c.Sets)
}

// Two branches that each added a package in another recipe are merged by git
// itself, with and without its union driver. What comes out is a lock, or one that
// locking mends; where nothing new is asked together, nothing is resolved again.
func TestGitMerge(t *testing.T) {
	many := "aa bb cc dd ee ff gg hh ii jj kk ll mm"
	for _, c := range []struct {
		name                       string
		base, ours, theirs, merged []Need
		resolved                   int
	}{
		{"different sets", asks(many, many+" nn"), asks(many+" one", many+" nn"), asks(many, many+" nn two"), asks(many+" one", many+" nn two"), 0},
		{"one set", asks(many, "pip"), asks(many+" one", "pip"), asks(many+" two", "pip"), asks(many+" one two", "pip"), 1},
	} {
		for _, union := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, union=%t", c.name, union), func(t *testing.T) {
				before, after := map[string]string{"a": tree, "b": tree, "c": tree, "z": tree}, tree2
				base, _ := lockFor(&File{}, c.base, before)
				ours, _ := lockFor(base, c.ours, map[string]string{"a": after, "b": tree, "c": tree, "z": tree})
				theirs, _ := lockFor(base, c.theirs, map[string]string{"a": tree, "b": after, "c": tree, "z": tree})
				text, clean := gitMerge(t, union, base.Format(), ours.Format(), theirs.Format())
				_, err := Parse("x.lock", text)
				switch {
				case !clean && err == nil:
					t.Error("git sees a conflict and Parse does not")
				case !clean && !strings.Contains(err.Error(), "conflict marker"):
					t.Errorf("what a conflict leaves is told as %v", err)
				}
				f, err := Mend("x.lock", text)
				if err != nil {
					t.Fatalf("cannot be mended: %v\n%s", err, text)
				}
				recipes := map[string]string{"a": after, "b": after, "c": tree, "z": tree}
				next, resolved := lockFor(f, c.merged, recipes)
				if resolved != c.resolved {
					t.Errorf("%d sets are resolved again, want %d", resolved, c.resolved)
				}
				fresh, _ := lockFor(&File{}, c.merged, recipes)
				if string(next.Format()) != string(fresh.Format()) {
					t.Errorf("merged and locked, it is not what locking afresh gives:\n%s", next.Format())
				}
				if missing, surplus := next.Compare(c.merged, recipes); len(missing)+len(surplus) > 0 {
					t.Errorf("missing %q, surplus %q", missing, surplus)
				}
			})
		}
	}
}

// gitMerge lets git merge two branches of a repository that holds one lock. It
// returns the file, and whether git was content.
func gitMerge(t *testing.T, union bool, base, ours, theirs []byte) (text []byte, clean bool) {
	t.Helper()
	dir := t.TempDir()
	git := func(args ...string) error {
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=x", "-c", "user.email=x@example.invalid", "-c", "commit.gpgsign=false"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		out, err := cmd.CombinedOutput()
		if err != nil && args[0] != "merge" {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return err
	}
	write := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_ = git("init", "-q", "-b", "main")
	if union {
		write(".gitattributes", []byte("*.lock merge=union\n"))
	}
	for _, step := range []struct {
		branch string
		data   []byte
	}{{"main", base}, {"ours", ours}, {"theirs", theirs}} {
		if step.branch != "main" {
			_ = git("checkout", "-q", "-b", step.branch, "main")
		}
		write("x.lock", step.data)
		_ = git("add", ".")
		_ = git("commit", "-q", "-m", step.branch)
	}
	_ = git("checkout", "-q", "ours")
	clean = git("merge", "-q", "theirs") == nil
	text, err := os.ReadFile(filepath.Join(dir, "x.lock"))
	if err != nil {
		t.Fatal(err)
	}
	return text, clean
}
