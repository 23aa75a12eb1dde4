package graph

import (
	"encoding/json"
	"io/fs"
	"strings"
	"time"

	"github.com/moby/buildkit/client/llb"
	ocispecs "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/imgforge/imgforge/internal/plan"
)

// systemPath is PATH for steps that must not see the virtual environment.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// imageConfig writes the OCI image configuration. History is given whole, one
// entry a layer: BuildKit would fill in its own, which depend on its cache.
func imageConfig(p *plan.Plan, layers []string) ([]byte, error) {
	created := time.Unix(p.Epoch, 0).UTC()
	os, arch, _ := strings.Cut(p.Platform, "/")
	img := ocispecs.Image{
		Created:  &created,
		Platform: ocispecs.Platform{OS: os, Architecture: arch},
		Config: ocispecs.ImageConfig{
			Env:          p.Config.Env,
			Cmd:          p.Config.Cmd,
			WorkingDir:   p.Config.WorkingDir,
			Labels:       p.Config.Labels,
			ExposedPorts: map[string]struct{}{},
		},
		RootFS: ocispecs.RootFS{Type: "layers"},
	}
	for _, port := range p.Config.Ports {
		img.Config.ExposedPorts[port] = struct{}{}
	}
	for _, what := range layers {
		img.History = append(img.History, ocispecs.History{Created: &created, CreatedBy: what, Comment: "imgforge"})
	}
	return json.Marshal(img)
}

func platformOf(platform string) llb.ConstraintsOpt {
	if platform == "linux/arm64" {
		return llb.LinuxArm64
	}
	return llb.LinuxAmd64
}

// pathOf is PATH as the image sets it.
func pathOf(p *plan.Plan) string {
	for _, kv := range p.Config.Env {
		if value, ok := strings.CutPrefix(kv, "PATH="); ok {
			return value
		}
	}
	return systemPath
}

// parentMode is the mode of a directory nobody declared. Where the base has one
// with another mode, that must stay: a layer's entry replaces the base's.
func parentMode(dir string) uint32 {
	if dir == "/root" {
		return 0o700
	}
	return 0o755
}

func fileMode(mode uint32) fs.FileMode { return fs.FileMode(mode & 0o777) }

// cut splits NAME=value.
func cut(kv string) (name, value string) {
	name, value, _ = strings.Cut(kv, "=")
	return name, value
}
