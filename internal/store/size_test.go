package store

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/store/storetest"
)

// guarded answers only who gives a name and a password.
func guarded(user, password string) storetest.Fault {
	return func(w http.ResponseWriter, r *http.Request, file []byte) {
		if u, p, _ := r.BasicAuth(); u != user || p != password {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Write(file)
	}
}

func TestSize(t *testing.T) {
	const at = "/packages/x.whl"
	refuses := func(w http.ResponseWriter, r *http.Request, _ []byte) { w.WriteHeader(http.StatusMethodNotAllowed) }
	for name, c := range map[string]struct {
		fault storetest.Fault
		want  string // of the error; empty when there is a size
	}{
		"head":               {nil, ""},
		"no head":            {refuses, ""},
		"busy":               {storetest.Status(http.StatusServiceUnavailable, "0"), ""},
		"wants the password": {guarded("ada", "s3cret"), ""},
		"another password":   {guarded("ada", "other"), "401 Unauthorized: it wants another name and password"},
		"gone":               {storetest.Status(http.StatusNotFound, ""), "404 Not Found"},
		"redirects away":     {storetest.Redirect("http://elsewhere.example/x.whl"), "redirects to another host, elsewhere.example"},
	} {
		t.Run(name, func(t *testing.T) {
			m := storetest.New(t)
			m.Add(at, content(1234))
			if c.fault != nil {
				m.Fault(at, c.fault)
			}
			p := mirrorProfile("one", m.URL)
			p.Indexes[0] = strings.Replace(p.Indexes[0], "://", "://ada:s3cret@", 1)
			size, err := newFetcher(t, p).Size(context.Background(), m.URL+at)
			if c.want == "" && (err != nil || size != 1234) {
				t.Errorf("got %d, %v", size, err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret")) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if _, err := newFetcher(t).Size(context.Background(), "http://a.example/x"); err == nil || !strings.Contains(err.Error(), "no mirror owns") {
		t.Errorf("got %v", err)
	}
}

// The host profile's links may lead to a host of which netrc has the password,
// and no error tells it.
func TestLoginOfAnotherHost(t *testing.T) {
	data := content(1000)
	index, files := storetest.New(t), storetest.New(t)
	files.Add("/x-1-py3-none-any.whl", data)
	files.Fault("/x-1-py3-none-any.whl", guarded("ada", "s3cret"), storetest.Status(http.StatusForbidden, ""))
	// One server by two names: netrc has one of them.
	href := strings.Replace(files.URL, "127.0.0.1", "localhost", 1) + "/x-1-py3-none-any.whl"
	index.List("/simple/x/", "x-1-py3-none-any.whl", href, storetest.Sum(data))
	p := machine{
		vars:  map[string]string{"PIP_INDEX_URL": index.URL + "/simple"},
		files: map[string]string{"home/ada/.netrc": "machine localhost login ada password s3cret"},
	}.host(t)
	f := newFetcher(t, p)
	blob := wheelBlob("pypi:x==1", "x-1-py3-none-any.whl", data)
	mustFetch(t, f, blob)
	mustHave(t, f, data)
	other := newFetcher(t, p)
	if got := mustFail(t, other, blob); strings.Contains(got[0].URL+got[0].Reason, "s3cret") {
		t.Errorf("the password is told: %+v", got)
	}
}
