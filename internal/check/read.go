package check

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/version"
	"github.com/imgforge/imgforge/internal/yamlpos"
)

var (
	nameForm = regexp.MustCompile(`^[a-z0-9]+([.-][a-z0-9]+)*$`)
	userForm = regexp.MustCompile(`^[0-9]{1,9}(:[0-9]{1,9})?$`)
)

// nobody is the user that the word stands for.
const nobody = "65534:65534"

// Reader reads lists of checks.
type Reader struct {
	*yamlpos.Reader
	Template func(diag.Str)                       // notes a template that is malformed; may be nil
	When     func(*yaml.Node) map[string]diag.Str // reads a condition
}

const example = "such as `use: pip-check`, or a name and `run: ...`"

// Checks reads a list; a check that is wrong is noted and left out.
func (r Reader) Checks(n *yaml.Node) []Check {
	var out []Check
	for _, item := range r.Items(n, "checks", "write entries that begin with -") {
		before := len(r.Bad)
		c := r.check(item)
		if len(r.Bad) > before {
			continue
		}
		if i := slices.IndexFunc(out, func(o Check) bool { return o.Name == c.Name }); i >= 0 {
			r.Bad.Add(c.Pos, "give one of them a name of its own", "check %s stands here twice; the first is on line %d", c.Name, out[i].Pos.Line)
			continue
		}
		out = append(out, c)
	}
	return out
}

func (r Reader) check(item *yaml.Node) Check {
	c := Check{Pos: r.Pos(item), Severity: Error, Timeout: usual}
	if yamlpos.Deref(item).Kind == yaml.ScalarNode {
		r.builtin(map[string]*yaml.Node{"use": item}, &c)
		return c
	}
	before := len(r.Bad)
	f := r.Fields(item, "a check", Keys)
	if len(r.Bad) > before {
		return c
	}
	_, use := f["use"]
	_, run := f["run"]
	switch {
	case use && run:
		r.Fail(item, "keep one", "this check has both use and run")
	case use:
		r.builtin(f, &c)
	case run:
		r.command(item, f, &c)
	default:
		r.Fail(item, example, "this check has neither use nor run")
	}
	if s := r.Scalar(f["name"], "name"); s.Value != "" {
		if c.Name = s.Value; !nameForm.MatchString(s.Value) {
			r.Bad.Add(s.Pos, "use small letters, digits, single dashes and dots", "check name %q is not usable", s.Value)
		}
	}
	if n := f["timeout"]; n != nil {
		c.Timeout = r.timeout(r.Scalar(n, "timeout"))
	}
	if s := r.oneOf(f["severity"], "severity", string(Error), string(Warning)); s != "" {
		c.Severity = Severity(s)
	}
	if n := f["when"]; n != nil {
		c.When = r.When(n)
	}
	return c
}

// builtin reads what only a check with `use` has.
func (r Reader) builtin(f map[string]*yaml.Node, c *Check) {
	s := r.Scalar(f["use"], "use")
	b, ok := Find(s.Value)
	if s.Value == "" {
		return
	}
	if !ok {
		r.Bad.Add(s.Pos, diag.Allowed(s.Value, builtinNames())+"; see docs/smoke.md", "there is no built-in check %q", s.Value)
		return
	}
	c.Use, c.Name, c.Kind, c.User = b.Name, b.Name, b.Kind, b.User
	if b.Timeout != 0 {
		c.Timeout = b.Timeout
	}
	for _, key := range []string{"kind", "expect", "user"} {
		if n := f[key]; n != nil {
			r.Fail(n, "remove it, or write a command with run", "the built-in %s has its own %s", b.Name, key)
		}
	}
	for _, e := range r.Mapping(f["with"], "with") {
		if _, known := b.Options[e.Key.Value]; !known {
			help := "it has none"
			if len(b.Options) > 0 {
				help = diag.Allowed(e.Key.Value, b.optionNames())
			}
			r.Bad.Add(e.Key.Pos, help, "%s has no option %q", b.Name, e.Key.Value)
			continue
		}
		v := r.Scalar(e.Value, e.Key.Value)
		r.template(v)
		if c.With == nil {
			c.With = map[string]string{}
		}
		c.With[e.Key.Value] = v.Value
	}
}

