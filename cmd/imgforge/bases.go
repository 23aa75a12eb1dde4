package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/matrix"
	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/registry"
	"github.com/imgforge/imgforge/internal/resolve"
	"github.com/imgforge/imgforge/internal/store"
)

// parseRegistryMirrors reads "docker.io=mirror.example/prefix" settings.
func parseRegistryMirrors(settings []string) (map[string][]string, error) {
	out := map[string][]string{}
	for _, s := range settings {
		host, mirror, ok := strings.Cut(s, "=")
		if registry.Secret(mirror + "/") {
			return nil, fmt.Errorf("--registry-mirror: %w", registry.ErrPassword)
		}
		if !ok || host == "" || mirror == "" || strings.Contains(s, "://") || strings.Contains(mirror, "=") {
			return nil, fmt.Errorf("--registry-mirror %q must be REGISTRY=HOST[/PREFIX], such as docker.io=hub.example.cn", s)
		}
		out[host] = append(out[host], mirror)
	}
	return out, nil
}

// basePlaces are where the cells' bases lie: the URL that a rootfs names, and the
// registries of images.
func basePlaces(cells []matrix.Cell, client *registry.Client) ([]store.Profile, error) {
	tarballs := map[string]string{} // URLs by sha256
	var out []store.Profile
	known := map[string]bool{}
	for _, c := range cells {
		switch b := c.Base; {
		case b.Rootfs != nil:
			tarballs[b.Rootfs.SHA256.Value] = tarballURL(b.Rootfs)
		case b.Image != nil:
			origin := plan.ImageOrigin(b.Image.Ref.Value)
			if known[origin] {
				continue
			}
			known[origin] = true
			places, err := client.Places(strings.TrimPrefix(origin, "image:"))
			if err != nil {
				return nil, err
			}
			for _, at := range places {
				out = append(out, imagePlace(at, origin, client))
			}
		}
	}
	if len(tarballs) > 0 {
		out = append(out, tarballPlaces(tarballs)...)
	}
	return out, nil
}

// tarballPlaces are the URLs of tarballs, and files of this machine: apart, so that
// no redirect leads from the one to the other.
func tarballPlaces(urls map[string]string) []store.Profile {
	local := &http.Transport{}
	local.RegisterProtocol("file", http.NewFileTransport(http.Dir("/")))
	of := func(file bool) func(plan.Blob) string {
		return func(b plan.Blob) string {
			if u := urls[b.SHA256]; strings.HasPrefix(u, "file:") == file {
				return u
			}
			return ""
		}
	}
	return []store.Profile{
		{Name: "the matrix's url", AnyHost: true, File: of(false)},
		{Name: "the matrix's path", AnyHost: true, File: of(true), Client: &http.Client{Transport: local}},
	}
}

// tarballURL is where a rootfs lies; a path is taken from the matrix file.
func tarballURL(f *matrix.Rootfs) string {
	if strings.Contains(f.URL.Value, "://") {
		return f.URL.Value
	}
	file := f.URL.Value
	if !filepath.IsAbs(file) {
		file = filepath.Join(filepath.Dir(f.URL.Pos.File), file)
	}
	if abs, err := filepath.Abs(file); err == nil {
		file = abs
	}
	return (&url.URL{Scheme: "file", Path: file}).String()
}

func imagePlace(at registry.Place, origin string, client *registry.Client) store.Profile {
	return store.Profile{
		Name: "registry " + at.Host, AnyHost: true, Client: &http.Client{Transport: client},
		File: func(b plan.Blob) string {
			if b.Origin != origin {
				return ""
			}
			return at.URL(b.SHA256, strings.HasSuffix(b.Name, "-manifest"))
		},
	}
}

// finder is resolve's Images.
type finder struct{ client *registry.Client }

func (f finder) Find(ctx context.Context, ref, platform string) (*resolve.Image, error) {
	img, err := f.client.Resolve(ctx, ref, platform)
	if err != nil {
		return nil, err
	}
	out := &resolve.Image{Env: img.Env}
	for _, p := range img.Parts {
		out.Parts = append(out.Parts, resolve.Part(p))
	}
	return out, nil
}

// lockedBases are the image and rootfs bases that a lock has, by their set.
func lockedBases(cells []matrix.Cell, locked *lock.File) map[string]*plan.Plan {
	out := map[string]*plan.Plan{}
	for _, c := range cells {
		if set, base := plan.LockedBase(c, locked); base != nil {
			out[set] = base
		}
	}
	return out
}

