package plan

import (
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/imgforge/imgforge/internal/check"
	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/matrix"
	"github.com/imgforge/imgforge/internal/yamlpos"
)

// checksOf reads a list of checks as a matrix's.
func checksOf(t *testing.T, text string) []check.Check {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	r := &yamlpos.Reader{File: "m.yaml"}
	got := check.Reader{Reader: r, When: func(n *yaml.Node) map[string]diag.Str {
		out := map[string]diag.Str{}
		for _, e := range r.Mapping(n, "when") {
			out[e.Key.Value] = r.Scalar(e.Value, e.Key.Value)
		}
		return out
	}}.Checks(doc.Content[0])
	if err := r.Bad.Err(); err != nil {
		t.Fatal(err)
	}
	return got
}

func find(checks []check.Check, name string) *check.Check {
	for i := range checks {
		if checks[i].Name == name {
			return &checks[i]
		}
	}
	return nil
}

func TestChecks(t *testing.T) {
	cells, set := shipped(t)
	cell := cellOf(t, cells, "12.1", "2.4.1", "525.60.13")
	smoke := matrix.Smoke{Checks: checksOf(t, `
- {name: asks-for-its-torch, run: "echo ${torch}", expect: {stdout: "${torch}"}}
- {name: for-this-torch, run: "true", when: {torch: "~2.4"}}
- {name: for-another-torch, run: "true", when: {torch: "~2.5"}}
- {name: for-this-floor, run: "true", when: {driver: ">=525.60.13"}}
- {name: for-another-floor, run: "true", when: {driver: ">=535.54.03"}}
- {name: for-a-gpu, kind: gpu, run: "true"}
- {use: setuid, severity: warning}
`)}
	got, err := Checks(cell, set, smoke)
	if err != nil {
		t.Fatal(err)
	}
	if c := find(got, "asks-for-its-torch"); c == nil || c.Run != "echo 2.4.1" || *c.Expect.Stdout != "2.4.1" {
		t.Errorf("templates: %+v", c)
	}
	for name, want := range map[string]bool{"for-this-torch": true, "for-another-torch": false, "for-this-floor": true, "for-another-floor": false} {
		if (find(got, name) != nil) != want {
			t.Errorf("%s: there is %t, want %t", name, !want, want)
		}
	}
	if c := find(got, "setuid"); c == nil || c.Severity != check.Warning {
		t.Errorf("the matrix's check does not stand for the recipe's: %+v", c)
	}
	for i := 1; i < len(got); i++ {
		if order(got[i-1].Kind) > order(got[i].Kind) {
			t.Errorf("%s (%s) comes before %s (%s)", got[i-1].Name, got[i-1].Kind, got[i].Name, got[i].Kind)
		}
	}
	if last := got[len(got)-1]; last.Kind != check.GPU {
		t.Errorf("the last is %s", last.Name)
	}
}

func TestChecksThatCannotBeFilled(t *testing.T) {
	cells, set := shipped(t)
	for text, want := range map[string]string{
		`- {name: x, run: "echo ${tourch}"}`:                          `m.yaml:1:3: unknown name ${tourch}`,
		`- {name: x, run: "true", when: {flavour: dev}}`:              `m.yaml:1:42: unknown axis "flavour" in when`,
		`- {name: x, run: "true", expect: {match: "${torch}("}}`:      `match "2.1.2(" is no regular expression`,
		`- {name: x, run: "true", expect: {version: "new ${torch}"}}`: `"new 2.1.2" is not a version or range`,
	} {
		_, err := Checks(cells[0], set, matrix.Smoke{Checks: checksOf(t, text)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v\ndoes not say %s", text, err, want)
		}
	}
}
