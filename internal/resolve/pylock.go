package resolve

import (
	"fmt"
	"net/url"
	"path"
	"slices"
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

// parsePylock reads the pylock.toml that uv writes for one interpreter: exactly
// one wheel a package.
func parsePylock(data string) ([]wheel, error) {
	var doc struct {
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
	if err := toml.Unmarshal([]byte(data), &doc); err != nil {
		return nil, fmt.Errorf("pylock.toml: %w", err)
	}
	if !strings.HasPrefix(doc.Version, "1.") {
		return nil, fmt.Errorf("pylock.toml: version %q, 1.x is known", doc.Version)
	}
	var out []wheel
	for _, p := range doc.Packages {
		if len(p.Wheels) != 1 {
			return nil, fmt.Errorf("pylock.toml: %s has %d wheels, one is expected", p.Name, len(p.Wheels))
		}
		from := p.Wheels[0]
		w := wheel{name: version.NormalizeName(p.Name), version: p.Version, file: from.Name, sha256: from.Hashes["sha256"], size: from.Size, url: from.URL}
		if w.file == "" {
			w.file = fileOf(w.url)
		}
		if err := w.check(); err != nil {
			return nil, fmt.Errorf("pylock.toml: %s: %w", p.Name, err)
		}
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b wheel) int { return strings.Compare(a.file, b.file) })
	return out, nil
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
