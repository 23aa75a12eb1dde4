package main

import (
	"encoding/json"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/store"
	"github.com/imgforge/imgforge/internal/store/storetest"
)

// fixtures are two mirrors of the flow case's lock: all of it, and its .debs alone.
func fixtures(t *testing.T) (all, debs *storetest.Mirror, args []string) {
	t.Helper()
	dir := repository("testdata", "flow", "small")
	data, err := os.ReadFile(dir + "/small.lock")
	if err != nil {
		t.Fatal(err)
	}
	file, err := lock.Parse("small.lock", data)
	if err != nil {
		t.Fatal(err)
	}
	all, debs = storetest.New(t), storetest.New(t)
	for _, e := range file.Entries {
		switch e.Kind {
		case lock.Deb:
			all.Add("/"+e.Value, make([]byte, e.Size))
			debs.Add("/"+e.Value, make([]byte, e.Size))
		case lock.Wheel:
			project, _, _ := strings.Cut(strings.TrimPrefix(e.Value, "pypi:"), "==")
			all.Add("/files/"+e.Key, make([]byte, e.Size))
			all.List("/simple/"+project+"/", e.Key, "/files/"+path.Base(e.Key), strings.TrimPrefix(e.Hash, "sha256:"))
		}
	}
	return all, debs, []string{"mirrors", "--matrix", dir + "/matrix.yaml", "--recipes", dir + "/recipes", "--lock", dir + "/small.lock", "--progress", "plain"}
}

func TestMirrors(t *testing.T) {
	all, debs, args := fixtures(t)
	file := profiles(t, debs.URL, all.URL, storetest.Closed(t))
	args = append(args, "--mirror-file", file)
	r := imgforge(t, append(args, "--mirrors", "first,second,third")...).wants(t, exitDone)
	for _, want := range []string{"first ", " yes ", "4/9", "9/9", "third ", "connection refused", "Asked for 9 files.", "Recommended: --mirrors ", "first: 404 Not Found: ", "numpy-1.0-py3-none-any.whl"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no %q in\n%s", want, r.stdout)
		}
	}
	r = imgforge(t, append(args, "--mirrors", "first,third", "--json")...).wants(t, exitCheck)
	var got store.ProbeResult
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Nowhere) != 5 || len(got.Order) != 1 || got.Order[0] != "first" || got.Mirrors[1].Reachable {
		t.Errorf("got %+v", got)
	}
	r = imgforge(t, append(args, "--mirrors", "third")...).wants(t, exitCheck)
	if !strings.Contains(r.stdout, "None of these mirrors is of use here.") {
		t.Errorf("got\n%s", r.stdout)
	}
	r = imgforge(t, append(args, "--mirrors", "nope")...).wants(t, exitInput)
	if !strings.Contains(r.stderr, `unknown mirror profile "nope"`) {
		t.Errorf("got\n%s", r.stderr)
	}
}

// Through a proxy that opens TLS: without its authority the answer says what to
// set; with it all is there; and what is secret stands in no output and no plan.
func TestMirrorsThroughProxy(t *testing.T) {
	all, _, args := fixtures(t)
	proxy := storetest.NewProxy(t, all, url.UserPassword("robot", "hunter2"))
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, proxy.CA, 0o644); err != nil {
		t.Fatal(err)
	}
	args = append(args, "--mirror-file", profiles(t, "https://mirror.example"), "--mirrors", "first")
	env := append(environ(), "https_proxy="+proxy.URL, "HTTPS_PROXY=", "SSL_CERT_FILE=", "REQUESTS_CA_BUNDLE=", "CURL_CA_BUNDLE=")
	without := call(t, env, args...).wants(t, exitCheck)
	if !strings.Contains(without.stdout, "SSL_CERT_FILE") {
		t.Errorf("what to set is not told:\n%s", without.stdout)
	}
	env = append(env, "SSL_CERT_FILE="+ca)
	with := call(t, env, args...).wants(t, exitDone)
	if !strings.Contains(with.stdout, "9/9") {
		t.Errorf("got\n%s", with.stdout)
	}
	plan := append([]string{"plan", "--json"}, args[1:len(args)-6]...)
	planned := call(t, env, plan...).wants(t, exitDone)
	for _, r := range []result{without, with, planned} {
		for _, secret := range []string{"hunter2", "robot", "Office Proxy", "BEGIN CERTIFICATE"} {
			if strings.Contains(r.stdout+r.stderr, secret) {
				t.Errorf("%q is told:\n%s\n%s", secret, r.stdout, r.stderr)
			}
		}
	}
}
