package builder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/Masterminds/semver/v3"
	"github.com/containerd/containerd/v2/core/content"
	contentlocal "github.com/containerd/containerd/v2/plugins/content/local"
	"github.com/containerd/log"
	"github.com/moby/buildkit/client"
	_ "github.com/moby/buildkit/client/connhelper/dockercontainer" // docker-container://
	_ "github.com/moby/buildkit/client/connhelper/kubepod"         // kube-pod://
	_ "github.com/moby/buildkit/client/connhelper/podmancontainer" // podman-container://
	_ "github.com/moby/buildkit/client/connhelper/ssh"             // ssh://
	"github.com/moby/buildkit/client/llb"
	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/singleflight"

	"github.com/imgforge/imgforge/internal/plan"
)

// oldest is the BuildKit that first kept base layers as they are when it sets
// times, and has every source this package uses.
const oldest = "0.34.0"

// storeID names the session's content store that serves blobs to a far engine.
const storeID = "imgforge"

// Store is the content-addressed directory blobs come from.
type Store interface {
	Dir() string // laid out as an OCI content store
	Path(sha256 string) string
	Has(sha256 string) bool
	Put(ctx context.Context, r io.Reader) (sha256 string, size int64, err error)
}

// Builder runs graphs on one engine, feeding it from one store.
type Builder struct {
	client    *client.Client
	platforms []string // that the engine says it runs, its own first
	store     Store
	content   content.Store // the store, as a session serves it
	roots     singleflight.Group
	probes    singleflight.Group
	blobs     string // directory of the engine's own blobs; empty for an engine elsewhere
	blobURL   string // loopback URL of the store; empty for an engine elsewhere

	layoutsMu sync.Mutex
	layouts   map[string]*layout // by directory
}

// Options says how an engine gets its blobs.
type Options struct {
	Addr    string // of the engine
	Store   Store
	BlobURL string // where the store is served, for an engine on this host; else empty
	Blobs   string // Engine.Blobs of an engine on this host; else empty
	TLSDir  string // ca.pem, cert.pem and key.pem for a tcp:// engine; may be empty
}

// Connect dials an engine and refuses one that cannot build what we make.
func Connect(ctx context.Context, o Options) (*Builder, error) {
	// Its content store warns of every file system without fsverity.
	if err := log.SetLevel("error"); err != nil {
		return nil, err
	}
	c, err := connect(ctx, o.Addr, o.TLSDir)
	if err != nil {
		return nil, err
	}
	cs, err := contentlocal.NewStore(o.Store.Dir())
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	workers, err := c.ListWorkers(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: the engine at %s does not say what it runs: %w", ErrNoEngine, o.Addr, err), c.Close())
	}
	runs := platformsOf(workers)
	if len(runs) == 0 {
		return nil, errors.Join(fmt.Errorf("%w: the engine at %s has no worker", ErrNoEngine, o.Addr), c.Close())
	}
	return &Builder{client: c, platforms: runs, store: o.Store, content: cs, blobs: o.Blobs, blobURL: o.BlobURL, layouts: map[string]*layout{}}, nil
}

// connect dials an engine and checks it.
func connect(ctx context.Context, addr, tlsDir string) (*client.Client, error) {
	var opts []client.ClientOpt
	if tlsDir != "" {
		opts = append(opts, client.WithServerConfig("", tlsDir+"/ca.pem"), client.WithCredentials(tlsDir+"/cert.pem", tlsDir+"/key.pem"))
	}
	c, err := client.New(ctx, addr, opts...)
	if err != nil {
		return nil, fmt.Errorf("%w: cannot use --builder %s: %w", ErrNoEngine, addr, err)
	}
	info, err := c.Info(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(cause, context.DeadlineExceeded) {
		return nil, errors.Join(cause, c.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: the engine at %s does not answer: %w", ErrNoEngine, addr, err), c.Close())
	}
	if err := checkEngine(addr, info.BuildkitVersion.Version); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Try dials an engine, refuses one that cannot build what we make, and hangs up.
func Try(ctx context.Context, addr, tlsDir string) error {
	c, err := connect(ctx, addr, tlsDir)
	if err != nil {
		return err
	}
	return c.Close()
}

func checkEngine(addr, version string) error {
	v, err := semver.NewVersion(version)
	if err != nil {
		return nil // a development build: let the capabilities it reports decide
	}
	if v.LessThan(semver.MustParse(oldest)) {
		return fmt.Errorf("%w: the engine at %s is BuildKit %s; %s or newer is needed for reproducible layers", ErrNoEngine, addr, version, oldest)
	}
	return nil
}

// Close hangs up.
func (b *Builder) Close() error { return b.client.Close() }

// source binds a blob to a transport: loopback HTTP for an engine on this host,
// the session for one elsewhere. The digest is checked by the engine either way.
func (b *Builder) source(blob plan.Blob) llb.State {
	dgst := digest.NewDigestFromEncoded(digest.SHA256, blob.SHA256)
	name := llb.WithCustomName(blob.Name)
	if b.blobURL != "" {
		return llb.HTTP(b.blobURL+"/sha256/"+blob.SHA256, llb.Checksum(dgst), llb.Filename(blob.Name), name)
	}
	return llb.OCILayoutBlob("imgforge/blob@"+dgst.String(), llb.Filename(blob.Name),
		llb.ImageBlobOCIStore("", storeID), name)
}

// image gives a base image from the store, over the session: its layers keep
// their bytes, and the engine checks every digest.
func (b *Builder) image(i *plan.Image) llb.State {
	return llb.OCILayout("imgforge/base@"+i.Digest(), llb.OCIStore("", storeID), llb.WithCustomName("base: "+i.Repository))
}
