package store

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/imgforge/imgforge/internal/plan"
)

// A page's links are found or left out, and none leaves the mirror unseen.
func FuzzPage(f *testing.F) {
	f.Add("text/html", []byte(`<base href="../"><a href="x-1.whl#sha256=AB">x</a><a href="//[::1">y</a><a HREF='z/'>`))
	f.Add("text/html", []byte(`<a href="javascript:alert(1)"><a href="https://other.example/x.whl"><a href="data:,x.whl">`))
	f.Add("application/vnd.pypi.simple.v1+json", []byte(`{"files":[{"filename":"x.whl","url":"../x.whl","hashes":{"sha256":"AB"}},{"url":":"},null]}`))
	f.Add("json", []byte(`{"files":[{"url":1}]}`))
	own := Profile{Name: "one", Indexes: []string{"https://mirror.example/simple"}}
	f.Fuzz(func(t *testing.T, contentType string, data []byte) {
		at := mustURL("https://ada:s3cret@mirror.example/simple/x/")
		p, err := parsePage(at, contentType, data)
		if err != nil {
			if strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the password is told: %v", err)
			}
			return
		}
		for name := range p.files {
			u, err := p.find(name, "", "cu118")
			if err == nil && own.refuses(at, u) == nil && (u.Scheme != "https" || hostOf(u) != "mirror.example") {
				t.Errorf("%s is taken from %s", name, u)
			}
			if err == nil && u.User != nil && hostOf(u) != "mirror.example" && u.User.String() == "ada:s3cret" {
				t.Errorf("the password goes to %s", u.Host)
			}
		}
	})
}

// machineFrom is a machine whose one file holds text.
func machineFrom(t *testing.T, file, text string) Environment {
	root := t.TempDir()
	at := filepath.Join(root, file)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return Environment{Root: root, Env: map[string]string{"HOME": "/root"}}
}

func FuzzPipConf(f *testing.F) {
	f.Add("[global]\nindex-url = https://a.example/simple\nextra-index-url =\n  https://b.example\n  file:///x\n[install]\nno-index: yes\n")
	f.Add("index-url=x\n[\n]]=\n = \n\t:")
	f.Fuzz(func(t *testing.T, text string) {
		indexes, reasons := pipIndexes(machineFrom(t, "etc/pip.conf", text))
		if len(indexes)+len(reasons) == 0 {
			t.Error("no index, and no reason")
		}
		for _, raw := range indexes {
			if !isWebURL(raw) {
				t.Errorf("%q is taken for an index", raw)
			}
		}
	})
}

func FuzzSourcesList(f *testing.F) {
	f.Add("deb [arch=amd64] http://a.example/debian bookworm main # x\ndeb mirror+file:/etc/apt/sources.list bookworm main\n")
	f.Add("deb [ deb\ndeb http://[::1 jammy main\ndeb\thttps://u:p@a.example jammy-updates main\n")
	checkArchives(f, "etc/apt/sources.list")
}

func FuzzSourcesStanzas(f *testing.F) {
	f.Add("Types: deb\nURIs: https://a.example/debian\nSuites: bookworm\n bookworm-updates\nComponents: main\nSigned-By:\n -----BEGIN PGP\n .\n\n#\n: \nTypes: deb")
	f.Add("\x00\n:\n ")
	checkArchives(f, "etc/apt/sources.list.d/x.sources")
}

// A stanza's URIs and suites multiply: a few kilobytes are not millions of sources.
func TestStanzaOfManySources(t *testing.T) {
	text := "Types: deb\nURIs:" + strings.Repeat(" https://a.example/debian", 3000) + "\nSuites:" + strings.Repeat(" bookworm", 3000) + "\nComponents: main\n"
	if got := stanzas([]byte(text)); len(got) != maxListed*maxListed || got[0].suite != "bookworm" {
		t.Errorf("%d sources", len(got))
	}
}

func checkArchives(f *testing.F, file string) {
	f.Fuzz(func(t *testing.T, text string) {
		for name, raw := range aptArchives(machineFrom(t, file, text)) {
			if _, err := archiveURL(raw, "pool/a+b.deb"); err != nil || !isWebURL(raw) {
				t.Errorf("%s is at %q: %v", name, raw, err)
			}
		}
	})
}

func FuzzNetrc(f *testing.F) {
	f.Add("machine a.example login ada password \"two \\\" words\"\nmacdef x\ny\n\ndefault login z password z")
	f.Add("machine https://a.example:8443/x/y login a\npassword\n# c\nlogin\nmachine")
	f.Fuzz(func(t *testing.T, text string) {
		logins := parseNetrc(text)
		if len(logins) > len(strings.Fields(text)) {
			t.Errorf("%d entries", len(logins))
		}
		for _, raw := range []string{"https://a.example/x/y/z", "http://a.example:8443/"} {
			for _, matches := range []func(login, *url.URL) bool{login.aptMatches, login.pipMatches} {
				with, err := url.Parse(withLogin(raw, logins, matches))
				if err != nil || redactURL(with) != raw {
					t.Errorf("%s became %v, %v", raw, with, err)
				}
			}
		}
	})
}

func FuzzOrigin(f *testing.F) {
	for _, s := range []string{"debian/pool/a.deb", "pypi:x==1", "pytorch/cu118:torch==2.1+cu118", "rootfs:x", "image:y", "debian/../x", "ubuntu/%2e%2e/x"} {
		f.Add("x.deb", s)
	}
	sum := strings.Repeat("0", 64)
	f.Fuzz(func(t *testing.T, name, origin string) {
		w, err := parseOrigin(plan.Blob{Name: name, Origin: origin, SHA256: sum})
		if err != nil || w.archive == "" {
			return
		}
		u, err := archiveURL("https://mirror.example/root", w.path)
		if err != nil || u.Host != "mirror.example" || !strings.HasPrefix(u.Path, "/root/") || u.RawQuery != "" {
			t.Errorf("%q leads to %v, %v", origin, u, err)
		}
	})
}

// Whatever a server says of ranges and of waiting is taken calmly.
func FuzzHeaders(f *testing.F) {
	f.Add("bytes 0-9/10", "120")
	f.Add("bytes */-1", "Fri, 31 Dec 1999 23:59:59 GMT")
	f.Fuzz(func(t *testing.T, contentRange, retryAfter string) {
		resp := &http.Response{Header: http.Header{"Content-Range": {contentRange}}}
		if totalOf(resp) < 0 {
			t.Errorf("a length of %d", totalOf(resp))
		}
		if wait := retryWait(1, retryAfter); wait < 0 || wait > longestWait {
			t.Errorf("a wait of %s", wait)
		}
	})
}

// No URL is shown with what may be secret in it.
func FuzzRedact(f *testing.F) {
	f.Add("ada", "s3cret/?#@:", "mirror.example")
	f.Fuzz(func(t *testing.T, user, password, host string) {
		if !utf8.ValidString(password) || len(password) < 6 || strings.Contains(host, password) || strings.Contains("https://mirror.example/simple", password) {
			return
		}
		for _, raw := range []string{
			(&url.URL{Scheme: "https", User: url.UserPassword(user, password), Host: "mirror.example", Path: "/simple"}).String(),
			"https://" + user + ":" + password + "@mirror.example/simple",
		} {
			u, err := url.Parse(raw)
			if err != nil || u.User == nil { // then it has none, by its syntax
				continue
			}
			if got := redact(raw); strings.Contains(got, password) {
				t.Errorf("%s is shown as %s", raw, got)
			}
		}
	})
}
