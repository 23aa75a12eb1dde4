package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testName is a test as docs/traps.md names it.
var testName = regexp.MustCompile("`([a-z_]+\\.(?:Test|Fuzz)\\w*)`")

// Every test that docs/traps.md names is there, and every row but those of later
// stages names one.
func TestTrapsAreTested(t *testing.T) {
	data, err := os.ReadFile("../docs/traps.md")
	if err != nil {
		t.Fatal(err)
	}
	tests, named := listTests(t), 0
	text, later, ok := strings.Cut(string(data), "## Not yet")
	if !ok || testName.MatchString(later) {
		t.Error("what is not yet done must stand last, and names no test")
	}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| thread") || strings.HasPrefix(line, "| archive") {
			continue
		}
		found := testName.FindAllStringSubmatch(line, -1)
		if len(found) == 0 {
			t.Errorf("no test is named in: %s", line)
		}
		for _, m := range found {
			if named++; !tests[m[1]] {
				t.Errorf("docs/traps.md names %s, which is not there: has it another name now?", m[1])
			}
		}
	}
	if named < 50 {
		t.Errorf("only %d tests are named: has the form of docs/traps.md changed?", named)
	}
}

// listTests finds the tests of the module, as package.Test.
func listTests(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, dir := range []string{".", "../cmd", "../recipes"} {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			pkg := strings.TrimSuffix(file.Name.Name, "_test")
			for _, decl := range file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
					out[pkg+"."+f.Name.Name] = true
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}
