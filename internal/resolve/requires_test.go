package resolve

import (
	"fmt"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/lock"
)

func shown(entries []lock.Entry) string {
	var out []string
	for _, e := range entries {
		out = append(out, fmt.Sprintf("%s %s", e.Key, e.Value))
	}
	return strings.Join(out, "; ")
}

// What is there counts, by its own name or a provided one; what is not does not.
func TestRequiresOfDebs(t *testing.T) {
	got := shown(requiresOfDebs([]*deb{
		{name: "zsh", version: "5", arch: "amd64", depends: "libc6 (>= 2.34), zsh-common | zsh-lite, awk, zsh"},
		{name: "zsh-common", version: "5", arch: "all"},
		{name: "mawk", version: "1", arch: "amd64", provides: "awk (= 1)", depends: "libc6"},
	}))
	if want := "zsh_5_amd64 mawk,zsh-common"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestRequiresOfWheels(t *testing.T) {
	wheel := func(name string) lock.Entry {
		return lock.Entry{Kind: lock.Wheel, Key: name + "-1-py3-none-any.whl", Value: "pypi:" + name + "==1"}
	}
	via := `jinja2==1
    # via torch
markupsafe==1
    # via
    #   -c constraints
    #   jinja2
    #   Odd_Name[extra]
odd-name==1
    # via -r requirements
torch==1
    # via -r requirements
`
	got := shown(requiresOfWheels([]lock.Entry{wheel("jinja2"), wheel("markupsafe"), wheel("odd-name"), wheel("torch")}, via))
	want := "jinja2-1-py3-none-any.whl markupsafe; odd-name-1-py3-none-any.whl markupsafe; torch-1-py3-none-any.whl jinja2"
	if got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

// What is to be kept is told to each solver in its own words.
func TestKeep(t *testing.T) {
	keep := []lock.Entry{
		{Kind: lock.Wheel, Key: "torch-2.1.2+cu118-cp311-cp311-linux_x86_64.whl", Value: "pytorch/cu118:torch==2.1.2+cu118"},
		{Kind: lock.Deb, Key: "bsdutils_1:2.38-5_amd64", Value: "debian/pool/main/b/bsdutils_2.38-5_amd64.deb"},
	}
	if got := strings.Join(pins(keep), " "); got != "torch==2.1.2+cu118" {
		t.Errorf("uv is told %q", got)
	}
	if got, want := preferencesOf(keep), "Package: bsdutils\nPin: version 1:2.38-5\nPin-Priority: 990\n\n"; got != want {
		t.Errorf("apt is told %q, want %q", got, want)
	}
}
