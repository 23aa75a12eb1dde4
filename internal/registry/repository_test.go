package registry

import (
	"errors"
	"strings"
	"testing"
)

func TestRepositoryRepeatsNoPassword(t *testing.T) {
	for _, s := range []string{"me:secret@registry.example.com/team/base", "secret@127.0.0.1:5000/x"} {
		if _, err := Repository(s); !errors.Is(err, ErrPassword) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", s, err)
		}
	}
	for _, s := range []string{"registry.example.com/team/base", "127.0.0.1:5000/x", "debian"} {
		if _, err := Repository(s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	if Secret("debian@sha256:abc") || Secret("docker.io/library/debian@sha256:abc") {
		t.Error("a digest is taken for a password")
	}
}
