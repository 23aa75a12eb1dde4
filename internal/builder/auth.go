package builder

import (
	"io"

	"github.com/docker/cli/cli/config"
	"github.com/moby/buildkit/session"
	"github.com/moby/buildkit/session/auth/authprovider"
)

// attachables gives the engine what docker login left on this machine, when a
// registry asks for it.
func (b *Builder) attachables() []session.Attachable {
	file := config.LoadDefaultConfigFile(io.Discard)
	return []session.Attachable{authprovider.NewDockerAuthProvider(authprovider.DockerAuthProviderConfig{
		AuthConfigProvider: authprovider.LoadAuthConfig(file),
	})}
}
