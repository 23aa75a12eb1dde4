package store

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/store/storetest"
)

// A company's proxy opens TLS with a certificate of its own: it is refused, with
// what to do, until that is trusted; then it serves, and no message tells its
// password or anything of its authority.
func TestInterceptingProxy(t *testing.T) {
	data := content(100_000)
	m := storetest.New(t)
	m.Add(debPath, data)
	m.Wheel("/simple/x/", "x-1-py3-none-any.whl", data[1:])
	proxy := storetest.NewProxy(t, m, url.UserPassword("robot", "hunter2"))
	dir := t.TempDir()
	ca, empty := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "empty.pem")
	for name, text := range map[string][]byte{ca: proxy.CA, empty: nil} {
		if err := os.WriteFile(name, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	blobs := []plan.Blob{debBlob(data), wheelBlob("pypi:x==1", "x-1-py3-none-any.whl", data[1:])}
	for name, c := range map[string]struct {
		env    map[string]string
		reason string // empty when it works
	}{
		"its authority unknown":    {map[string]string{"https_proxy": proxy.URL}, "certificate signed by unknown authority (where a company's proxy signs certificates, name a file with its own in SSL_CERT_FILE)"},
		"its authority trusted":    {map[string]string{"HTTPS_PROXY": proxy.URL, "SSL_CERT_FILE": ca}, ""},
		"as pip is told":           {map[string]string{"https_proxy": proxy.URL, "REQUESTS_CA_BUNDLE": ca}, ""},
		"another password":         {map[string]string{"https_proxy": strings.Replace(proxy.URL, "hunter2", "hunter3", 1), "SSL_CERT_FILE": ca}, "the proxy wants another name and password"},
		"no such file":             {map[string]string{"https_proxy": proxy.URL, "SSL_CERT_FILE": ca + "x"}, "SSL_CERT_FILE: open " + ca + "x: no such file"},
		"a file of something else": {map[string]string{"https_proxy": proxy.URL, "SSL_CERT_FILE": empty}, "holds no certificate in PEM"},
		"the proxy is away":        {map[string]string{"https_proxy": strings.Replace(storetest.Closed(t), "://", "://robot:hunter2@", 1), "SSL_CERT_FILE": ca}, "the proxy: connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFetcher(t, mirrorProfile("far", "https://mirror.example"))
			f.Env = Environment{Env: c.env}
			f.sleep = func(context.Context, time.Duration) error { return nil }
			said := ""
			f.Progress = func(p Progress) { said += p.Note }
			result, err := f.Fetch(context.Background(), blobs)
			if c.reason == "" {
				if err != nil || result.Files != 2 {
					t.Fatalf("got %+v, %v", result, err)
				}
				mustHave(t, f, data)
				if size, err := f.Size(context.Background(), "https://mirror.example"+debPath); err != nil || size != int64(len(data)) {
					t.Errorf("size %d, %v", size, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), c.reason) {
				t.Errorf("got %v, want %q", err, c.reason)
			}
			if err != nil {
				said += err.Error()
			}
			for _, secret := range []string{"hunter", "robot", "Office Proxy"} {
				if strings.Contains(said, secret) {
					t.Errorf("%q is told: %s", secret, said)
				}
			}
		})
	}
	if hosts := proxy.Hosts(); !slices.Contains(hosts, "mirror.example:443") {
		t.Errorf("the proxy was asked for %q", hosts)
	}
}
