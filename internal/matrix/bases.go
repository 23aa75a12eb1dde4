package matrix

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/distribution/reference"
	"gopkg.in/yaml.v3"

	"github.com/imgforge/imgforge/internal/compat"
	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/yamlpos"
)

const baseExample = "such as debian: {suite: bookworm}, image: debian:12, or rootfs: {url: ..., sha256: ...}"

func (r *reader) bases(n *yaml.Node, m *Matrix) {
	for _, e := range r.Mapping(n, "bases") {
		base := Base{Pos: e.Key.Pos}
		before := len(r.Bad)
		if !plain.MatchString(e.Key.Value) {
			r.Bad.Add(e.Key.Pos, "use lower-case letters, digits, - and _, a letter first", "base name %q is not usable", e.Key.Value)
		}
		kinds := r.Fields(e.Value, "base "+e.Key.Value, baseKinds)
		base.Debian, base.Rootfs, base.Image = r.debian(kinds["debian"]), r.rootfs(kinds["rootfs"]), r.image(kinds["image"])
		if len(kinds) > 1 || len(kinds) == 0 && len(r.Bad) == before {
			r.Bad.Add(e.Key.Pos, baseExample, "base %s must have exactly one kind, not %d", e.Key, len(kinds))
		}
		m.Bases[e.Key.Value] = base
	}
}

func (r *reader) debian(n *yaml.Node) *Debian {
	if n == nil {
		return nil
	}
	f := r.Fields(n, "debian", debianKeys)
	d := &Debian{Suite: r.Scalar(f["suite"], "suite"), Components: r.components(f["components"], debianComponents)}
	if d.Suite.Value == "" {
		r.Fail(n, "such as suite: bookworm", "debian has no suite")
	} else if dist, ok := compat.DistributionOf(d.Suite.Value); !ok || dist.ID != "debian" {
		r.Bad.Add(d.Suite.Pos, diag.Allowed(d.Suite.Value, compat.Suites("debian")), "unknown Debian suite %q", d.Suite.Value)
	}
	if len(d.Components) == 0 {
		d.Components = []diag.Str{{Value: "main", Pos: r.Pos(n)}}
	}
	return d
}

var (
	debianComponents = []string{"contrib", "main", "non-free", "non-free-firmware"}
	anyComponents    = []string{"contrib", "main", "multiverse", "non-free", "non-free-firmware", "restricted", "universe"}
)

// components are parts of a distribution's archive.
func (r *reader) components(n *yaml.Node, known []string) []diag.Str {
	out := r.Scalars(n, "components")
	for _, c := range out {
		if !slices.Contains(known, c.Value) {
			r.Bad.Add(c.Pos, diag.Allowed(c.Value, known), "unknown component %q", c.Value)
		}
	}
	return out
}

var hex256 = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (r *reader) rootfs(n *yaml.Node) *Rootfs {
	if n == nil {
		return nil
	}
	before := len(r.Bad)
	got := r.Fields(n, "rootfs", rootfsKeys)
	f := &Rootfs{URL: r.Scalar(got["url"], "url"), SHA256: r.Scalar(got["sha256"], "sha256"), Components: r.components(got["components"], anyComponents)}
	if len(r.Bad) == before && (got["url"] == nil || got["sha256"] == nil) {
		r.Fail(n, "such as {url: https://mirrors.tuna.tsinghua.edu.cn/ubuntu-cdimage/ubuntu-base/..., sha256: <64 hex digits>}",
			"rootfs needs a url and the sha256 of what is there")
	}
	if v := f.SHA256.Value; v != "" && !hex256.MatchString(v) {
		r.Bad.Add(f.SHA256.Pos, "take it from the SHA256SUMS beside the file, or from `sha256sum FILE`", "sha256 %q is not 64 hex digits", v)
	}
	if v := f.URL.Value; v != "" {
		r.checkURL(f.URL)
	}
	return f
}

// checkURL holds a tarball's place to what can be fetched and named in a lock.
func (r *reader) checkURL(at diag.Str) {
	u, err := url.Parse(at.Value)
	switch {
	case err != nil:
		r.Bad.Add(at.Pos, "write an http(s) URL or a path", "url %q cannot be read: %s", at.Value, err)
		return
	case u.Scheme != "" && (u.Scheme != "http" && u.Scheme != "https" || u.Host == ""):
		r.Bad.Add(at.Pos, "write an http(s) URL or a path beside the matrix", "url %q has a scheme that cannot be fetched", at.Value)
	case u.User != nil:
		r.Bad.Add(at.Pos, "put the password into ~/.netrc", "url %q holds a user or password", u.Redacted())
	}
	name := path.Base(u.Path)
	if strings.ContainsAny(name, " \t") || !slices.ContainsFunc(tarballs, func(s string) bool { return strings.HasSuffix(name, s) }) {
		r.Bad.Add(at.Pos, "its name must end with "+strings.Join(tarballs, ", "), "url %q names no tarball", at.Value)
	}
}

var tarballs = []string{".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.zst"}

// image reads a reference, or a mapping with one.
func (r *reader) image(n *yaml.Node) *Image {
	if n == nil {
		return nil
	}
	i := &Image{}
	if yamlpos.Deref(n).Kind == yaml.MappingNode {
		before := len(r.Bad)
		got := r.Fields(n, "image", imageKeys)
		i.Ref, i.Components = r.Scalar(got["ref"], "ref"), r.components(got["components"], anyComponents)
		if got["ref"] == nil && len(r.Bad) == before {
			r.Fail(n, "such as ref: debian:12", "image has no ref")
		}
	} else {
		i.Ref = r.Scalar(n, "image")
	}
	if i.Ref.Value == "" {
		return i
	}
	if host, _, _ := strings.Cut(i.Ref.Value, "/"); strings.Contains(host, "@") && strings.Contains(i.Ref.Value, "/") {
		r.Bad.Add(i.Ref.Pos, "log in with `docker login` and leave them out", "the registry's name holds a user or password")
		return i
	}
	named, err := reference.ParseNormalizedNamed(i.Ref.Value)
	if err != nil {
		r.Bad.Add(i.Ref.Pos, "such as nvidia/cuda:12.1.1-base-ubuntu22.04", "image %q is no reference: %s", i.Ref.Value, err)
		return i
	}
	if reference.IsNameOnly(named) {
		r.Bad.Add(i.Ref.Pos, "add a tag or a digest; latest is not meant by leaving it out", "image %q has no tag", i.Ref.Value)
	}
	i.Ref.Value = named.String()
	return i
}

// Name is the tarball's file name.
func (f *Rootfs) Name() string {
	u, err := url.Parse(f.URL.Value)
	if err != nil {
		return path.Base(f.URL.Value)
	}
	return path.Base(u.Path)
}
