package store

import (
	"bufio"
	"bytes"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"pault.ag/go/debian/control"
)

// aptSource is one line, or one combination in a stanza, of apt's sources.
type aptSource struct {
	uri        string
	suite      string
	components []string
}

// debianSuite is a suite of Debian itself. Other vendors name their suites
// otherwise, or have no component main.
var debianSuite = regexp.MustCompile(`^(buster|bullseye|bookworm|trixie|forky|duke|sid|unstable|testing|(old)*stable)` +
	`(-updates|-security|-backports|-proposed-updates|/updates)?$`)

// maxListed bounds the URIs, and the suites, that are read of one stanza.
const maxListed = 100

// ubuntuSuite is a suite of Ubuntu itself.
var ubuntuSuite = regexp.MustCompile(`^(bionic|focal|jammy|noble|oracular|plucky|questing|resolute)(-updates|-security|-backports|-proposed)?$`)

// aptArchives finds, by name, the first root of each archive of Debian and Ubuntu
// that apt uses here. Where a root's path does not end in that name, as behind a
// company's proxy, the suite tells.
func aptArchives(env Environment) map[string]string {
	out := map[string]string{}
	for _, s := range aptSources(env) {
		names := archivesOf(s.suite)
		if len(names) == 0 || !slices.Contains(s.components, "main") {
			continue
		}
		for _, root := range aptRoots(env, s.uri) {
			name := names[0]
			if base := path.Base(root); slices.Contains(names, base) {
				name = base
			}
			if out[name] == "" {
				out[name] = root
			}
		}
	}
	return out
}

// archivesOf are the archives that may have a suite, the likeliest first.
func archivesOf(suite string) []string {
	switch {
	case ubuntuSuite.MatchString(suite):
		return []string{"ubuntu", "ubuntu-ports"}
	case !debianSuite.MatchString(suite):
		return nil
	case strings.HasSuffix(suite, "-security"), strings.HasSuffix(suite, "/updates"):
		return []string{"debian-security", "debian"}
	}
	return []string{"debian", "debian-security"}
}

func aptSources(env Environment) []aptSource {
	files := []string{env.file("/etc/apt/sources.list")}
	for _, pattern := range []string{"*.list", "*.sources"} {
		more, _ := filepath.Glob(filepath.Join(env.file("/etc/apt/sources.list.d"), pattern)) // the pattern is good
		files = append(files, more...)
	}
	var out []aptSource
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // apt on this machine may be set up in any subset of them, or be absent
		}
		if strings.HasSuffix(file, ".sources") {
			out = append(out, stanzas(data)...)
		} else {
			out = append(out, oneLine(data)...)
		}
	}
	return out
}

// oneLine reads the format "deb [options] uri suite component...".
func oneLine(data []byte) []aptSource {
	var out []aptSource
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(line, "#")
		rest, ok := strings.CutPrefix(strings.Join(strings.Fields(line), " "), "deb ")
		if !ok {
			continue
		}
		if strings.HasPrefix(rest, "[") {
			_, rest, _ = strings.Cut(rest, "]")
		}
		if f := strings.Fields(rest); len(f) >= 2 {
			out = append(out, aptSource{f[0], f[1], f[2:]})
		}
	}
	return out
}

// stanzas reads the deb822 format.
func stanzas(data []byte) []aptSource {
	var plain bytes.Buffer
	for line := range bytes.Lines(data) {
		if !bytes.HasPrefix(line, []byte("#")) {
			plain.Write(line)
		}
	}
	r, err := control.NewParagraphReader(bufio.NewReader(&plain), nil)
	if err != nil {
		return nil
	}
	var out []aptSource
	for {
		p, err := r.Next()
		if err != nil || p == nil {
			return out
		}
		value := func(key string) []string {
			for k, v := range p.Values {
				if strings.EqualFold(k, key) {
					return strings.Fields(v)
				}
			}
			return nil
		}
		if !slices.Contains(value("Types"), "deb") || slices.Contains([]string{"no", "false", "without", "off", "disable", "0"}, strings.ToLower(strings.Join(value("Enabled"), ""))) {
			continue
		}
		few := func(list []string) []string { return list[:min(len(list), maxListed)] } // they multiply
		for _, uri := range few(value("URIs")) {
			for _, suite := range few(value("Suites")) {
				out = append(out, aptSource{uri, suite, value("Components")})
			}
		}
	}
}

// aptRoots are the http roots a URI of apt's stands for: itself, or the lines of
// a list of mirrors on this machine.
func aptRoots(env Environment, uri string) []string {
	list := []string{uri}
	if name, ok := strings.CutPrefix(uri, "mirror+file:"); ok {
		data, err := os.ReadFile(env.file(strings.TrimPrefix(name, "//")))
		if err != nil {
			return nil
		}
		list = nil
		for line := range strings.Lines(string(data)) {
			if f := strings.Fields(line); len(f) > 0 && !strings.HasPrefix(f[0], "#") {
				list = append(list, f[0])
			}
		}
	}
	var out []string
	for _, s := range list {
		if isWebURL(s) {
			out = append(out, strings.TrimRight(s, "/"))
		}
	}
	return out
}
