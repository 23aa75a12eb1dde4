// Package storetest is a small mirror for tests: Debian archives, Python indexes
// and flat listings of wheels on loopback, with faults on demand.
package storetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Mirror serves files at their paths. A path that ends in "/" and has files that
// were added as wheels below it is a listing of them.
type Mirror struct {
	URL string // without a slash at the end

	mu       sync.Mutex
	files    map[string][]byte
	listings map[string][]entry
	faults   map[string][]Fault
	asked    []string
	noRange  bool
	json     bool
}

type entry struct{ href, name, sha256 string }

// Fault answers one request instead of the mirror. file is what the mirror has
// at the path, nil for nothing.
type Fault func(w http.ResponseWriter, r *http.Request, file []byte)

// New starts a mirror that ends with the test.
func New(t testing.TB) *Mirror {
	m := &Mirror{files: map[string][]byte{}, listings: map[string][]entry{}, faults: map[string][]Fault{}}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	m.URL = server.URL
	return m
}

// Sum is the hex sha256 of data.
func Sum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// NoRange makes the mirror answer ranges with whole files.
func (m *Mirror) NoRange() { m.noRange = true }

// JSON makes listings PEP 691 where the client accepts that.
func (m *Mirror) JSON() { m.json = true }

// Add puts a file at a path such as "/debian/pool/main/z/zsh/zsh_5.9-4_amd64.deb".
func (m *Mirror) Add(at string, data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[at] = data
}

// List adds a link to a listing such as "/simple/numpy/". sum may be empty.
func (m *Mirror) List(listing, name, href, sum string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listings[listing] = append(m.listings[listing], entry{href, name, sum})
}

// Wheel puts a wheel in /packages and lists it, with its hash, in listing.
func (m *Mirror) Wheel(listing, name string, data []byte) {
	at := "/packages/" + Sum(data)[:8] + "/" + name
	m.Add(at, data)
	m.List(listing, name, strings.ReplaceAll(at, "+", "%2B"), Sum(data))
}

// Fault queues faults for a path; each answers one request. The path "*" is any
// path that has none of its own.
func (m *Mirror) Fault(at string, faults ...Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults[at] = append(m.faults[at], faults...)
}

// Asked returns the requests so far: the path, and the range if there was one.
func (m *Mirror) Asked() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.asked)
}

// ServeHTTP answers as a mirror.
func (m *Mirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	at := r.URL.Path
	m.asked = append(m.asked, strings.TrimSpace(at+" "+r.Header.Get("Range")))
	data, entries := m.files[at], m.listings[at]
	var fault Fault
	for _, key := range []string{at, "*"} {
		if queue := m.faults[key]; fault == nil && len(queue) > 0 {
			fault, m.faults[key] = queue[0], queue[1:]
		}
	}
	noRange := m.noRange
	m.mu.Unlock()
	switch {
	case fault != nil:
		fault(w, r, data)
	case entries != nil:
		m.list(w, r, entries)
	case data == nil:
		http.NotFound(w, r)
	case noRange:
		w.Write(data)
	default:
		http.ServeContent(w, r, path.Base(at), time.Time{}, bytes.NewReader(data))
	}
}

func (m *Mirror) list(w http.ResponseWriter, r *http.Request, entries []entry) {
	if m.json && strings.Contains(r.Header.Get("Accept"), "vnd.pypi.simple.v1+json") {
		type file struct {
			Filename string            `json:"filename"`
			URL      string            `json:"url"`
			Hashes   map[string]string `json:"hashes"`
		}
		var files []file
		for _, e := range entries {
			files = append(files, file{e.name, e.href, map[string]string{"sha256": e.sha256}})
		}
		w.Header().Set("Content-Type", "application/vnd.pypi.simple.v1+json")
		json.NewEncoder(w).Encode(map[string]any{"files": files})
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, "<!DOCTYPE html><html><body>\n")
	for _, e := range entries {
		href := e.href
		if e.sha256 != "" {
			href += "#sha256=" + e.sha256
		}
		fmt.Fprintf(w, "<a href=\"%s\">%s</a><br/>\n", html.EscapeString(href), html.EscapeString(e.name))
	}
	fmt.Fprint(w, "</body></html>\n")
}

// Status answers with a status and, unless empty, Retry-After.
func Status(code int, retryAfter string) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.WriteHeader(code)
	}
}

// Bytes answers with other bytes.
func Bytes(data []byte) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ []byte) { w.Write(data) }
}

// Redirect answers with a redirect.
func Redirect(to string) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
	}
}

// Truncate announces the whole file, sends n bytes and hangs up.
func Truncate(n int) Fault {
	return func(w http.ResponseWriter, _ *http.Request, file []byte) {
		w.Header().Set("Content-Length", fmt.Sprint(len(file)))
		w.Write(file[:n])
		flush(w)
		panic(http.ErrAbortHandler)
	}
}

// Stall sends n bytes and then nothing, until the client goes.
func Stall(n int) Fault {
	return func(w http.ResponseWriter, r *http.Request, file []byte) {
		w.Header().Set("Content-Length", fmt.Sprint(len(file)))
		w.Write(file[:n])
		flush(w)
		<-r.Context().Done()
	}
}

func flush(w http.ResponseWriter) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

// Closed is an address where nothing listens.
func Closed(t testing.TB) string {
	t.Helper()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	return server.URL
}

// Host is the host and port of a URL.
func Host(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Host
}
