package store

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/yamlpos"
)

var (
	profileName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	cudaName    = regexp.MustCompile(`^(cu[0-9]{3}|cpu)$`)

	archiveNames = []string{"debian", "debian-security", "ubuntu", "ubuntu-ports", "ubuntu-base"}
)

// ParseProfiles reads a YAML list of profiles, in the schema of the built-in
// table. Every mistake is a problem at its position in file.
func ParseProfiles(file string, data []byte) ([]Profile, error) {
	const help = "write a list of mirror profiles, each with a name"
	p := &profileParser{yamlpos.Reader{File: file}}
	var out []Profile
	for _, n := range p.Items(p.Document(data, "list of mirror profiles", help), "mirrors", help) {
		profile := p.profile(n)
		if profile.Name != "" && slices.ContainsFunc(out, func(o Profile) bool { return o.Name == profile.Name }) {
			p.Fail(n, "give each its own name", "two profiles are named %q", profile.Name)
		}
		out = append(out, profile)
	}
	if err := p.Bad.Err(); err != nil {
		return nil, err
	}
	return out, nil
}

type profileParser struct{ yamlpos.Reader }

func (p *profileParser) profile(n *yaml.Node) Profile {
	before := len(p.Bad)
	f := p.Fields(n, "a profile", profileKeys)
	out := Profile{
		Name: p.name(f["name"]),
		Archives: p.urls(f["archives"], "archives", func(s string) string {
			if slices.Contains(archiveNames, s) {
				return ""
			}
			return diag.Allowed(s, archiveNames)
		}),
		Indexes: p.list(f["indexes"], "indexes", p.url),
		Wheels: p.urls(f["wheels"], "wheels", func(s string) string {
			if cudaName.MatchString(s) {
				return ""
			}
			return "allowed: cpu, or a CUDA version such as cu118"
		}),
		Hosts:   p.list(f["hosts"], "hosts", p.host),
		AnyHost: p.boolean(f["any-host"], "any-host"),
		Missing: p.list(f["missing"], "missing", func(s diag.Str) string { return s.Value }),
	}
	if _, named := f["name"]; !named && len(p.Bad) == before {
		p.Fail(n, "add name: ...", "a profile has no name")
	}
	if len(out.Archives)+len(out.Indexes)+len(out.Wheels) == 0 && len(p.Bad) == before {
		p.Fail(n, "give it archives, indexes or wheels", "profile %q carries nothing", out.Name)
	}
	return out
}

func (p *profileParser) boolean(n *yaml.Node, what string) (out bool) {
	if n != nil && n.Decode(&out) != nil {
		p.Fail(n, "true or false", "%s must be a yes or no, not %s", what, yamlpos.KindOf(n))
	}
	return out
}

func (p *profileParser) name(n *yaml.Node) string {
	s := p.Scalar(n, "name")
	if s.Value == hostProfile || s.Value != "" && !profileName.MatchString(s.Value) {
		p.Bad.Add(s.Pos, "lower-case letters, digits and dashes; host is taken", "%q is no name for a profile", s.Value)
	}
	return s.Value
}

// urls reads a mapping to URLs. judge says what to write instead of a bad key.
func (p *profileParser) urls(n *yaml.Node, what string, judge func(key string) string) map[string]string {
	var out map[string]string
	if n != nil {
		out = map[string]string{}
	}
	for _, e := range p.Mapping(n, what) {
		if help := judge(e.Key.Value); help != "" {
			p.Bad.Add(e.Key.Pos, help, "unknown key %q in %s", e.Key.Value, what)
			continue
		}
		out[e.Key.Value] = p.url(p.Scalar(e.Value, e.Key.Value+" of "+what))
	}
	return out
}

func (p *profileParser) list(n *yaml.Node, what string, item func(diag.Str) string) []string {
	var out []string
	for _, s := range p.Scalars(n, what) {
		out = append(out, item(s))
	}
	return out
}

func (p *profileParser) url(s diag.Str) string {
	if s.Value != "" && !isWebURL(s.Value) {
		p.Bad.Add(s.Pos, "an http or https URL", "%q is no address of a mirror", redact(s.Value))
	}
	return s.Value
}

func (p *profileParser) host(s diag.Str) string {
	if u, err := url.Parse("https://" + s.Value); err != nil || u.Host != s.Value {
		p.Bad.Add(s.Pos, "a host name, with no scheme and no path", "%q is no host", s.Value)
	}
	return strings.ToLower(s.Value)
}

func isWebURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}
