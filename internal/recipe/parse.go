package recipe

import (
	"io/fs"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/imgforge/imgforge/internal/check"
	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/yamlpos"
)

// parser reads one recipe file.
type parser struct {
	yamlpos.Reader
	layer   fs.FS
	stem    string            // the file's name without .yaml, which the recipe must have
	shipped map[string][]byte // every file read, for the hash
}

// listHelp is how a list of entries is written.
const listHelp = "write it as `- item` lines"

// recipe reads the whole document. What is wrong is reported and left out.
func (p *parser) recipe(doc *yaml.Node) *Recipe {
	f := p.Fields(doc, "a recipe", recipeKeys)
	rec := &Recipe{Name: p.stem, Pos: p.Pos(doc)}
	p.name(doc, f["name"])
	rec.Summary = p.summary(doc, f["summary"])
	rec.Requires = p.others(f["requires"], "requires")
	rec.Conflicts = p.others(f["conflicts"], "conflicts")
	for _, both := range rec.Requires {
		if has(rec.Conflicts, both.Value) {
			p.Bad.Add(both.Pos, "keep one", "%q is both required and in conflict", both.Value)
		}
	}
	rec.Debs = p.unique(f["debs"], "debs", p.checkDeb)
	rec.Wheels = p.unique(f["wheels"], "wheels", p.checkWheel)
	rec.Limits = p.unique(f["limits"], "limits", p.checkLimit)
	rec.Env = p.env(f["env"])
	rec.Files = p.files(f["files"])
	rec.Run = p.run(f["run"])
	for _, word := range p.Items(f["cmd"], "cmd", listHelp) {
		if s, ok := p.String(word, "an item of cmd"); ok {
			rec.Cmd = append(rec.Cmd, s.Value)
		}
	}
	if len(rec.Cmd) > 0 && rec.Cmd[0] == "" {
		p.Fail(f["cmd"], "", "cmd has no program")
	}
	rec.Checks = check.Reader{Reader: &p.Reader, Template: func(s diag.Str) { skeleton(s, &p.Bad) }, When: p.when}.Checks(f["checks"])
	for _, port := range p.unique(f["ports"], "ports", p.checkPort) {
		rec.Ports = append(rec.Ports, port.Value)
	}
	return rec
}

func (p *parser) name(doc, n *yaml.Node) {
	if !recipeName.MatchString(p.stem) {
		p.Bad.Add(diag.Pos{File: p.File}, "use small letters, digits and single dashes", "%q is no recipe name", p.stem)
	}
	if s, ok := p.need(doc, n, "name", "the recipe"); ok && s.Value != p.stem {
		p.Fail(n, "name it "+p.stem+", or rename the file", "name %q differs from the file's", s.Value)
	}
}

func (p *parser) summary(doc, n *yaml.Node) string {
	s, ok := p.need(doc, n, "summary", "the recipe")
	if ok && strings.ContainsAny(s.Value, "\n\r") {
		p.Fail(n, "", "summary must be one line")
	}
	return s.Value
}

// others reads a list of other recipes' names.
func (p *parser) others(n *yaml.Node, what string) []diag.Str {
	return p.unique(n, what, func(s diag.Str) string {
		if s.Value == p.stem {
			p.Bad.Add(s.Pos, "", "a recipe cannot name itself in %s", what)
		}
		return s.Value
	})
}

// unique reads a list and reports what occurs twice. identity checks an item and
// returns what may not occur again.
func (p *parser) unique(n *yaml.Node, what string, identity func(diag.Str) string) []diag.Str {
	first := map[string]diag.Pos{}
	list := p.Strings(n, what)
	for _, s := range list {
		id := identity(s)
		if id == "" {
			continue
		}
		if at, twice := first[id]; twice {
			p.Bad.Add(s.Pos, "keep one", "%s lists %s twice; first on line %d", what, id, at.Line)
			continue
		}
		first[id] = s.Pos
	}
	return list
}

func (p *parser) env(n *yaml.Node) []Var {
	var out []Var
	for _, e := range p.Mapping(n, "env") {
		name := e.Key.Value
		if !envName.MatchString(name) {
			p.Bad.Add(e.Key.Pos, "use letters, digits and _", "%q is no name of a variable", name)
		}
		if why := owned[name]; why != "" {
			p.Bad.Add(e.Key.Pos, why, "a recipe may not set %s", name)
		}
		value, ok := p.String(e.Value, name)
		if !ok {
			continue
		}
		skeleton(value, &p.Bad)
		out = append(out, Var{Pos: value.Pos, Name: name, Value: value.Value})
	}
	return out
}

func (p *parser) run(n *yaml.Node) []Run {
	var out []Run
	for _, item := range p.Items(n, "run", listHelp) {
		f := p.Fields(item, "a run step", runKeys)
		step := Run{Pos: p.Pos(item)}
		if name, ok := p.need(item, f["name"], "name", "a run step"); ok {
			step.Name = name.Value
		}
		if command, ok := p.need(item, f["run"], "run", "a run step"); ok {
			skeleton(command, &p.Bad)
			step.Command, step.Pos = command.Value, command.Pos
		}
		out = append(out, step)
	}
	return out
}

// when reads a condition. Which axes there are is the matrix's to say.
func (p *parser) when(n *yaml.Node) map[string]diag.Str {
	out := map[string]diag.Str{}
	for _, e := range p.Mapping(n, "when") {
		out[e.Key.Value] = p.Scalar(e.Value, e.Key.Value+" of when")
	}
	return out
}

// need reads a string that must be there.
func (p *parser) need(item, n *yaml.Node, key, what string) (diag.Str, bool) {
	if n == nil {
		if yamlpos.Deref(item).Kind == yaml.MappingNode {
			p.Fail(item, "add `"+key+": ...`", "%s has no %s", what, key)
		}
		return diag.Str{}, false
	}
	return p.Filled(n, key)
}

func has(list []diag.Str, value string) bool {
	for _, s := range list {
		if s.Value == value {
			return true
		}
	}
	return false
}
