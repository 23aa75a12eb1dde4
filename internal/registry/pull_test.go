package registry

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

const amd64 = "linux/amd64"

// hub is an empty registry on loopback; it returns its host.
func hub(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// push puts an image of one random layer at each reference and returns its digest.
func push(t *testing.T, refs ...string) string {
	t.Helper()
	img, err := random.Image(100, 1)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", "amd64"
	if img, err = mutate.ConfigFile(img, config); err != nil {
		t.Fatal(err)
	}
	for _, ref := range refs {
		write(t, ref, img)
	}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

func write(t *testing.T, ref string, img v1.Image) {
	t.Helper()
	parsed, err := name.ParseReference(ref)
	if err == nil {
		err = remote.Write(parsed, img)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, ref string) {
	t.Helper()
	parsed, err := name.ParseReference(ref)
	if err == nil {
		err = remote.Delete(parsed)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (c *Client) mustResolve(t *testing.T, ref string) string {
	t.Helper()
	img, err := c.Resolve(context.Background(), ref, amd64)
	if err != nil {
		t.Fatal(err)
	}
	return "sha256:" + img.Parts[0].SHA256
}

// replicate/cog#1163, pytorch/builder#1446: a tag that upstream removed is told as
// such, while its digest is still there; a mirror that has kept the tag will do.
func TestRemovedTag(t *testing.T) {
	upstream, kept := hub(t), hub(t)
	ref := upstream + "/nvidia/cuda:11.8.0"
	digest := push(t, ref, kept+"/copies/nvidia/cuda:11.8.0")
	remove(t, ref)
	alone := &Client{}
	_, err := alone.Resolve(context.Background(), ref, amd64)
	if !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), ref) {
		t.Errorf("a removed tag gives %v", err)
	}
	if got := alone.mustResolve(t, upstream+"/nvidia/cuda@"+digest); got != digest {
		t.Errorf("its digest stands for %s, not %s", got, digest)
	}
	mirrored := &Client{Mirrors: map[string][]string{upstream: {kept + "/copies"}}}
	if got := mirrored.mustResolve(t, ref); got != digest {
		t.Errorf("its mirror has %s, not %s", got, digest)
	}
}

// What upstream removed altogether is had from the mirror, which is asked first,
// for tags and for digests alike.
func TestMirrorIsAskedFirst(t *testing.T) {
	upstream, kept := hub(t), hub(t)
	ref := upstream + "/nvidia/cuda:12.1"
	was := push(t, kept+"/nvidia/cuda:12.1")
	is := push(t, ref)
	c := &Client{Mirrors: map[string][]string{upstream: {kept}}}
	if got := c.mustResolve(t, ref); got != was {
		t.Errorf("the tag stands for %s, not for the mirror's %s", got, was)
	}
	for _, digest := range []string{was, is} { // each place has one of the two
		if got := c.mustResolve(t, upstream+"/nvidia/cuda@"+digest); got != digest {
			t.Errorf("%s stands for %s", digest, got)
		}
	}
	places, err := c.Places(upstream + "/nvidia/cuda")
	if err != nil || len(places) != 2 || places[0].Host != kept || places[1].Host != upstream {
		t.Errorf("places %v, %v", places, err)
	}
}

// Where nobody has it, each place is named; a registry that is down is no ErrNone.
func TestNobodyHasIt(t *testing.T) {
	upstream, kept := hub(t), hub(t)
	c := &Client{Mirrors: map[string][]string{upstream: {kept}}}
	_, err := c.Resolve(context.Background(), upstream+"/nvidia/cuda:none", amd64)
	if !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), kept) || !strings.Contains(err.Error(), upstream) {
		t.Errorf("got %v", err)
	}
	_, err = (&Client{}).Resolve(context.Background(), "127.0.0.1:9/nvidia/cuda:12.1", amd64)
	if err == nil || errors.Is(err, ErrNone) {
		t.Errorf("a registry that is down gives %v", err)
	}
	if _, err := c.Resolve(context.Background(), upstream+"/nvidia/cuda:12.1", "linux/"); err == nil {
		t.Error("a bad platform is taken")
	}
}

// An image for another platform is refused with the reason.
func TestOtherPlatform(t *testing.T) {
	ref := hub(t) + "/some/image:1"
	push(t, ref)
	_, err := (&Client{}).Resolve(context.Background(), ref, "linux/arm64")
	if err == nil || !strings.Contains(err.Error(), "linux/amd64, not linux/arm64") {
		t.Errorf("got %v", err)
	}
}

// What cannot be a base is refused with the reason.
func TestImagesThatCannotBeBases(t *testing.T) {
	host := hub(t)
	image := func(layers int, edit func(*v1.ConfigFile)) v1.Image {
		img, err := random.Image(10, int64(layers))
		if err != nil {
			t.Fatal(err)
		}
		config, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		config = config.DeepCopy()
		config.OS, config.Architecture = "linux", "amd64"
		edit(config)
		if img, err = mutate.ConfigFile(img, config); err != nil {
			t.Fatal(err)
		}
		return img
	}
	for want, img := range map[string]v1.Image{
		"it has no layers":    image(0, func(*v1.ConfigFile) {}),
		"it has 120 layers, ": image(120, func(*v1.ConfigFile) {}),
		"its manifest has 2 layers and its configuration 1": image(2, func(c *v1.ConfigFile) { c.RootFS.DiffIDs = c.RootFS.DiffIDs[:1] }),
		"it is for linux/riscv64, not linux/amd64":          image(1, func(c *v1.ConfigFile) { c.Architecture = "riscv64" }),
	} {
		ref := host + "/odd/image:1"
		write(t, ref, img)
		_, err := (&Client{}).Resolve(t.Context(), ref, amd64)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not say %q", err, want)
		}
	}
}
