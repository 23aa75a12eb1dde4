package registry

import (
	"errors"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// ErrPassword is a repository's name with a user or password in it. The name is not
// repeated, since messages end up in logs.
var ErrPassword = errors.New("the registry's name holds a user or password; log in with `docker login` and leave them out")

// Repository reads the name of a repository, such as registry.example.com/team/base.
func Repository(s string) (name.Repository, error) {
	if Secret(s) {
		return name.Repository{}, ErrPassword
	}
	return name.NewRepository(s)
}

// Secret tells whether a repository's name or a reference holds a user or password.
func Secret(s string) bool {
	host, _, _ := strings.Cut(s, "/")
	return strings.Contains(host, "@") && strings.Contains(s, "/")
}
