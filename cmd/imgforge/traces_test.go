package main

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/imagetest"
	"github.com/imgforge/imgforge/internal/store"
)

// traces are strings of this machine that may turn up nowhere, by what they are.
func traces(t *testing.T, w world) map[string]string {
	t.Helper()
	out := map[string]string{"user": user, "state directory": scratch, "repository": repository()}
	if name, err := os.Hostname(); err == nil && len(name) > 3 && name != "localhost" {
		out["host name"] = name
	}
	if home := os.Getenv("HOME"); home != "" && home != "/root" && home != "/" {
		out["home directory"] = home
	}
	for i, host := range mirrorHosts(t) {
		out[fmt.Sprintf("mirror host %d", i)] = host
	}
	return out
}

// mirrorHosts are the hosts that the profile host leads to on this machine.
func mirrorHosts(t *testing.T) []string {
	t.Helper()
	hosts := map[string]bool{}
	note := func(raw string) {
		if u, err := url.Parse(strings.TrimSpace(raw)); err == nil && u.Hostname() != "" {
			hosts[u.Hostname()] = true
		}
	}
	a := &app{env: map[string]string{}}
	for _, kv := range environ() {
		name, value, _ := strings.Cut(kv, "=")
		a.env[name] = value
	}
	profiles, err := store.LoadProfiles([]diag.Str{{Value: "host"}}, nil, a.environment())
	if err != nil {
		t.Fatal(err)
	}
	for _, index := range (&store.Fetcher{Profiles: profiles}).Indexes() {
		note(index.URL)
		for _, href := range links(t.Context(), strings.TrimSuffix(index.URL, "/")+"/tqdm/") {
			note(href)
		}
	}
	sites, _ := exec.Command("apt-get", "indextargets", "--format", "$(SITE)").Output()
	for site := range strings.Lines(string(sites)) {
		note(site)
	}
	if len(hosts) == 0 {
		t.Fatal("the profile host leads nowhere on this machine")
	}
	var out []string
	for host := range hosts {
		out = append(out, host)
	}
	return out
}

var href = regexp.MustCompile(`href="([^"#]+)`)

// links are the absolute links of a page.
func links(ctx context.Context, page string) (out []string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return nil
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	for _, m := range href.FindAllSubmatch(data, -1) {
		out = append(out, string(m[1]))
	}
	return out
}

// Nothing of the machine is in any layer or configuration.
func TestNoTraces(t *testing.T) {
	w, _ := built(t)
	secrets := traces(t, w)
	for _, img := range imagetest.Open(t, w.dist) {
		raw, err := img.RawConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := img.RawManifest()
		if err != nil {
			t.Fatal(err)
		}
		for what, secret := range secrets {
			if bytes.Contains(raw, []byte(secret)) || bytes.Contains(manifest, []byte(secret)) {
				t.Errorf("%s: its configuration names the %s", img.Tag, what)
			}
		}
		epoch := img.Config.Created.Time
		img.EachFile(t, func(layer int, h *tar.Header, content io.Reader) {
			checkTimes(t, epoch, h)
			data, err := io.ReadAll(content)
			if err != nil {
				t.Fatal(err)
			}
			for what, secret := range secrets {
				// A package may well name a public index in its own files.
				if strings.HasPrefix(what, "mirror") && shipped(h.Name) {
					continue
				}
				if bytes.Contains(data, []byte(secret)) || strings.Contains(h.Name+h.Linkname+h.Uname+h.Gname, secret) {
					t.Errorf("%s: layer %d: %s names the %s", img.Tag, layer, h.Name, what)
				}
			}
		})
	}
}

// All that a step can see and keep is the same on every machine; TestColdBuild
// compares the digests.
func TestSurroundings(t *testing.T) {
	img := cellImage(t, cellA)
	got := strings.Split(img.File(t, "etc/surroundings"), "\n")
	slices.Sort(got[:max(0, slices.Index(got, "127.0.0.1\tlocalhost imgforge"))]) // the environment
	want := []string{
		"HOME=/root", "LC_ALL=C.UTF-8", "PATH=/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"PWD=/", "PYTHONDONTWRITEBYTECODE=1", "PYTHONHASHSEED=0", fmt.Sprint("SOURCE_DATE_EPOCH=", img.Config.Created.Unix()),
		"127.0.0.1\tlocalhost imgforge", "::1\tlocalhost ip6-localhost ip6-loopback", "imgforge", "",
	}
	if !slices.Equal(got, want) {
		t.Errorf("a step sees\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// checkTimes holds a header to the epoch: nothing is younger.
func checkTimes(t *testing.T, epoch time.Time, h *tar.Header) {
	t.Helper()
	if h.ModTime.After(epoch) || h.AccessTime.After(epoch) || h.ChangeTime.After(epoch) {
		t.Errorf("%s: times %s, %s, %s are after the epoch %s", h.Name, h.ModTime, h.AccessTime, h.ChangeTime, epoch)
	}
}

// shipped tells whether a file comes out of a package as it is.
func shipped(name string) bool {
	dir := path.Clean("/" + name)
	return strings.HasPrefix(dir, "/usr/share/") || strings.HasPrefix(dir, "/usr/lib/") || strings.HasPrefix(dir, "/usr/bin/") ||
		strings.Contains(dir, "/site-packages/") || strings.HasPrefix(dir, "/var/lib/dpkg/info/")
}
