package resolve

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/version"
)

// pypi names the package index whose mirrors all hold the same files.
const pypi = "pypi"

// wheel is a chosen wheel of a pylock.
type wheel struct {
	name, version string // normalized name
	file          string
	sha256        string
	size          int64 // 0 when the index does not say
	url           string
}

func (w wheel) entry(index string) lock.Entry {
	return lock.Entry{Kind: lock.Wheel, Key: w.file, Value: index + ":" + w.name + "==" + w.version, Size: w.size, Hash: "sha256:" + w.sha256}
}

// pylock is what uv writes, as far as it matters here.
type pylock struct {
	Version  string `toml:"lock-version"`
	Packages []struct {
		Name    string
		Version string
		Wheels  []struct {
			Name   string
			URL    string
			Size   int64
			Hashes map[string]string
		}
	}
}

// parsePylock reads the pylock.toml that uv writes for one interpreter and keeps
// the wheel of each package that suits it best. tags are those it takes, best
// first. The result is sorted by file name.
func parsePylock(data string, tags []string) ([]wheel, error) {
	var doc pylock
	if err := toml.Unmarshal([]byte(data), &doc); err != nil {
		return nil, fmt.Errorf("pylock.toml: %w", err)
	}
	if !strings.HasPrefix(doc.Version, "1.") {
		return nil, fmt.Errorf("pylock.toml: version %q, 1.x is known", doc.Version)
	}
	var out []wheel
	for _, p := range doc.Packages {
		var found []wheel
		for _, from := range p.Wheels {
			w := wheel{name: version.NormalizeName(p.Name), version: p.Version, file: from.Name, sha256: from.Hashes["sha256"], size: from.Size, url: from.URL}
			if w.file == "" {
				w.file = fileOf(w.url)
			}
			if err := w.check(); err != nil {
				return nil, fmt.Errorf("pylock.toml: %s: %w", p.Name, err)
			}
			found = append(found, w)
		}
		best, ok := bestWheel(found, tags)
		if !ok {
			return nil, fmt.Errorf("pylock.toml: %s %s has no wheel that this Python takes, of %d", p.Name, p.Version, len(found))
		}
		out = append(out, best)
	}
	slices.SortFunc(out, func(a, b wheel) int { return strings.Compare(a.file, b.file) })
	return out, nil
}

// bestWheel chooses as pip does: the earliest tag, then the highest build number.
func bestWheel(wheels []wheel, tags []string) (wheel, bool) {
	place := map[string]int{}
	for i, t := range tags {
		place[t] = i
	}
	best, bestPlace := wheel{}, len(tags)
	for _, w := range wheels {
		at := len(tags)
		for _, t := range w.tags() {
			if i, ok := place[t]; ok {
				at = min(at, i)
			}
		}
		if at < bestPlace || at == bestPlace && at < len(tags) && w.build() > best.build() {
			best, bestPlace = w, at
		}
	}
	return best, bestPlace < len(tags)
}

// tags spells out the tags of the file name: py2.py3-none-any is two.
func (w wheel) tags() []string {
	parts := strings.Split(strings.TrimSuffix(w.file, ".whl"), "-")
	n := len(parts)
	var out []string
	for python := range strings.SplitSeq(parts[n-3], ".") {
		for abi := range strings.SplitSeq(parts[n-2], ".") {
			for platform := range strings.SplitSeq(parts[n-1], ".") {
				out = append(out, python+"-"+abi+"-"+platform)
			}
		}
	}
	return out
}

// build is the build number in the file name; -1 when there is none.
func (w wheel) build() int {
	parts := strings.Split(w.file, "-")
	if len(parts) < 6 {
		return -1
	}
	digits := strings.TrimRightFunc(parts[2], func(r rune) bool { return r < '0' || r > '9' })
	n, err := strconv.Atoi(digits)
	if err != nil {
		return -1
	}
	return n
}

// fileOf is the file name a URL ends in.
func fileOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return path.Base(u.Path)
}

func (w wheel) check() error {
	parts := strings.Split(w.file, "-")
	switch {
	case !strings.HasSuffix(w.file, ".whl") || strings.ContainsAny(w.file, "/\\ \t\n") || len(parts) < 5:
		return fmt.Errorf("%q is no wheel's file name", w.file)
	case version.NormalizeName(parts[0]) != w.name:
		return fmt.Errorf("wheel %s is of another distribution", w.file)
	case w.version == "" || strings.ContainsAny(w.version, " \t\n:"):
		return fmt.Errorf("bad version %q", w.version)
	case !sha256Hex.MatchString(w.sha256):
		return fmt.Errorf("the index gives no sha256 for %s", w.file)
	case w.size < 0:
		return fmt.Errorf("negative size of %s", w.file)
	}
	return nil
}
