package resolve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/imgforge/imgforge/internal/inspect"
	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/plan"
)

// base answers the need for a base that was made elsewhere: its files, and what
// was found in them.
func (s *session) base(ctx context.Context, n lock.Need) {
	if err := s.runs(ctx, n.Request); err != nil { // before much is fetched
		s.fail(n, "", err)
		return
	}
	blobs, entries, env, err := s.files(ctx, n.Request)
	if err != nil {
		s.fail(n, "", err)
		return
	}
	s.say("fetching base %s", n.Request.Base)
	if err := s.Fetcher.Fetch(ctx, blobs); err != nil {
		s.fail(n, "", err)
		return
	}
	if n.Request.Rootfs != "" { // its size is known only now
		info, err := os.Stat(s.Path(blobs[0].SHA256))
		if err != nil {
			s.fail(n, "", err)
			return
		}
		entries[0].Size = info.Size()
	}
	s.say("looking into base %s", n.Request.Base)
	root, err := s.look(blobs, env)
	if err != nil {
		s.fail(n, "", fmt.Errorf("base %s cannot be read: %w", n.Request.Base, err))
		return
	}
	s.answer(n, append(entries, root.Entries(n.Set)...))
}

// files are the blobs of a base, their lines in the lock, and its environment.
func (s *session) files(ctx context.Context, req lock.Request) (blobs []plan.Blob, entries []lock.Entry, env []string, err error) {
	if req.Rootfs != "" {
		name, sum, _ := strings.Cut(req.Rootfs, "@sha256:")
		return []plan.Blob{{Name: name, Origin: "rootfs:" + name, SHA256: sum}},
			[]lock.Entry{{Kind: lock.Rootfs, Key: req.Base + "_" + name, Value: req.Base, Hash: "sha256:" + sum}}, nil, nil
	}
	s.say("asking for %s", req.Image)
	img, err := s.Images.Find(ctx, req.Image, "linux/"+req.Arch)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("image %s: %w", req.Image, err)
	}
	for i, p := range img.Parts {
		e := lock.Entry{
			Kind: lock.Image, Key: fmt.Sprintf("%s_%s_%03d-%s", req.Base, req.Arch, i, p.Name), Value: p.MediaType,
			Size: p.Size, Hash: "sha256:" + p.SHA256,
		}
		entries = append(entries, e)
		blobs = append(blobs, plan.Blob{Name: e.Key, Origin: plan.ImageOrigin(req.Image), SHA256: p.SHA256, Size: p.Size})
	}
	return blobs, entries, img.Env, nil
}

// look reads the file system of a base: a tarball, or the layers of an image.
func (s *session) look(blobs []plan.Blob, env []string) (*inspect.Root, error) {
	var layers []inspect.Layer
	for _, b := range blobs {
		if strings.HasSuffix(b.Name, "-manifest") || strings.HasSuffix(b.Name, "-config") {
			continue
		}
		layers = append(layers, func() (io.ReadCloser, error) { return os.Open(s.Path(b.SHA256)) })
	}
	return inspect.Layers(layers, env)
}

// under looks into the locked base that requests of this session go on.
func (s *session) under(ctx context.Context, req lock.Request) (*plan.Plan, *inspect.Root, error) {
	p := s.Bases[req.On]
	if p == nil {
		return nil, nil, errors.New("its base is not locked")
	}
	if root := s.roots[req.On]; root != nil {
		return p, root, nil
	}
	blobs := p.Blobs()
	if p.Image != nil {
		blobs = p.Image.Parts
	}
	if err := s.Fetcher.Fetch(ctx, blobs); err != nil {
		return nil, nil, err
	}
	root, err := s.look(blobs, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("base %s cannot be read: %w", req.Base, err)
	}
	if !strings.Contains("\n"+string(root.Status), "\nPackage: apt\n") {
		return nil, nil, fmt.Errorf("base %s has no apt, so nothing can be installed on it", req.Base)
	}
	if s.roots == nil {
		s.Resolver.roots = map[string]*inspect.Root{}
	}
	s.roots[req.On] = root
	return p, root, nil
}
