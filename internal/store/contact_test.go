package store

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/store/storetest"
)

// The hosts are those of the profiles that have what is wanted, in their order;
// what nobody has adds none.
func TestContacts(t *testing.T) {
	sum := strings.Repeat("a", 64)
	blobs := []plan.Blob{
		{Name: "a.deb", Origin: "debian/pool/a.deb", SHA256: sum, Size: 5},
		{Name: "b.deb", Origin: "debian/pool/b.deb", SHA256: sum, Size: 6},
		{Name: "a-1-py3-none-any.whl", Origin: "pypi:a==1", SHA256: sum, Size: 7},
		{Name: "torch-1.whl", Origin: "pytorch/cu118:torch==1", SHA256: sum},
		{Name: "root.tar", Origin: "rootfs:root.tar", SHA256: sum, Size: 8},
	}
	profiles := []Profile{
		{Name: "one", Archives: map[string]string{"debian": "https://One.invalid:443/debian"}, Hosts: []string{"files.one.invalid"}},
		{Name: "two", Archives: map[string]string{"debian": "http://two.invalid/debian"}, Indexes: []string{"https://user:secret@two.invalid/simple", "https://more.invalid:8443/simple"}, AnyHost: true},
		{Name: "three", Wheels: map[string]string{"cu121": "https://three.invalid/cu121"}},
	}
	var got []string
	for _, c := range Contacts(profiles, blobs, Environment{Env: map[string]string{"http_proxy": "http://me:secret@proxy.invalid:3128"}}) {
		got = append(got, fmt.Sprintf("%s %s/%s %d %d first=%t any=%t proxy=%s", c.Host, c.Mirror, c.For, c.Files, c.Bytes, c.First, c.AnyHost, c.Proxy))
	}
	want := []string{
		"one.invalid one/debian 2 11 first=true any=false proxy=",
		"files.one.invalid one/links of its pages 2 11 first=true any=false proxy=",
		"two.invalid two/debian 2 11 first=false any=true proxy=proxy.invalid:3128",
		"two.invalid two/pypi 1 7 first=true any=true proxy=",
		"more.invalid:8443 two/pypi 1 7 first=true any=true proxy=",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A registry that keeps files is a host; a directory is none, and what it has is
// asked of others only where it fails.
func TestContactsOfKeptFiles(t *testing.T) {
	blobs := []plan.Blob{{Name: "a.deb", Origin: "debian/pool/a.deb", SHA256: strings.Repeat("a", 64), Size: 5}}
	at := func(root string) func(plan.Blob) string { return func(b plan.Blob) string { return root + b.SHA256 } }
	far := Profile{Name: "far", Archives: map[string]string{"debian": "https://far.invalid/debian"}}
	for root, want := range map[string]string{
		"https://hub.invalid/v2/x/blobs/sha256:": "hub.invalid kept first=true, far.invalid far first=false",
		"file:///":                               "far.invalid far first=false",
	} {
		var got []string
		for _, c := range Contacts([]Profile{{Name: "kept", AnyHost: true, File: at(root)}, far}, blobs, Environment{Env: map[string]string{}}) {
			got = append(got, fmt.Sprintf("%s %s first=%t", c.Host, c.Mirror, c.First))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: got %q", root, got)
		}
	}
}

// recording is a transport that notes the hosts it is asked for.
type recording struct {
	mu    sync.Mutex
	hosts map[string]bool
}

func (r *recording) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.hosts[req.URL.Host] = true
	r.mu.Unlock()
	return http.DefaultTransport.RoundTrip(req)
}

// What a Fetcher asks is what was listed: first hosts alone while they give
// everything, and all of them once one gives nothing.
func TestContactsAreTrue(t *testing.T) {
	deb, wheel := []byte("a package"), []byte("a wheel")
	blobs := []plan.Blob{
		{Name: "a.deb", Origin: "debian/pool/a.deb", SHA256: storetest.Sum(deb), Size: int64(len(deb))},
		{Name: "a-1-py3-none-any.whl", Origin: "pypi:a==1", SHA256: storetest.Sum(wheel), Size: int64(len(wheel))},
	}
	for _, lacking := range []bool{false, true} {
		first, second, third, unused := storetest.New(t), storetest.New(t), storetest.New(t), storetest.New(t)
		third.Add("/debian/pool/a.deb", deb)
		third.Wheel("/simple/a/", "a-1-py3-none-any.whl", wheel)
		if !lacking {
			first.Add("/debian/pool/a.deb", deb)
			second.Wheel("/simple/a/", "a-1-py3-none-any.whl", wheel)
		}
		profiles := []Profile{
			{Name: "first", Archives: map[string]string{"debian": first.URL + "/debian"}, Wheels: map[string]string{"cu118": unused.URL}},
			{Name: "second", Indexes: []string{second.URL + "/simple"}},
			{Name: "third", Archives: map[string]string{"debian": third.URL + "/debian"}, Indexes: []string{third.URL + "/simple"}},
		}
		want := map[string]bool{}
		for _, c := range Contacts(profiles, blobs, Environment{}) {
			if c.First || lacking {
				want[c.Host] = true
			}
		}
		s, err := Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		asked := &recording{hosts: map[string]bool{}}
		f := &Fetcher{Store: s, Profiles: profiles, Client: &http.Client{Transport: asked}}
		if _, err := f.Fetch(t.Context(), blobs); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(asked.hosts, want) {
			t.Errorf("lacking=%t: asked %v, listed %v", lacking, asked.hosts, want)
		}
	}
}
