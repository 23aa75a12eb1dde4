package resolve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xi2/xz"

	"github.com/imgforge/imgforge/internal/compat"
	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/plan"
)

// maxPackages bounds an unpacked Packages file; Debian's main has 50 MB.
const maxPackages = 512 << 20

// archive is a suite, its updates and its security fixes, verified.
type archive struct {
	*universe
	arch     string
	releases []*release
	indexes  map[string]plan.Blob // Packages.xz in the store, by archive_suite_component
	root     *plan.Plan           // has apt; of the engine's own platform, unless it is the base itself
	status   string               // dpkg's, of a base that was made elsewhere
}

// open reads what a request's Debian says of itself, and finds a root for apt and uv.
func (s *session) open(ctx context.Context, req lock.Request) (*archive, error) {
	a, err := s.read(ctx, req)
	if err != nil {
		return nil, err
	}
	return a, s.makeRoot(ctx, a, req)
}

// read reads and verifies everything a Debian says of itself for an architecture.
func (s *session) read(ctx context.Context, req lock.Request) (*archive, error) {
	find := keyring
	if s.keys != nil {
		find = s.keys
	}
	keys, err := find(req.Suite)
	if err != nil {
		return nil, err
	}
	a := &archive{arch: req.Arch, indexes: map[string]plan.Blob{}}
	var debs []*deb
	for _, part := range parts(req) {
		s.say("reading the Release file of %s", part.suite)
		var rel *release
		_, err := s.Fetcher.Metadata(ctx, part.archive, "dists/"+part.suite+"/InRelease", func(data []byte) (err error) {
			rel, err = verifyRelease(data, part.suite, keys, s.Now())
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("release file of %s: %w", part.suite, err)
		}
		a.releases = append(a.releases, rel)
		for _, component := range components(req) {
			more, err := s.packages(ctx, a, part.archive, component)
			if err != nil {
				return nil, err
			}
			debs = append(debs, more...)
		}
	}
	if a.universe, err = newUniverse(debs); err != nil {
		return nil, err
	}
	return a, nil
}

// part is one suite of an archive.
type part struct{ archive, suite string }

// parts are a distribution's suite, its updates and its security fixes.
func parts(req lock.Request) []part {
	if d, _ := compat.DistributionOf(req.Suite); d.ID == "ubuntu" {
		archive := "ubuntu"
		if req.Arch != "amd64" {
			archive = "ubuntu-ports"
		}
		return []part{{archive, req.Suite}, {archive, req.Suite + "-updates"}, {archive, req.Suite + "-security"}}
	}
	return []part{{"debian", req.Suite}, {"debian", req.Suite + "-updates"}, {"debian-security", req.Suite + "-security"}}
}

// makeRoot finds a root in which apt and uv run: the base itself, or one made of
// the archive's .debs for the engine's own architecture, whatever the cell's is.
func (s *session) makeRoot(ctx context.Context, a *archive, req lock.Request) error {
	a.root = &plan.Plan{Epoch: a.epoch(), Platform: "linux/" + a.arch}
	if req.On != "" {
		if err := s.runs(ctx, req); err != nil {
			return err
		}
		base, found, err := s.under(ctx, req)
		if err != nil {
			return err
		}
		a.root.Image, a.root.Rootfs, a.root.Strip = base.Image, base.Rootfs, base.Strip
		a.status = strings.TrimRight(string(found.Status), "\n") + "\n\n"
		return nil
	}
	own := a
	if here := s.platform(); here != a.root.Platform {
		var err error
		a.root.Platform, req.Arch = here, archOf(here)
		if own, err = s.read(ctx, req); err != nil {
			return err
		}
	}
	debs, err := own.closure(append(own.minimal(), "python3", "ca-certificates"))
	if err != nil {
		return fmt.Errorf("a root for apt and uv: %w", err)
	}
	for _, d := range debs {
		a.root.Base = append(a.root.Base, d.blob())
	}
	s.say("fetching %d packages for a root in which apt and uv run", len(debs))
	return s.Fetcher.Fetch(ctx, a.root.Base)
}

func components(req lock.Request) []string {
	if len(req.Components) == 0 {
		return []string{"main"}
	}
	return req.Components
}

// packages fetches the index of a component of the newest release, and parses it.
func (s *session) packages(ctx context.Context, a *archive, archive, component string) ([]*deb, error) {
	rel := a.releases[len(a.releases)-1]
	name := component + "/binary-" + a.arch + "/Packages.xz"
	sum, ok := rel.files[name]
	if !ok {
		return nil, fmt.Errorf("%s has no component %q for %s", rel.suite, component, a.arch)
	}
	dir := archive + "/dists/" + rel.suite + "/" + path.Dir(name)
	blob := plan.Blob{Name: "Packages.xz", SHA256: sum.sha256, Size: sum.size, Origin: dir + "/by-hash/SHA256/" + sum.sha256}
	if err := s.Fetcher.Fetch(ctx, []plan.Blob{blob}); err != nil {
		// Not every mirror keeps files by hash.
		blob.Origin = dir + "/Packages.xz"
		if again := s.Fetcher.Fetch(ctx, []plan.Blob{blob}); again != nil {
			return nil, fmt.Errorf("package index of %s: %w", rel.suite, errors.Join(err, again))
		}
	}
	a.indexes[archive+"_"+rel.suite+"_"+component] = blob
	text, err := readXZ(s.Path(blob.SHA256))
	if err != nil {
		return nil, fmt.Errorf("package index of %s: %w", rel.suite, err)
	}
	return parsePackages(text, archive)
}

func readXZ(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	r, err := xz.NewReader(f, 0)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	n, err := io.Copy(&b, io.LimitReader(r, maxPackages+1))
	if n > maxPackages {
		return "", fmt.Errorf("unpacks to more than %d bytes", maxPackages)
	}
	return b.String(), err
}

// entries are the lock's archive lines.
func (a *archive) entries() []lock.Entry {
	out := make([]lock.Entry, len(a.releases))
	for i, r := range a.releases {
		out[i] = lock.Entry{Kind: lock.Archive, Key: r.suite, Value: r.date.UTC().Format(time.RFC3339), Hash: r.hash}
	}
	return out
}

// epoch is the newest Release date, in seconds.
func (a *archive) epoch() int64 {
	return slices.MaxFunc(a.releases, func(x, y *release) int { return x.date.Compare(y.date) }).date.Unix()
}

// python is the version of the suite's Python, such as "3.11".
func (a *archive) python() string {
	d := a.newest["python3"]
	if d == nil {
		return "none"
	}
	parts := strings.SplitN(d.version, ".", 3)
	if len(parts) < 2 {
		return d.version
	}
	minor := strings.TrimRight(parts[1], "abcdefghijklmnopqrstuvwxyz~+-")
	if _, err := strconv.Atoi(minor); err != nil {
		return d.version
	}
	return parts[0] + "." + minor
}
