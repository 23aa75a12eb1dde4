package scan

import (
	"archive/tar"
	"path"
	"regexp"
	"strings"
)

// left is a kind of file that a build leaves behind and an image must not have.
type left struct {
	what string
	path *regexp.Regexp
	full bool // only a file that is not empty
}

var lefts = []left{
	{"a package list", regexp.MustCompile(`^var/lib/apt/lists/[^/]+$`), true},
	{"a cache of apt", regexp.MustCompile(`^var/cache/apt/(.*\.bin|archives/[^/]+\.deb)$`), true},
	{"a cache", regexp.MustCompile(`^(root|home/[^/]+)/\.(cache|conda/pkgs|npm|nv)/`), true},
	{"a cache of conda", regexp.MustCompile(`^opt/[^/]*conda[^/]*/pkgs/.*\.(conda|tar\.bz2)$`), true},
	{"a temporary file", regexp.MustCompile(`^(tmp|var/tmp|run)/`), false},
	{"a log", regexp.MustCompile(`^var/log/`), true},
	{"a backup of dpkg or passwd", regexp.MustCompile(`^(var/lib/dpkg/.*-old|var/cache/debconf/.*-old|etc/(passwd|shadow|group|gshadow)-)$`), true},
	{"ldconfig's auxiliary cache, which differs from machine to machine", regexp.MustCompile(`^var/cache/ldconfig/aux-cache$`), true},
	{"a machine's identity, which every container would share", regexp.MustCompile(`^(etc/machine-id|var/lib/dbus/machine-id)$`), true},
	{"a host key, which every container would share", regexp.MustCompile(`^etc/ssh/ssh_host_.*_key$`), true},
	{"what someone typed", regexp.MustCompile(`^(root|home/[^/]+)/\.(bash|zsh|python|node_repl|sqlite)_history$`), true},
}

// mayHoldSecret are the files that are searched for secrets.
func mayHoldSecret(p string) bool {
	if inPackages(p) || strings.Contains(p, "/dist-packages/") || strings.HasPrefix(p, "etc/ssl/certs/") {
		return false
	}
	first, _, _ := strings.Cut(p, "/")
	hidden := strings.HasPrefix(path.Base(p), ".") // such as .env
	switch first {
	case "etc", "root", "home", "workspace", "run", "tmp", "app":
		return true
	case "opt", "usr":
		return strings.HasPrefix(p, "usr/local/etc/") || path.Ext(p) == ".pem" || path.Ext(p) == ".key" || path.Base(p) == "pip.conf" || hidden
	}
	return !strings.Contains(p, "/") || hidden
}

// named are files that hold secrets whatever is in them.
var named = regexp.MustCompile(`(^|/)(\.netrc|\.pypirc|\.git-credentials|\.pgpass|id_(rsa|dsa|ecdsa|ed25519)|\.docker/config\.json|\.aws/credentials|` +
	`\.kaggle/kaggle\.json|\.config/gh/hosts\.yml|\.cache/huggingface/token|\.huggingface/token|\.kube/config)$`)

var inside = []struct {
	what string
	text *regexp.Regexp
}{
	{"a private key", regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----`)},
	{"a name and password in a URL", regexp.MustCompile(`://[^/\s:@"'$<>{}]+:[^/\s@"'$<>{}]+@[a-zA-Z0-9]`)},
	{"an AWS key", regexp.MustCompile(`\bAKIA[0-9A-Z]{16}\b`)},
	{"a token of GitHub", regexp.MustCompile(`\bgh[pousr]_[A-Za-z0-9]{36}`)},
	{"a token of Hugging Face", regexp.MustCompile(`\bhf_[A-Za-z0-9]{30,}\b`)},
	{"a token of npm", regexp.MustCompile(`_authToken\s*=\s*[^\s$]`)},
}

// secretIn says what a file holds that nobody else may have; empty: nothing known.
func secretIn(f file) string {
	if f.size > 0 && named.MatchString(f.path) {
		return "a file of credentials"
	}
	if !mayHoldSecret(f.path) {
		return ""
	}
	for _, s := range inside {
		if s.text.Match(f.data) {
			return s.what
		}
	}
	return ""
}

// leftovers refuses what a build leaves behind. Secrets are looked for in every layer:
// one that a later layer removes can still be read by whoever pulls the image.
func leftovers(f *findings) {
	for _, s := range f.tree.secrets {
		if !f.excused(s.path) {
			f.add("build without it: a layer above does not take it away; then change the secret", "%s: %s", at(&s), s.link)
		}
	}
	for _, p := range f.tree.order {
		x := f.tree.files[p]
		if x.kind == tar.TypeDir || f.excused(p) {
			continue
		}
		for _, l := range lefts {
			if l.path.MatchString(p) && (x.size > 0 || !l.full) && !(p == "etc/machine-id" && string(x.data) == "uninitialized\n") {
				f.add("remove it in the step that makes it", "%s: %s, %d bytes", at(x), l.what, x.size)
				break
			}
		}
	}
	f.summary = "no secrets, caches, lists or logs"
}
