package store

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/version"
)

// wanted is a blob with its origin taken apart.
type wanted struct {
	blob    plan.Blob
	archive string // "debian"; empty for wheels
	path    string // in the archive
	project string // normalized name; empty for .debs
	cuda    string // "cu118" for torch's own index
	lone    bool   // a tarball or a part of an image, which a mirror names itself
}

var wheelOrigin = regexp.MustCompile(`^(pypi|pytorch/([a-z0-9]+)):([A-Za-z0-9][A-Za-z0-9._-]*)==\S+$`)

// parseOrigin takes a blob's origin apart. An error is a mistake in the lock.
func parseOrigin(b plan.Blob) (wanted, error) {
	if !isSHA256(b.SHA256) {
		return wanted{}, fmt.Errorf("%s: %q is not a sha256 in hex", b.Name, b.SHA256)
	}
	if b.Name == "" || strings.ContainsAny(b.Name, "/\\\x00") {
		return wanted{}, fmt.Errorf("%q is no file name", b.Name)
	}
	if m := wheelOrigin.FindStringSubmatch(b.Origin); m != nil {
		return wanted{blob: b, cuda: m[2], project: version.NormalizeName(m[3])}, nil
	}
	if strings.HasPrefix(b.Origin, "rootfs:") || strings.HasPrefix(b.Origin, "image:") {
		return wanted{blob: b, lone: true}, nil
	}
	archive, rest, ok := strings.Cut(b.Origin, "/")
	if !ok || !slices.Contains(archiveNames, archive) || !cleanPath(rest) {
		return wanted{}, fmt.Errorf("%s: origin %q is not understood; it is <archive>/<path> with an archive of %s, pypi:<name>==<version>, pytorch/<cuda>:<name>==<version>, rootfs:<name> or image:<repository>", b.Name, b.Origin, strings.Join(archiveNames, ", "))
	}
	return wanted{blob: b, archive: archive, path: rest}, nil
}

func cleanPath(p string) bool {
	return p != "" && path.Clean("/"+p) == "/"+p && !strings.ContainsAny(p, "?#\\\x00")
}

// source is one place where a mirror may have a file. Its address may have to be
// looked up in an index first.
type source struct {
	place
	locate func(ctx context.Context) (*url.URL, error)
}

// sources returns the places on p for w, and why there is none.
func (r *run) sources(p *Profile, w wanted) (out []source, why string) {
	p = p.found()
	if p.File != nil || w.lone {
		if out, why = p.lone(w.blob); why == "" || w.lone {
			return out, why
		}
	}
	if w.archive != "" {
		return r.archiveSources(p, w)
	}
	listings, about, why := p.Indexes, "pypi", "has no Python index"
	if w.cuda != "" {
		listings, about, why = nil, "pytorch", "has no torch wheels for "+w.cuda
		if p.Wheels[w.cuda] != "" {
			listings = []string{p.Wheels[w.cuda]}
		}
	}
	for _, raw := range listings {
		at := place{p, redact(raw)}
		out = append(out, source{at, func(ctx context.Context) (*url.URL, error) {
			u, err := url.Parse(raw)
			if err != nil {
				return nil, &failure{effect: next, reason: "its address is not a URL"}
			}
			if w.cuda == "" {
				u = u.JoinPath(w.project, "/")
			}
			return r.locateWheel(ctx, at, u, w)
		}})
	}
	if len(out) == 0 {
		return nil, lacks(p, about, why)
	}
	return out, ""
}

// archiveSources are the place of a .deb, which a mirror may keep by date.
func (r *run) archiveSources(p *Profile, w wanted) (out []source, why string) {
	base := p.Archives[w.archive]
	if base == "" {
		return nil, lacks(p, w.archive, "has no "+w.archive+" archive")
	}
	if strings.Contains(base, dateSlot) {
		if r.snapshot.IsZero() {
			return nil, "keeps archives by date, and none is known"
		}
		base = strings.ReplaceAll(base, dateSlot, snapshotID(r.snapshot))
	}
	u, err := archiveURL(base, w.path)
	return []source{{place{p, redact(base)}, func(context.Context) (*url.URL, error) { return u, err }}}, ""
}

// lone is the one place that a profile's File names.
func (p *Profile) lone(b plan.Blob) (out []source, why string) {
	raw := ""
	if p.File != nil {
		raw = p.File(b)
	}
	if raw == "" {
		return nil, "has packages alone"
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, "its address is not a URL"
	}
	base := p.Name
	if u.Host != "" {
		base = redactURL(&url.URL{Scheme: u.Scheme, Host: u.Host})
	}
	return []source{{place{p, base}, func(context.Context) (*url.URL, error) { return u, nil }}}, ""
}

// dateSlot stands in a root for the date of the archive.
const dateSlot = "${snapshot}"

// snapshotID names the snapshot that has what the archive had at t. One is taken
// some hours after each change; half a day later there is one that holds what
// was new at t, and still what was old.
func snapshotID(t time.Time) string { return t.UTC().Add(12 * time.Hour).Format("20060102T150405Z") }

// lacks is why a mirror is not asked, with what its profile says of that: the
// reasons that begin with about, or with no such word.
func lacks(p *Profile, about, why string) string {
	var reasons []string
	for _, m := range p.Missing {
		if subject, reason, ok := strings.Cut(m, ": "); !ok {
			reasons = append(reasons, m)
		} else if subject == about {
			reasons = append(reasons, reason)
		}
	}
	if len(reasons) == 0 {
		return why
	}
	return why + " (" + strings.Join(reasons, "; ") + ")"
}

// archiveURL joins a base and a path. A plus is escaped, since some mirrors
// take a bare one for a space.
func archiveURL(base, rel string) (*url.URL, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, &failure{effect: next, reason: "its address is not a URL"}
	}
	segments := strings.Split(rel, "/")
	for i, s := range segments {
		segments[i] = strings.ReplaceAll(url.PathEscape(s), "+", "%2B")
	}
	u = u.JoinPath(segments...)
	return u, nil
}
