package store

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/store/storetest"
)

const (
	numpy = "numpy-1.26.4-cp311-cp311-manylinux_2_17_x86_64.whl"
	torch = "torch-2.1.2+cu118-cp311-cp311-linux_x86_64.whl"
)

func TestIndexPages(t *testing.T) {
	data := content(3000)
	for _, json := range []bool{false, true} {
		m := storetest.New(t)
		if json {
			m.JSON()
		}
		m.Wheel("/simple/zope-interface/", "other-1.whl", []byte("other"))
		m.Wheel("/simple/zope-interface/", numpy, data)
		f := newFetcher(t, mirrorProfile("one", m.URL))
		mustFetch(t, f, wheelBlob("pypi:Zope.Interface==1", numpy, data))
		mustHave(t, f, data)
		if m.Asked()[0] != "/simple/zope-interface/" {
			t.Errorf("json %v: asked %q", json, m.Asked())
		}
	}
}

// One page serves all files it lists.
func TestPageOnce(t *testing.T) {
	m := storetest.New(t)
	a, b := content(10), content(20)
	m.Wheel("/simple/numpy/", "a.whl", a)
	m.Wheel("/simple/numpy/", "b.whl", b)
	f := newFetcher(t, mirrorProfile("one", m.URL))
	mustFetch(t, f, wheelBlob("pypi:numpy==1", "a.whl", a), wheelBlob("pypi:numpy==2", "b.whl", b))
	if n := len(slices.DeleteFunc(m.Asked(), func(s string) bool { return s != "/simple/numpy/" })); n != 1 {
		t.Errorf("the page was asked for %d times", n)
	}
}

func TestFlatListing(t *testing.T) {
	data := content(3000)
	m := storetest.New(t)
	m.Add("/whl/cu118/"+torch, data)
	m.List("/whl/cu118/", "torch-2.1.2%2Bcu118..&gt;", strings.ReplaceAll(torch, "+", "%2B"), "")
	f := newFetcher(t, mirrorProfile("one", m.URL))
	mustFetch(t, f, wheelBlob("pytorch/cu118:torch==2.1.2+cu118", torch, data))
	mustHave(t, f, data)
	attempts := mustFail(t, f, wheelBlob("pytorch/cu999:torch==2.1.2+cu999", torch, content(7)))
	wantReason(t, attempts, "one", "has no torch wheels for cu999")
}

// The root of a PEP 503 index will do where a flat listing is wanted.
func TestListingIsIndexRoot(t *testing.T) {
	data := content(3000)
	m := storetest.New(t)
	m.List("/whl/cu118/", "torch", "torch/", "")
	m.Wheel("/whl/cu118/torch/", torch, data)
	f := newFetcher(t, mirrorProfile("one", m.URL))
	mustFetch(t, f, wheelBlob("pytorch/cu118:torch==2.1.2+cu118", torch, data))
	mustHave(t, f, data)
}

// A listing of all CUDA versions may have one name in several directories.
func TestListingOfAll(t *testing.T) {
	data := content(3000)
	m := storetest.New(t)
	p := mirrorProfile("one", m.URL)
	p.Wheels["cu118"] = m.URL + "/all.html/"
	m.List("/all.html/", "", "/whl/cu121/x.whl", "")
	m.List("/all.html/", "", "/whl/cu118/x.whl", "")
	m.Add("/whl/cu118/x.whl", data)
	f := newFetcher(t, p)
	if result := mustFetch(t, f, wheelBlob("pytorch/cu118:x==1", "x.whl", data)); len(result.Notes) != 0 {
		t.Errorf("notes %q", result.Notes)
	}
}

