// Package registry speaks to image registries: it finds what a reference stands
// for, and where the parts of an image lie. Credentials come from docker's own
// configuration; a registry on the loopback interface may speak plain http.
package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Client asks registries. It may be used concurrently.
type Client struct {
	// Mirrors are the places asked before a registry, by its host (docker.io):
	// each a host, or a host and a prefix for repositories.
	Mirrors map[string][]string
	Base    http.RoundTripper // nil: http.DefaultTransport

	mu    sync.Mutex
	repos map[string]http.RoundTripper // authenticated, by repository
}

// Part is one blob of an image.
type Part struct {
	Name      string // manifest, config or layer
	MediaType string
	SHA256    string // hex
	Size      int64
}

// Image is what a reference stands for.
type Image struct {
	Manifest []byte
	Env      []string
	Parts    []Part // manifest, configuration, then layers, base first
}

// ErrNone is wrapped when a registry answers that it has no such image.
var ErrNone = errors.New("no such image")

// Resolve finds the image that a reference (with a tag or a digest) stands for on
// a platform (linux/amd64), asking each place in turn.
func (c *Client) Resolve(ctx context.Context, ref, platform string) (*Image, error) {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return nil, err
	}
	want, err := v1.ParsePlatform(platform)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, repo := range c.places(parsed.Context()) {
		at := withRepository(repo, parsed)
		img, err := c.resolve(ctx, at, want)
		if err == nil {
			return img, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		errs = append(errs, fmt.Errorf("%s: %w", at, err))
	}
	return nil, errors.Join(errs...)
}

func (c *Client) resolve(ctx context.Context, ref name.Reference, want *v1.Platform) (*Image, error) {
	desc, err := remote.Get(ref, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithTransport(c.base()), remote.WithPlatform(*want))
	if err != nil {
		return nil, explain(err)
	}
	if !desc.MediaType.IsIndex() && !desc.MediaType.IsImage() {
		return nil, fmt.Errorf("it is of the old type %s; pull it and push it again with a current docker", desc.MediaType)
	}
	img, err := desc.Image()
	if err != nil {
		return nil, fmt.Errorf("it has no image for %s: %w", want, err)
	}
	return describe(img, want)
}

// explain marks the answers that mean that the image is not there.
func explain(err error) error {
	var answer *transport.Error
	if errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound {
		return fmt.Errorf("%w: %w", ErrNone, err)
	}
	return err
}

// mostLayers leaves room for those of an image that is made on the base.
const mostLayers = 80

func describe(img v1.Image, want *v1.Platform) (*Image, error) {
	raw, err := img.RawManifest()
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	if config.OS != want.OS || config.Architecture != want.Architecture {
		return nil, fmt.Errorf("it is for %s/%s, not %s", config.OS, config.Architecture, want)
	}
	var m v1.Manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, err
	}
	digest, err := img.Digest()
	if err != nil {
		return nil, err
	}
	mediaType, err := img.MediaType()
	if err != nil {
		return nil, err
	}
	switch ids := len(config.RootFS.DiffIDs); {
	case len(m.Layers) == 0:
		return nil, errors.New("it has no layers")
	case len(m.Layers) > mostLayers:
		return nil, fmt.Errorf("it has %d layers, more than the %d a base may have; squash it, or use what it was made from", len(m.Layers), mostLayers)
	case ids != len(m.Layers):
		return nil, fmt.Errorf("its manifest has %d layers and its configuration %d", len(m.Layers), ids)
	}
	out := &Image{Manifest: raw, Env: config.Config.Env}
	out.Parts = []Part{part("manifest", v1.Descriptor{MediaType: mediaType, Digest: digest, Size: int64(len(raw))}), part("config", m.Config)}
	for _, l := range m.Layers {
		if !l.MediaType.IsDistributable() || !l.MediaType.IsLayer() {
			return nil, fmt.Errorf("it has a layer of type %s, which cannot be kept", l.MediaType)
		}
		if l.Digest.Algorithm != "sha256" || l.Size <= 0 {
			return nil, fmt.Errorf("it has a layer %s of %d bytes, which cannot be checked", l.Digest, l.Size)
		}
		out.Parts = append(out.Parts, part("layer", l))
	}
	return out, nil
}

