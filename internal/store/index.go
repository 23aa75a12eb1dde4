package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/net/html"

	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/version"
)

// page is an index page, read once.
type page struct {
	mu    sync.Mutex
	read  bool
	at    *url.URL // after redirects
	links []link
	none  *failure // the mirror has no such page
}

// link is a file on an index page.
type link struct {
	name   string
	url    *url.URL
	sha256 string // empty when the page does not say
}

// accepts asks for PEP 691 JSON, else PEP 503 HTML.
const accepts = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"

// locate finds the URL of a wheel on a site's own index page.
func (f *Fetcher) locate(ctx context.Context, s *site, o origin, b plan.Blob) (*url.URL, *failure) {
	at := *s.root
	if s.kind == "index" {
		at = *join(s.root, version.NormalizeName(o.project)+"/")
	}
	p, failed := f.page(ctx, s, &at)
	if failed != nil {
		return nil, failed
	}
	var same []link
	for _, l := range p.links {
		if l.name == b.Name {
			same = append(same, l)
		}
	}
	if len(same) == 0 {
		return nil, &failure{reason: "its index page does not list the file", kind: absent, url: &at}
	}
	fits := func(l link) bool { return l.sha256 == "" || l.sha256 == b.SHA256 }
	i := slices.IndexFunc(same, fits)
	if i < 0 {
		return nil, &failure{reason: "serves another file under this name: sha256 " + same[0].sha256, kind: strange, url: &at}
	}
	if err := s.profile.allows(p.at, same[i].url); err != nil {
		return nil, &failure{reason: "its index page " + err.Error(), kind: absent, url: &at}
	}
	return same[i].url, nil
}

// page returns an index page, from memory once it was read.
func (f *Fetcher) page(ctx context.Context, s *site, at *url.URL) (*page, *failure) {
	key := s.profile.Name + " " + at.String()
	f.mu.Lock()
	p := f.pages[key]
	if p == nil {
		p = &page{}
		f.pages[key] = p
	}
	f.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.read {
		return p, p.none
	}
	got, failed := f.read(ctx, s, at, accepts)
	if failed == nil {
		p.at = got.at
		p.links, failed = parsePage(got)
	}
	if failed != nil {
		failed.url = at
		failed.reason = "index page: " + failed.reason
		if failed.kind != absent {
			return nil, failed
		}
		p.none = failed
	}
	p.read = true
	return p, p.none
}

func parsePage(a *answer) ([]link, *failure) {
	kind, _, _ := mime.ParseMediaType(a.contentType)
	if strings.HasSuffix(kind, "json") {
		links, err := parseJSON(a)
		if err != nil {
			return nil, &failure{reason: "not JSON as PEP 691 has it: " + err.Error(), kind: strange}
		}
		return links, nil
	}
	return parseHTML(a), nil
}

// parseJSON reads a page as PEP 691 has it.
func parseJSON(a *answer) ([]link, error) {
	var project struct {
		Files []struct {
			Filename string
			URL      string
			Hashes   map[string]string
		}
	}
	if err := json.Unmarshal(a.data, &project); err != nil {
		return nil, fmt.Errorf("%w", err)
	}
	var out []link
	for _, file := range project.Files {
		if u, err := a.at.Parse(file.URL); err == nil {
			out = append(out, link{file.Filename, withUser(u, a.at), file.Hashes["sha256"]})
		}
	}
	return out, nil
}

// parseHTML reads a page as PEP 503 has it, or a listing of files.
func parseHTML(a *answer) []link {
	var out []link
	base := a.at
	for tokens := html.NewTokenizer(bytes.NewReader(a.data)); ; {
		switch tokens.Next() {
		case html.ErrorToken:
			if tokens.Err() != io.EOF {
				return out // as much of it as can be read
			}
			return out
		case html.StartTagToken, html.SelfClosingTagToken:
			tag := tokens.Token()
			u, err := base.Parse(attribute(tag, "href"))
			switch {
			case err != nil || attribute(tag, "href") == "":
			case tag.Data == "base":
				base = u
			case tag.Data == "a":
				sum := strings.TrimPrefix(u.Fragment, "sha256=")
				if !isDigest(sum) {
					sum = ""
				}
				u.Fragment, u.RawFragment = "", ""
				out = append(out, link{path.Base(u.Path), withUser(u, a.at), sum})
			}
		}
	}
}

func attribute(tag html.Token, name string) string {
	for _, a := range tag.Attr {
		if a.Key == name {
			return strings.TrimSpace(a.Val)
		}
	}
	return ""
}

// withUser gives a link on the page's own host the page's credentials.
func withUser(u, page *url.URL) *url.URL {
	if u.Host == page.Host && u.User == nil {
		u.User = page.User
	}
	return u
}