func TestIndexRefusals(t *testing.T) {
	data := content(3000)
	elsewhere := storetest.New(t)
	elsewhere.Add("/"+numpy, data)
	page := "/simple/numpy/"
	for name, c := range map[string]struct {
		setup  func(m *storetest.Mirror)
		reason string
	}{
		"no project":   {func(*storetest.Mirror) {}, "404 Not Found"},
		"not listed":   {func(m *storetest.Mirror) { m.Wheel(page, "numpy-1.whl", data) }, "does not list this file"},
		"another file": {func(m *storetest.Mirror) { m.Wheel(page, numpy, content(5)) }, "lists another file under this name"},
		"foreign href": {func(m *storetest.Mirror) { m.List(page, numpy, elsewhere.URL+"/"+numpy, storetest.Sum(data)) }, "links to another host, " + storetest.Host(elsewhere.URL)},
		"foreign redirect": {func(m *storetest.Mirror) {
			m.Fault(page, storetest.Redirect(elsewhere.URL+page))
		}, "redirects to another host"},
		"no scheme of ours": {func(m *storetest.Mirror) { m.List(page, numpy, "ftp://"+storetest.Host(m.URL)+"/"+numpy, "") }, "something other than http"},
		"huge": {func(m *storetest.Mirror) {
			m.Fault(page, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
				for chunk := make([]byte, 1<<20); ; {
					if _, err := w.Write(chunk); err != nil {
						return
					}
				}
			})
		}, "over 32 MB"},
		"bad JSON": {func(m *storetest.Mirror) {
			m.Fault(page, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
				w.Header().Set("Content-Type", "application/vnd.pypi.simple.v1+json")
				w.Write([]byte("{"))
			})
		}, "not valid JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			m := storetest.New(t)
			c.setup(m)
			f := newFetcher(t, mirrorProfile("one", m.URL))
			wantReason(t, mustFail(t, f, wheelBlob("pypi:numpy==1.26.4", numpy, data)), "one", c.reason)
		})
	}
	if asked := elsewhere.Asked(); len(asked) != 0 {
		t.Errorf("another host was asked %q", asked)
	}
}

// The next mirror serves what the first refuses, and AnyHost lets links lead away.
// tuna/issues#1050, sjtug/mirror-requests#288: pages of mirrors that link back to the origin.
func TestForeignHrefs(t *testing.T) {
	data := content(3000)
	files, index := storetest.New(t), storetest.New(t)
	files.Add("/"+numpy, data)
	index.List("/simple/numpy/", numpy, files.URL+"/"+numpy, storetest.Sum(data))
	strict, lax, named := mirrorProfile("strict", index.URL), mirrorProfile("lax", index.URL), mirrorProfile("named", index.URL)
	lax.AnyHost = true
	named.Hosts = []string{storetest.Host(files.URL)}
	for _, p := range []Profile{lax, named} {
		f := newFetcher(t, strict, p)
		result := mustFetch(t, f, wheelBlob("pypi:numpy==1.26.4", numpy, data))
		mustHave(t, f, data)
		wantNote(t, result.Notes, "strict: links to another host")
	}
}

func TestIndexes(t *testing.T) {
	m := storetest.New(t)
	closed := storetest.Closed(t)
	f := newFetcher(t, mirrorProfile("one", closed), mirrorProfile("two", m.URL), Profile{Name: "three"})
	before := []Index{{"one", closed + "/simple"}, {"two", m.URL + "/simple"}}
	if got := f.Indexes(); !slices.Equal(got, before) {
		t.Errorf("got %v", got)
	}
	mustFail(t, f, wheelBlob("pypi:numpy==1.26.4", numpy, content(1)))
	if got := f.Indexes(); !slices.Equal(got, []Index{before[1], before[0]}) {
		t.Errorf("with one down, got %v", got)
	}
}

func FuzzParsePage(f *testing.F) {
	f.Add("text/html", `<base href="/x/"><a href="a%2Bb.whl#sha256=00">a</a>`)
	f.Add("application/json", `{"files":[{"filename":"a","url":"b","hashes":{"sha256":"c"}}]}`)
	at := mustURL("http://mirror.example/simple/x/")
	f.Fuzz(func(t *testing.T, contentType, text string) {
		page, err := parsePage(at, contentType, []byte(text))
		if err != nil {
			return
		}
		for name := range page.files {
			if _, err := page.find(name, "", ""); err != nil && !strings.Contains(err.Error(), "another file") {
				t.Errorf("%q is listed but not found: %v", name, err)
			}
		}
	})
}
