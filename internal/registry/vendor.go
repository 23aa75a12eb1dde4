package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sync/errgroup"
)

const (
	vendorType  = "application/vnd.imgforge.vendor.v1"
	emptyConfig = types.MediaType("application/vnd.oci.empty.v1+json")
	fileType    = types.MediaType("application/octet-stream")
)

// File is a file to keep in a registry, on this machine at Path.
type File struct {
	Name   string // for people who look at the manifest
	SHA256 string // hex
	Path   string
}

// Keep pushes files to a repository as blobs, and then a manifest that names them,
// without which a registry would collect them. Its tag is of the files' hashes in
// their order, so equal lists have equal tags. Blobs that are there are not pushed:
// it goes on where it was interrupted. It returns how many were pushed; said is told
// after each file, by one goroutine at a time.
func (c *Client) Keep(ctx context.Context, repository string, files []File, said func(done int)) (pushed int, err error) {
	k, err := c.keeper(repository)
	if err != nil {
		return 0, err
	}
	layers := make([]v1.Descriptor, len(files))
	var mu sync.Mutex
	done := 0
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for i, f := range files {
		group.Go(func() error {
			if gctx.Err() != nil {
				return context.Cause(gctx)
			}
			layer, fresh, err := k.keep(gctx, f)
			if err != nil {
				return fmt.Errorf("push %s to %s: %w", f.Name, k.repo, err)
			}
			layers[i] = layer
			mu.Lock()
			defer mu.Unlock()
			if done++; fresh {
				pushed++
			}
			said(done)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return pushed, err
	}
	return pushed, k.name(ctx, k.repo.Tag(tagOf(files)), layers)
}

func tagOf(files []File) string {
	sum := sha256.New()
	for _, f := range files {
		fmt.Fprintln(sum, f.SHA256)
	}
	return "vendor-" + hex.EncodeToString(sum.Sum(nil))[:12]
}

func (c *Client) keeper(repository string) (*keeper, error) {
	repo, err := Repository(repository)
	if err != nil {
		return nil, err
	}
	options := []remote.Option{remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithTransport(c.base())}
	push, err := remote.NewPusher(options...)
	if err != nil {
		return nil, err
	}
	pull, err := remote.NewPuller(options...)
	return &keeper{repo, push, pull}, err
}

// keeper writes to one repository.
type keeper struct {
	repo name.Repository
	push *remote.Pusher
	pull *remote.Puller
}

// keep pushes one blob, unless it is there.
func (k *keeper) keep(ctx context.Context, f File) (l v1.Descriptor, pushed bool, err error) {
	info, err := os.Stat(f.Path)
	if err != nil {
		return l, false, err
	}
	layer := &fileLayer{f, info.Size()}
	hash := v1.Hash{Algorithm: "sha256", Hex: f.SHA256}
	l = v1.Descriptor{MediaType: fileType, Digest: hash, Size: info.Size(), Annotations: map[string]string{"org.opencontainers.image.title": f.Name}}
	there, err := k.pull.Layer(ctx, k.repo.Digest(hash.String()))
	if err == nil {
		if size, err := there.Size(); err == nil && size == info.Size() {
			return l, false, nil
		}
	}
	return l, true, k.push.Upload(ctx, k.repo, layer)
}

// name names the blobs in a manifest, so that the registry keeps them.
func (k *keeper) name(ctx context.Context, ref name.Tag, layers []v1.Descriptor) error {
	config := static.NewLayer([]byte("{}"), emptyConfig)
	if err := k.push.Upload(ctx, k.repo, config); err != nil {
		return fmt.Errorf("push to %s: %w", ref.Context(), err)
	}
	digest, err := config.Digest()
	if err != nil {
		return err
	}
	raw, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": types.OCIManifestSchema1, "artifactType": vendorType,
		"config": v1.Descriptor{MediaType: emptyConfig, Digest: digest, Size: 2},
		"layers": layers,
	})
	if err != nil {
		return err
	}
	if err := k.push.Push(ctx, ref, manifest(raw)); err != nil {
		return fmt.Errorf("push to %s: %w", ref, err)
	}
	return nil
}

// manifest is what a remote.Pusher pushes.
type manifest []byte

func (m manifest) RawManifest() ([]byte, error)        { return m, nil }
func (m manifest) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// fileLayer is a file as a remote.Pusher uploads one.
type fileLayer struct {
	file File
	size int64
}

func (l *fileLayer) Digest() (v1.Hash, error) {
	return v1.Hash{Algorithm: "sha256", Hex: l.file.SHA256}, nil
}
func (l *fileLayer) DiffID() (v1.Hash, error)            { return l.Digest() }
func (l *fileLayer) Size() (int64, error)                { return l.size, nil }
func (l *fileLayer) MediaType() (types.MediaType, error) { return fileType, nil }
func (l *fileLayer) Compressed() (io.ReadCloser, error)  { return os.Open(l.file.Path) }
func (l *fileLayer) Uncompressed() (io.ReadCloser, error) {
	return nil, errors.New("a kept file is not unpacked")
}

// Kept returns where a repository that Keep filled has a blob.
func Kept(repository string) (func(sha256 string) string, error) {
	repo, err := Repository(repository)
	if err != nil {
		return nil, err
	}
	at := Place{Host: repo.RegistryStr(), repo: repo}
	return func(sha256 string) string { return at.URL(sha256, false) }, nil
}
