package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/imgforge/imgforge/internal/version"
)

const (
	maxPage    = 32 << 20 // bytes
	acceptPage = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
)

// page is a page of an index or a flat listing.
type page struct {
	files    map[string][]link   // by file name
	projects map[string]*url.URL // links to directories, by normalized name
}

type link struct {
	url    *url.URL
	sha256 string // empty where the page does not say
}

// find returns where the page says the file is. in, such as "cu118", is a
// directory to prefer when one page lists several of the same name.
func (p *page) find(name, sha256, in string) (*url.URL, error) {
	links := p.files[name]
	if len(links) == 0 {
		return nil, &failure{effect: next, reason: "does not list this file"}
	}
	for _, l := range links {
		if l.sha256 == sha256 {
			return l.url, nil
		}
	}
	links = slices.DeleteFunc(slices.Clone(links), func(l link) bool { return l.sha256 != "" })
	if len(links) == 0 {
		return nil, &failure{effect: next, reason: "lists another file under this name"}
	}
	for _, l := range links {
		if in != "" && strings.Contains(l.url.Path, "/"+in+"/") {
			return l.url, nil
		}
	}
	return links[0].url, nil
}

// page returns the page at u, asking for it once in a run.
func (r *run) page(ctx context.Context, at place, u *url.URL) (*page, error) {
	key := at.profile.Name + " " + u.String()
	for {
		r.pagesMu.Lock()
		call, running := r.pages[key]
		if !running {
			call = &pageCall{done: make(chan struct{})}
			r.pages[key] = call
		}
		r.pagesMu.Unlock()
		if !running {
			call.page, call.err = r.loadPage(ctx, at, u)
			if call.err != nil && ctx.Err() != nil { // says nothing about the page
				call.canceled = true
				r.pagesMu.Lock()
				delete(r.pages, key)
				r.pagesMu.Unlock()
			}
			close(call.done)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-call.done:
		}
		if !call.canceled {
			return call.page, call.err
		}
	}
}

type pageCall struct {
	done     chan struct{}
	page     *page
	err      error
	canceled bool
}

func (r *run) loadPage(ctx context.Context, at place, u *url.URL) (*page, error) {
	var out *page
	err := r.patiently(ctx, at, func() error {
		resp, err := r.get(ctx, at.profile, u, http.Header{"Accept": {acceptPage}})
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		data, err := readAtMost(resp.Body, maxPage)
		if err != nil {
			return located(err, redactURL(u))
		}
		out, err = parsePage(resp.Request.URL, resp.Header.Get("Content-Type"), data)
		return located(err, redactURL(u))
	})
	return out, err
}

// readAtMost reads all of body, which may not be longer than limit bytes.
func readAtMost(body io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, &failure{effect: next, reason: fmt.Sprintf("its page is over %d MB", limit>>20)}
	}
	return data, nil
}

func parsePage(at *url.URL, contentType string, data []byte) (*page, error) {
	out := &page{files: map[string][]link{}, projects: map[string]*url.URL{}}
	if strings.Contains(contentType, "json") {
		if err := out.parseJSON(at, data); err != nil {
			return nil, err
		}
		return out, nil
	}
	out.parseHTML(at, data)
	return out, nil
}

// parseJSON reads PEP 691.
func (p *page) parseJSON(at *url.URL, data []byte) error {
	var doc struct {
		Files []struct {
			Filename string            `json:"filename"`
			URL      string            `json:"url"`
			Hashes   map[string]string `json:"hashes"`
		} `json:"files"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return &failure{effect: next, reason: "its page is not valid JSON"}
	}
	for _, f := range doc.Files {
		if u, err := at.Parse(f.URL); err == nil {
			p.add(at, u, f.Filename, strings.ToLower(f.Hashes["sha256"]))
		}
	}
	return nil
}

// parseHTML reads PEP 503 and any other page of links.
func (p *page) parseHTML(at *url.URL, data []byte) {
	base := at
	for z := html.NewTokenizer(bytes.NewReader(data)); ; {
		switch z.Next() {
		case html.ErrorToken:
			return
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			u, err := base.Parse(strings.TrimSpace(attr(t, "href")))
			switch {
			case err != nil || attr(t, "href") == "":
			case t.Data == "base":
				base = u
			case t.Data == "a":
				sum, _ := strings.CutPrefix(u.Fragment, "sha256=")
				if sum == u.Fragment {
					sum = ""
				}
				p.add(at, u, "", strings.ToLower(sum))
			}
		}
	}
}

func attr(t html.Token, name string) string {
	for _, a := range t.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// add files a link by its name, or by the last part of its path.
func (p *page) add(at, u *url.URL, name, sum string) {
	u.Fragment, u.RawFragment = "", ""
	if u.User == nil && hostOf(u) == hostOf(at) {
		u.User = at.User // an absolute link into the same, private, index
	}
	if strings.HasSuffix(u.Path, "/") {
		p.projects[version.NormalizeName(path.Base(u.Path))] = u
		return
	}
	if name == "" {
		name = path.Base(u.Path)
	}
	p.files[name] = append(p.files[name], link{url: u, sha256: sum})
}

// locateWheel finds a wheel by way of listing, which is a project's page, a flat
// listing, or the root of an index.
func (r *run) locateWheel(ctx context.Context, at place, listing *url.URL, w wanted) (*url.URL, error) {
	pg, err := r.page(ctx, at, listing)
	if err == nil && len(pg.files[w.blob.Name]) == 0 && pg.projects[w.project] != nil && w.cuda != "" {
		from := listing
		listing = pg.projects[w.project]
		if err := at.profile.refuses(from, listing); err != nil {
			return nil, err
		}
		pg, err = r.page(ctx, at, listing)
	}
	if err != nil {
		return nil, err
	}
	u, err := pg.find(w.blob.Name, w.blob.SHA256, w.cuda)
	if err != nil {
		return nil, located(err, redactURL(listing))
	}
	return u, at.profile.refuses(listing, u)
}

// refuses says why a link from one page to another place is not followed.
func (p *Profile) refuses(from, to *url.URL) error {
	reason := ""
	switch {
	case !isWebURL(to.String()):
		reason = "links to something other than http"
	case from.Scheme == "https" && to.Scheme == "http":
		reason = "links from https to http"
	case !p.owns(to):
		reason = "links to another host, " + hostOf(to)
	default:
		return nil
	}
	return &failure{effect: next, reason: reason, url: redactURL(to)}
}
