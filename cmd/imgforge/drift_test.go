package main

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/imgforge/imgforge/internal/lock"
	ours "github.com/imgforge/imgforge/internal/registry"
)

// What became of a locked tag is said with the digest that stays:
// NVIDIA/nvidia-container-toolkit#152: pushed again, with other requirements;
// replicate/cog#1163, pytorch/builder#1446: removed.
func TestDriftIsTold(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	base := func(env string) v1.Image {
		return imageOf(t, []string{env}, layerOf(t, tarFiles(t, map[string]string{"etc/base": env})))
	}
	first, second := base("NVIDIA_REQUIRE_CUDA=cuda>=11.8"), base("NVIDIA_REQUIRE_CUDA=cuda>=12.1")
	tag, err := name.NewTag(host + "/nvidia/cuda:base")
	if err != nil {
		t.Fatal(err)
	}
	put := func(img v1.Image) string {
		digest, err := img.Digest()
		if err == nil {
			err = remote.Write(tag, img)
		}
		if err != nil {
			t.Fatal(err)
		}
		return digest.String()
	}
	was := put(first)
	request := lock.Request{Kind: "base", Base: "nvidia", Image: tag.String(), Arch: "amd64"}
	need := lock.Need{Set: request.Set(), Request: request}
	in := &inputs{images: &ours.Client{}, lock: (&lock.File{}).With(lock.Change{Sets: map[string][]lock.Entry{
		need.Set: {{Kind: lock.Image, Key: "nvidia_amd64_000-manifest", Value: "application/vnd.oci.image.manifest.v1+json", Size: 1, Hash: was}},
	}})}
	said := func() string {
		var stderr bytes.Buffer
		(&app{stderr: &stderr}).noteDrift(context.Background(), in, []lock.Need{need})
		return stderr.String()
	}
	if got := said(); got != "" {
		t.Errorf("nothing has moved: %s", got)
	}
	is := put(second)
	if got := said(); !strings.HasPrefix(got, "note: base nvidia: "+tag.String()+" is "+is+" now; "+was+" is locked (`imgforge lock --upgrade nvidia`") {
		t.Errorf("the tag has moved: %s", got)
	}
	if err := remote.Delete(tag); err != nil {
		t.Fatal(err)
	}
	if got := said(); got != "note: base nvidia: its registry has no "+tag.String()+" any more; "+was+" is locked\n" {
		t.Errorf("the tag is gone: %s", got)
	}
	server.Close()
	if got := said(); !strings.HasPrefix(got, "note: base nvidia: cannot ask whether "+tag.String()+" has moved: ") {
		t.Errorf("the registry is down: %s", got)
	}
}
