package store

import (
	"context"
	_ "embed"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/plan"
)

//go:embed data/mirrors.yaml
var mirrorTable []byte

// hostProfile is the name of the profile that is read off this machine.
const hostProfile = "host"

// Profile is a mirror: what it carries and where.
type Profile struct {
	Name     string
	Archives map[string]string // one of archiveNames -> base URL
	Indexes  []string          // simple indexes (PEP 503), in order
	Wheels   map[string]string // "cu118" -> flat listing URL
	Hosts    []string          // other hosts that are the mirror's own
	AnyHost  bool              // links and redirects may lead anywhere
	// Missing is why it cannot serve something, each "what: why" with what as
	// lock entries name it: an archive, pypi or pytorch.
	Missing []string
	// File is where a blob lies that is not looked for in archives and indexes: a
	// tarball, a part of an image, a kept file. Empty, or nil: it is none of those.
	File   func(plan.Blob) string
	Client *http.Client // asks for what File names; nil: the Fetcher's own

	find  func() Profile               // the rest of it; nil when all of it is here
	login func(*url.URL) *url.Userinfo // for links to other hosts; may be nil
}

// found is the whole profile. "host" is read off the machine only when a file is
// missing, since that runs the machine's own pip.
func (p *Profile) found() *Profile {
	if p.find == nil {
		return p
	}
	whole := p.find()
	return &whole
}

// Environment is what the host profile is read from.
type Environment struct {
	Env  map[string]string
	Root string // "/", or a test's directory, where etc is
	// Run returns the standard output of a program such as python3.
	Run func(ctx context.Context, name string, args ...string) ([]byte, error)
}

// profileNames returns the names that LoadProfiles knows, sorted.
func profileNames() []string {
	names := []string{hostProfile}
	profiles, err := builtin()
	if err != nil {
		return names
	}
	for _, p := range profiles {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return names
}

func builtin() ([]Profile, error) { return ParseProfiles("data/mirrors.yaml", mirrorTable) }

// LoadProfiles returns the named profiles in order, each once. One of own stands
// before a built-in of its name. An unknown name is a problem at its position.
func LoadProfiles(names []diag.Str, own []Profile, env Environment) ([]Profile, error) {
	table, err := builtin()
	if err != nil {
		return nil, err
	}
	table = append(slices.Clone(own), table...)
	var out []Profile
	var problems diag.List
	for _, name := range names {
		if slices.ContainsFunc(out, func(p Profile) bool { return p.Name == name.Value }) {
			continue
		}
		i := slices.IndexFunc(table, func(p Profile) bool { return p.Name == name.Value })
		switch {
		case i >= 0:
			out = append(out, table[i])
		case name.Value == hostProfile:
			find := sync.OnceValue(func() Profile { return readHost(env) })
			out = append(out, Profile{Name: hostProfile, AnyHost: true, find: find})
		default:
			unknownProfile(&problems, name, own)
		}
	}
	if len(names) == 0 {
		problems.Add(diag.Pos{}, "name one or more of: "+strings.Join(profileNames(), ", "), "no mirror is named")
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	return out, nil
}

func unknownProfile(problems *diag.List, name diag.Str, own []Profile) {
	known := profileNames()
	for _, p := range own {
		known = append(known, p.Name)
	}
	help := "one of: " + strings.Join(known, ", ")
	if near := diag.Nearest(name.Value, known); near != "" {
		help = "did you mean " + near + "? " + help
	}
	problems.Add(name.Pos, help, "unknown mirror profile %q", name.Value)
}

// owns reports whether a link or redirect to u stays with the mirror.
func (p *Profile) owns(u *url.URL) bool {
	if p.AnyHost {
		return true
	}
	host := hostOf(u)
	same := func(raw string) bool {
		own, err := url.Parse(raw)
		return err == nil && hostOf(own) == host
	}
	for _, raw := range p.Archives {
		if same(raw) {
			return true
		}
	}
	for _, raw := range p.Wheels {
		if same(raw) {
			return true
		}
	}
	return slices.ContainsFunc(p.Indexes, same) || slices.Contains(p.Hosts, host)
}

// hostOf is the host with its port, unless that is the scheme's own.
func hostOf(u *url.URL) string {
	host := strings.ToLower(u.Host)
	switch u.Scheme {
	case "http":
		host = strings.TrimSuffix(host, ":80")
	case "https":
		host = strings.TrimSuffix(host, ":443")
	}
	return host
}
