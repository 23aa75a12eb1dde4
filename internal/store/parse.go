package store

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/imgforge/imgforge/internal/diag"
)

var (
	profileName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	cudaName    = regexp.MustCompile(`^(cu[0-9]{3}|cpu)$`)
	yamlLine    = regexp.MustCompile(`line (\d+)`)

	archiveNames = []string{"debian", "debian-security"}
	profileKeys  = []string{"name", "archives", "indexes", "wheels", "hosts", "any-host", "missing"}
)

// ParseProfiles reads a YAML list of profiles, in the schema of the built-in
// table. Every mistake is a problem at its position in file.
func ParseProfiles(file string, data []byte) ([]Profile, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		pos := diag.Pos{File: file}
		if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
			pos.Line, _ = strconv.Atoi(m[1])
		}
		return nil, &diag.Problem{Pos: pos, What: strings.TrimPrefix(err.Error(), "yaml: "), Help: "a list of mirror profiles"}
	}
	p := &profileParser{file: file}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.SequenceNode {
		return nil, &diag.Problem{Pos: diag.Pos{File: file, Line: 1}, What: "not a list", Help: "write a list of mirror profiles, each with a name"}
	}
	var out []Profile
	for _, n := range doc.Content[0].Content {
		profile := p.profile(n)
		if profile.Name != "" && slices.ContainsFunc(out, func(o Profile) bool { return o.Name == profile.Name }) {
			p.problems.Add(p.pos(n), "give each its own name", "two profiles are named %q", profile.Name)
		}
		out = append(out, profile)
	}
	if err := p.problems.Err(); err != nil {
		return nil, err
	}
	return out, nil
}

type profileParser struct {
	file     string
	problems diag.List
}

func (p *profileParser) pos(n *yaml.Node) diag.Pos {
	return diag.Pos{File: p.file, Line: n.Line, Col: n.Column}
}

func (p *profileParser) profile(n *yaml.Node) Profile {
	var out Profile
	p.pairs(n, func(key, value *yaml.Node) {
		switch key.Value {
		case "name":
			out.Name = p.name(value)
		case "archives":
			out.Archives = p.urls(value, "an archive", func(s string) bool { return slices.Contains(archiveNames, s) }, strings.Join(archiveNames, ", "))
		case "indexes":
			out.Indexes = p.list(value, p.url)
		case "wheels":
			out.Wheels = p.urls(value, "a CUDA version", cudaName.MatchString, "such as cu118")
		case "hosts":
			out.Hosts = p.list(value, p.host)
		case "any-host":
			if err := value.Decode(&out.AnyHost); err != nil {
				p.problems.Add(p.pos(value), "true or false", "any-host is %q", value.Value)
			}
		case "missing":
			out.Missing = p.list(value, p.text)
		default:
			p.unknown(key, profileKeys)
		}
	})
	if out.Name == "" && n.Kind == yaml.MappingNode {
		p.problems.Add(p.pos(n), "add name: ...", "a profile has no valid name")
	}
	return out
}

func (p *profileParser) unknown(key *yaml.Node, known []string) {
	help := "one of: " + strings.Join(known, ", ")
	if near := diag.Nearest(key.Value, known); near != "" {
		help = "did you mean " + near + "? " + help
	}
	p.problems.Add(p.pos(key), help, "unknown key %q", key.Value)
}

// pairs calls do for each entry of a mapping, and reports repeats.
func (p *profileParser) pairs(n *yaml.Node, do func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		p.problems.Add(p.pos(n), "write key: value", "not a mapping")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if seen[key.Value] {
			p.problems.Add(p.pos(key), "keep one", "%q is given twice", key.Value)
		}
		seen[key.Value] = true
		do(key, n.Content[i+1])
	}
}

func (p *profileParser) name(n *yaml.Node) string {
	s := p.text(n)
	if s == hostProfile || s != "" && !profileName.MatchString(s) {
		p.problems.Add(p.pos(n), "lower-case letters, digits and dashes; host is taken", "%q is no name for a profile", s)
	}
	return s
}

func (p *profileParser) urls(n *yaml.Node, what string, ok func(string) bool, allowed string) map[string]string {
	out := map[string]string{}
	p.pairs(n, func(key, value *yaml.Node) {
		if !ok(key.Value) {
			p.problems.Add(p.pos(key), allowed, "%q is not %s", key.Value, what)
			return
		}
		out[key.Value] = p.url(value)
	})
	return out
}

func (p *profileParser) list(n *yaml.Node, item func(*yaml.Node) string) []string {
	if n.Kind != yaml.SequenceNode {
		p.problems.Add(p.pos(n), "write a list", "not a list")
		return nil
	}
	var out []string
	for _, c := range n.Content {
		out = append(out, item(c))
	}
	return out
}

func (p *profileParser) text(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || n.Value == "" {
		p.problems.Add(p.pos(n), "", "not a text")
		return ""
	}
	return n.Value
}

func (p *profileParser) url(n *yaml.Node) string {
	s := p.text(n)
	if s == "" {
		return ""
	}
	if !isWebURL(s) {
		p.problems.Add(p.pos(n), "an http or https URL", "%q is no address of a mirror", redact(s))
	}
	return s
}

func (p *profileParser) host(n *yaml.Node) string {
	s := p.text(n)
	if u, err := url.Parse("https://" + s); s != "" && (err != nil || u.Host != s) {
		p.problems.Add(p.pos(n), "a host name, with no scheme and no path", "%q is no host", s)
	}
	return strings.ToLower(s)
}

func isWebURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}