// command reads what only a check with `run` has.
func (r Reader) command(item *yaml.Node, f map[string]*yaml.Node, c *Check) {
	s, _ := r.Filled(f["run"], "run")
	r.template(s)
	c.Run = s.Value
	if _, ok := f["name"]; !ok {
		r.Fail(item, "add `name: ...`", "this check has no name")
	}
	if n := f["with"]; n != nil {
		r.Fail(n, "write the command's arguments into run", "only a built-in has options")
	}
	c.Kind = Kind(r.oneOf(f["kind"], "kind", string(CPU), string(GPU)))
	if _, ok := f["kind"]; !ok {
		c.Kind = CPU
	}
	switch u := r.Scalar(f["user"], "user"); {
	case u.Value == "nobody":
		c.User = nobody
	case u.Value == "root":
		c.User = "0:0"
	case u.Value != "" && !userForm.MatchString(u.Value):
		r.Bad.Add(u.Pos, "write root, nobody, a number, or two as 1000:1000", "user %q is not usable", u.Value)
	default:
		c.User = u.Value
	}
	c.Expect = r.expect(f["expect"])
}

func (r Reader) expect(n *yaml.Node) Expect {
	var e Expect
	if n == nil {
		return e
	}
	f := r.Fields(n, "expect", expectKeys)
	if s := r.Scalar(f["exit"], "exit"); s.Value != "" {
		code, err := strconv.Atoi(s.Value)
		if err != nil || code < 0 || code > 255 {
			r.Bad.Add(s.Pos, "write a number from 0 to 255", "exit %q is no exit code", s.Value)
		}
		e.Exit = code
	}
	if s, ok := r.String(f["stdout"], "stdout"); ok {
		r.template(s)
		text := strings.TrimSpace(s.Value)
		e.Stdout = &text
	}
	if s, ok := r.Filled(f["match"], "match"); ok {
		r.template(s)
		if _, err := regexp.Compile(s.Value); err != nil && !strings.Contains(s.Value, "${") {
			r.Bad.Add(s.Pos, "see https://pkg.go.dev/regexp/syntax", "match %q is no regular expression: %s", s.Value, err)
		}
		e.Match = s.Value
	}
	if s, ok := r.Filled(f["version"], "version"); ok {
		r.template(s)
		if _, err := version.InRange("1.0.0", s.Value); err != nil && !strings.Contains(s.Value, "${") {
			r.Bad.Add(s.Pos, "", "version: %s", err)
		}
		e.Version = s.Value
	}
	for _, entry := range r.Mapping(f["json"], "json") {
		v := r.Scalar(entry.Value, entry.Key.Value)
		r.template(v)
		if e.JSON == nil {
			e.JSON = map[string]string{}
		}
		e.JSON[entry.Key.Value] = v.Value
	}
	return e
}

func (r Reader) template(s diag.Str) {
	if r.Template != nil && s.Value != "" {
		r.Template(s)
	}
}

func (r Reader) timeout(s diag.Str) time.Duration {
	d, err := time.ParseDuration(s.Value)
	if s.Value != "" && (err != nil || d < shortest || d > longest) {
		r.Bad.Add(s.Pos, "write a time from 1s to 1h, such as 90s or 5m", "timeout %q cannot be used", s.Value)
	}
	return d
}

func (r Reader) oneOf(n *yaml.Node, what string, known ...string) string {
	s := r.Scalar(n, what)
	if s.Value != "" && !slices.Contains(known, s.Value) {
		r.Bad.Add(s.Pos, diag.Allowed(s.Value, known), "unknown %s %q", what, s.Value)
		return ""
	}
	return s.Value
}

// Filled is the check with its templates filled in.
func (c Check) Filled(fill func(diag.Str) (string, error)) (Check, error) {
	var bad diag.List
	do := func(text string) string {
		out, err := fill(diag.Str{Pos: c.Pos, Value: text})
		bad.AddErr(c.Pos, err)
		return out
	}
	all := func(in map[string]string) map[string]string {
		out := maps.Clone(in)
		for _, key := range slices.Sorted(maps.Keys(in)) {
			out[key] = do(in[key])
		}
		return out
	}
	c.With, c.Run = all(c.With), do(c.Run)
	c.Expect.JSON = all(c.Expect.JSON)
	c.Expect.Match, c.Expect.Version = do(c.Expect.Match), do(c.Expect.Version)
	if c.Expect.Stdout != nil {
		text := strings.TrimSpace(do(*c.Expect.Stdout))
		c.Expect.Stdout = &text
	}
	if len(bad) == 0 {
		bad.AddErr(c.Pos, c.Expect.check())
	}
	return c, bad.Err()
}