// madeElsewhere tells whether a need is a base that is not made of .debs.
func madeElsewhere(n lock.Need) bool { return n.Request.Image != "" || n.Request.Rootfs != "" }

// lockBases locks the bases that were made elsewhere, before all else: what they
// hold decides what more is needed. The lock in hand takes in the answers, and
// loses those of packages that went on a base which has moved.
func (a *app) lockBases(ctx context.Context, f *lockFlags, in *inputs) (*resolve.Result, error) {
	result := &resolve.Result{}
	needs, err := plan.Needs(in.cells, in.recipes)
	if err != nil {
		return nil, err
	}
	needs = slices.DeleteFunc(needs, func(n lock.Need) bool { return !madeElsewhere(n) })
	ask := slices.DeleteFunc(slices.Clone(needs), func(n lock.Need) bool {
		_, ok, err := in.lock.Picked(n.Set)
		again := f.upgrade && (len(f.names) == 0 || slices.Contains(f.names, n.Request.Base))
		return ok && err == nil && in.lock.Facts(n.Set) != nil && !again
	})
	a.noteDrift(ctx, in, slices.DeleteFunc(needs, func(n lock.Need) bool {
		return slices.ContainsFunc(ask, func(o lock.Need) bool { return o.Set == n.Set })
	}))
	if len(ask) == 0 {
		return result, in.inspect()
	}
	before := in.lock
	if result, err = a.resolve(ctx, f, in, ask); err != nil {
		return nil, err
	}
	in.lock = before.With(changeOf(result))
	if err := in.inspect(); err != nil {
		return nil, err
	}
	return result, in.dropMoved(before)
}

// inspect takes in what the lock knows of bases. Cells that their base does not fit
// are holes where the matrix skips those, else mistakes of the matrix.
func (in *inputs) inspect() error {
	fit, misfits := plan.Inspect(in.all, in.lock)
	in.all = fit
	in.cells, _ = plan.Inspect(in.cells, in.lock)
	var bad diag.List
	said := map[diag.Problem]bool{}
	for _, m := range misfits {
		hole := matrix.Hole{Cell: m.Cell.Tag, Pos: m.Problems[0].Pos}
		for _, p := range m.Problems {
			hole.Reasons = append(hole.Reasons, p.What+"; "+p.Help)
			if !said[p] { // cells that share a base share its problems
				said[p] = true
				bad.Add(p.Pos, p.Help, "%s", p.What)
			}
		}
		if in.matrix.Skip {
			in.holes = append(in.holes, hole)
		}
	}
	if in.matrix.Skip {
		return nil
	}
	return bad.Err()
}

// dropMoved drops the answers of what goes on a base whose files are others now.
func (in *inputs) dropMoved(before *lock.File) error {
	all, err := plan.Needs(in.all, in.recipes)
	for _, n := range all {
		was, _, _ := before.Picked(n.Request.On)
		is, _, _ := in.lock.Picked(n.Request.On)
		if n.Request.On != "" && !slices.Equal(was, is) {
			in.lock.Drop(n.Set)
		}
	}
	return err
}

// noteDrift says where a tag no longer stands for what is locked. Not being able
// to ask is no fault: nothing of what is locked depends on it.
func (a *app) noteDrift(ctx context.Context, in *inputs, needs []lock.Need) {
	for _, n := range needs {
		if n.Request.Image == "" || strings.Contains(n.Request.Image, "@") {
			continue
		}
		picked, _, err := in.lock.Picked(n.Set)
		if err != nil || len(picked) == 0 {
			continue
		}
		now, err := in.images.Resolve(ctx, n.Request.Image, "linux/"+n.Request.Arch)
		switch {
		case errors.Is(err, registry.ErrNone):
			fmt.Fprintf(a.stderr, "note: base %s: its registry has no %s any more; %s is locked\n", n.Request.Base, n.Request.Image, picked[0].Hash)
		case err != nil:
			fmt.Fprintf(a.stderr, "note: base %s: cannot ask whether %s has moved: %s\n", n.Request.Base, n.Request.Image, err)
		case "sha256:"+now.Parts[0].SHA256 != picked[0].Hash:
			fmt.Fprintf(a.stderr, "note: base %s: %s is sha256:%s now; %s is locked (`imgforge lock --upgrade %s` takes the new one)\n",
				n.Request.Base, n.Request.Image, now.Parts[0].SHA256, picked[0].Hash, n.Request.Base)
		}
	}
}
