package store

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/imgforge/imgforge/internal/plan"
)

// Contact is a host that fetching some files may ask.
type Contact struct {
	Host    string `json:"host"`    // with its port, unless that is the scheme's own
	Mirror  string `json:"mirror"`  // profile
	For     string `json:"for"`     // debian, pypi, torch wheels for cu118, or the mirror's links
	Files   int    `json:"files"`   // that it may be asked for
	Bytes   int64  `json:"bytes"`   // of them, as far as known
	First   bool   `json:"first"`   // asked before others; else only for what they do not give
	AnyHost bool   `json:"anyHost"` // its links and redirects may lead to hosts that are not listed
	Proxy   string `json:"proxy"`   // host of the proxy that is asked instead; empty: none
}

// Contacts lists the hosts that a Fetcher with these profiles may ask for blobs
// that the store lacks, in the order in which they are asked. Tarballs and images
// are not looked for on mirrors, so they are left out. The profile "host" is read
// off the machine for it.
func Contacts(profiles []Profile, blobs []plan.Blob, env Environment) []Contact {
	var out []Contact
	served := map[string]bool{} // what an earlier profile has
	for i := range profiles {
		p := profiles[i].found()
		now := map[string]bool{}
		for _, b := range blobs {
			w, err := parseOrigin(b)
			if err != nil || w.lone {
				continue
			}
			about, roots := p.rootsFor(w)
			if len(roots) == 0 {
				continue
			}
			now[about] = true
			for _, root := range roots {
				if strings.HasPrefix(root, "file:") {
					continue // kept on this machine
				}
				out = note(out, Contact{Host: root, Mirror: p.Name, For: about, First: !served[about], AnyHost: p.AnyHost}, b)
			}
			for _, host := range p.Hosts {
				out = note(out, Contact{Host: "https://" + host, Mirror: p.Name, For: "links of its pages", First: !served[about]}, b)
			}
		}
		for about := range now {
			served[about] = true
		}
	}
	for i := range out {
		out[i].Host, out[i].Proxy = hostAndProxy(out[i].Host, env)
	}
	return out
}

// rootsFor are the addresses that the profile has for a file, and what they are.
func (p *Profile) rootsFor(w wanted) (about string, roots []string) {
	switch {
	case w.archive != "":
		about, roots = w.archive, []string{p.Archives[w.archive]}
	case w.cuda != "":
		about, roots = "torch wheels for "+w.cuda, []string{p.Wheels[w.cuda]}
	default:
		about, roots = "pypi", p.Indexes
	}
	if p.File != nil && p.File(w.blob) != "" { // kept there, by its hash
		u, err := url.Parse(p.File(w.blob))
		if err != nil {
			return about, nil
		}
		roots = []string{(&url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/"}).String()}
	}
	roots = slices.DeleteFunc(slices.Clone(roots), func(s string) bool { return s == "" })
	return about, roots
}

// note counts a file for a contact, which is new or in the list.
func note(list []Contact, c Contact, b plan.Blob) []Contact {
	i := slices.IndexFunc(list, func(o Contact) bool { return o.Host == c.Host && o.Mirror == c.Mirror && o.For == c.For })
	if i < 0 {
		i = len(list)
		list = append(list, c)
	}
	list[i].Files++
	list[i].Bytes += b.Size
	list[i].First = list[i].First || c.First
	return list
}

// hostAndProxy is the host of an address and of the proxy that is asked in its stead.
func hostAndProxy(address string, env Environment) (host, proxy string) {
	u, err := url.Parse(address)
	if err != nil {
		return address, ""
	}
	if via, err := env.proxy()(&http.Request{URL: u}); err == nil && via != nil {
		proxy = hostOf(via)
	}
	return hostOf(u), proxy
}
