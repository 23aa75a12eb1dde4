package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/plan"
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