func part(what string, d v1.Descriptor) Part {
	return Part{Name: what, MediaType: string(d.MediaType), SHA256: d.Digest.Hex, Size: d.Size}
}

// places are the repositories that stand for one, mirrors first.
func (c *Client) places(repo name.Repository) []name.Repository {
	var out []name.Repository
	host := repo.RegistryStr()
	if host == name.DefaultRegistry {
		host = "docker.io"
	}
	for _, mirror := range c.Mirrors[host] {
		if r, err := name.NewRepository(strings.TrimSuffix(mirror, "/") + "/" + repo.RepositoryStr()); err == nil {
			out = append(out, r)
		}
	}
	return append(out, repo)
}

func withRepository(repo name.Repository, ref name.Reference) name.Reference {
	if d, ok := ref.(name.Digest); ok {
		return repo.Digest(d.DigestStr())
	}
	return repo.Tag(ref.Identifier())
}

// Place is where a repository's blobs lie.
type Place struct {
	Host string
	repo name.Repository
}

// Places are where the blobs of a repository may be had, mirrors first.
func (c *Client) Places(repository string) ([]Place, error) {
	repo, err := Repository(repository)
	if err != nil {
		return nil, err
	}
	var out []Place
	for _, r := range c.places(repo) {
		out = append(out, Place{Host: r.RegistryStr(), repo: r})
	}
	return out, nil
}

// URL is the address of a blob; a manifest has another than the rest.
func (p Place) URL(sha256 string, manifest bool) string {
	kind := "blobs"
	if manifest {
		kind = "manifests"
	}
	return fmt.Sprintf("%s://%s/v2/%s/%s/sha256:%s", p.repo.Scheme(), p.repo.RegistryStr(), p.repo.RepositoryStr(), kind, sha256)
}

var blobPath = regexp.MustCompile(`^/v2/(.+)/(blobs|manifests)/sha256:[0-9a-f]{64}$`)

// RoundTrip makes Client the transport of an http.Client that fetches from Places:
// it logs in to the registry where one is asked, and nowhere else.
func (c *Client) RoundTrip(req *http.Request) (*http.Response, error) {
	m := blobPath.FindStringSubmatch(req.URL.Path)
	if m == nil || req.Response != nil { // where a registry redirects to, it gives the right to read
		return c.base().RoundTrip(req)
	}
	repo, err := name.NewRepository(req.URL.Host + "/" + m[1])
	if err != nil {
		return nil, err
	}
	rt, err := c.login(req.Context(), repo)
	if err != nil {
		return nil, err
	}
	if m[2] == "manifests" {
		req = req.Clone(req.Context())
		req.Header.Set("Accept", strings.Join([]string{string(types.OCIManifestSchema1), string(types.DockerManifestSchema2)}, ", "))
	}
	return rt.RoundTrip(req)
}

func (c *Client) login(ctx context.Context, repo name.Repository) (http.RoundTripper, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if rt := c.repos[repo.String()]; rt != nil {
		return rt, nil
	}
	auth, err := authn.Resolve(ctx, authn.DefaultKeychain, repo)
	if err != nil {
		return nil, err
	}
	rt, err := transport.NewWithContext(context.WithoutCancel(ctx), repo.Registry, auth, c.base(), []string{repo.Scope(transport.PullScope)})
	if err != nil {
		return nil, err
	}
	if c.repos == nil {
		c.repos = map[string]http.RoundTripper{}
	}
	c.repos[repo.String()] = rt
	return rt, nil
}

func (c *Client) base() http.RoundTripper {
	if c.Base != nil {
		return c.Base
	}
	return http.DefaultTransport
}
