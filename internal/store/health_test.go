package store

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/store/storetest"
)

// A line that drops often still brings a large file, as long as it gets on.
func TestManyDrops(t *testing.T) {
	data := content(6 << 20)
	m := storetest.New(t)
	m.Add(debPath, data)
	drop := func(w http.ResponseWriter, r *http.Request, file []byte) {
		http.ServeContent(&dropping{ResponseWriter: w, left: step + 1000}, r, "", zeroTime, strings.NewReader(string(file)))
	}
	m.Fault(debPath, slices.Repeat([]storetest.Fault{drop}, 4)...)
	f := newFetcher(t, mirrorProfile("one", m.URL))
	mustFetch(t, f, debBlob(data))
	mustHave(t, f, data)
	if len(m.Asked()) != 5 {
		t.Errorf("asked %q", m.Asked())
	}
}

// dropping hangs up after some bytes.
type dropping struct {
	http.ResponseWriter
	left int
}

func (d *dropping) Write(p []byte) (int, error) {
	n, err := d.ResponseWriter.Write(p[:min(len(p), d.left)])
	if d.left -= n; d.left == 0 {
		d.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, err
}

func poolFiles(m *storetest.Mirror, names ...string) []plan.Blob {
	var out []plan.Blob
	for _, name := range names {
		data := []byte("content of " + name)
		m.Add("/debian/pool/"+name, data)
		out = append(out, plan.Blob{Name: name, Origin: "debian/pool/" + name, SHA256: storetest.Sum(data)})
	}
	return out
}

// Three files in a row end the use of a mirror that only ever fails.
func TestStrikes(t *testing.T) {
	bad, good := storetest.New(t), storetest.New(t)
	blobs := poolFiles(good, "a", "b", "c", "d", "e")
	bad.Fault("*", slices.Repeat([]storetest.Fault{storetest.Bytes([]byte("a login page"))}, 9)...)
	f := newFetcher(t, mirrorProfile("bad", bad.URL))
	f.Jobs = 1
	_, err := f.Fetch(context.Background(), blobs)
	if err == nil || !strings.Contains(err.Error(), "served other bytes (3 files in a row failed)") {
		t.Errorf("got %v", err)
	}
	if len(bad.Asked()) != 3 {
		t.Errorf("asked %q", bad.Asked())
	}
}

// A file that a mirror does not have is no fault of it.
func TestAbsenceIsNoStrike(t *testing.T) {
	m := storetest.New(t)
	ok := poolFiles(m, "a")
	missing := poolFiles(storetest.New(t), "b", "c", "d", "e")
	f := newFetcher(t, mirrorProfile("one", m.URL))
	f.Jobs = 1
	if _, err := f.Fetch(context.Background(), missing); err == nil {
		t.Fatal("no error")
	}
	mustFetch(t, f, ok...)
}

// A mirror with faults is asked after one without.
func TestFaultyMirrorLast(t *testing.T) {
	one, two := storetest.New(t), storetest.New(t)
	blobs := poolFiles(one, "a", "b")
	poolFiles(two, "a", "b")
	one.Fault("/debian/pool/a", storetest.Bytes([]byte("x")))
	f := newFetcher(t, mirrorProfile("one", one.URL), mirrorProfile("two", two.URL))
	mustFetch(t, f, blobs[0])
	mustFetch(t, f, blobs[1])
	if len(one.Asked()) != 1 || len(two.Asked()) != 2 {
		t.Errorf("asked %q and %q", one.Asked(), two.Asked())
	}
}

// refusing is a transport that fails with errors, one after the other, and then
// passes requests on.
type refusing struct{ errs []error }

func (r *refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	if len(r.errs) == 0 {
		return http.DefaultTransport.RoundTrip(req)
	}
	err := r.errs[0]
	r.errs = r.errs[1:]
	return nil, err
}

func TestNetworkErrors(t *testing.T) {
	gone := &net.DNSError{Name: "mirror.example", Err: "no such host", IsNotFound: true}
	busy := &net.DNSError{Name: "mirror.example", Err: "server misbehaving", IsTemporary: true}
	for name, c := range map[string]struct {
		errs   []error
		reason string // empty when the file comes in the end
	}{
		"no such host":   {[]error{gone}, "host name not found: mirror.example"},
		"server busy":    {[]error{busy}, ""},
		"server is busy": {[]error{busy, busy, busy}, "cannot look up mirror.example: server misbehaving"},
		"proxy":          {[]error{&net.OpError{Op: "proxyconnect", Err: errors.New("refused")}}, "the proxy: refused"},
		"unreachable":    {[]error{&net.OpError{Op: "dial", Err: errors.New("no route to host")}}, "cannot connect: no route to host"},
		"odd":            {[]error{errors.New("odd")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait before they repeat
			m := storetest.New(t)
			blobs := poolFiles(m, "a", "b")
			f := newFetcher(t, mirrorProfile("one", m.URL))
			f.Client = &http.Client{Transport: &refusing{c.errs}}
			if c.reason == "" {
				mustFetch(t, f, blobs[0])
				return
			}
			wantReason(t, mustFail(t, f, blobs[0]), "one", c.reason)
			wantReason(t, mustFail(t, f, blobs[1]), "one", c.reason) // it is down
			if len(m.Asked()) != 0 {
				t.Errorf("asked %q", m.Asked())
			}
		})
	}
}

func TestUntrustedCertificate(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	server.Config.ErrorLog = quiet
	f := newFetcher(t, mirrorProfile("one", server.URL))
	wantReason(t, mustFail(t, f, debBlob(content(1))), "one", "TLS: ")
}

func TestNoWayBackToHTTP(t *testing.T) {
	data := content(100)
	plain := storetest.New(t)
	plain.Add(debPath, data)
	server := httptest.NewTLSServer(http.RedirectHandler(plain.URL+debPath, http.StatusFound))
	t.Cleanup(server.Close)
	p := mirrorProfile("one", server.URL)
	p.AnyHost = true
	f := newFetcher(t, p)
	f.Client = server.Client()
	wantReason(t, mustFail(t, f, debBlob(data)), "one", "redirects from https to http")
	if err := p.refuses(mustURL("https://a.example/x/"), mustURL("http://a.example/y.whl")); err == nil {
		t.Error("a link from https to http is followed")
	}
}

func TestRetryWait(t *testing.T) {
	for _, c := range []struct {
		n     int
		after string
		want  string
	}{
		{1, "", "500ms"}, {2, "", "1s"}, {1, "7", "7s"}, {1, "0", "0s"}, {2, "86400", "30s"},
		{1, "99999999999999999999", "500ms"}, {1, "-1", "500ms"}, {1, "soon", "500ms"},
		{1, "Mon, 02 Jan 2006 15:04:05 GMT", "0s"}, {1, "Fri, 02 Jan 2099 15:04:05 GMT", "30s"},
	} {
		if got := retryWait(c.n, c.after).String(); got != c.want {
			t.Errorf("try %d with %q: got %s, not %s", c.n, c.after, got, c.want)
		}
	}
}

func TestErrorSharesReasons(t *testing.T) {
	m := storetest.New(t)
	blobs := poolFiles(storetest.New(t), "a.deb", "b.deb", "c.deb")
	f := newFetcher(t, mirrorProfile("one", m.URL))
	_, err := f.Fetch(context.Background(), blobs)
	want := "no mirror gave 3 files:\n  a.deb (debian/pool/a.deb)\n  b.deb (debian/pool/b.deb)\n  c.deb (debian/pool/c.deb)\n" +
		"    one: 404 Not Found: " + m.URL + "/debian/pool/a.deb\n" +
		"Point releases and security updates remove old .debs from mirrors; `imgforge lock --upgrade` refreshes the lock."
	if err == nil || err.Error() != want {
		t.Errorf("got:\n%v\nnot:\n%s", err, want)
	}
}
