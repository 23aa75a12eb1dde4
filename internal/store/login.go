package store

import (
	"cmp"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// login is a name and a password for a machine, as a netrc file has them.
type login struct {
	machine        string // as written; empty for netrc's default
	user, password string
}

// parseNetrc reads the format of ~/.netrc, which apt's auth.conf shares: words,
// of which machine begins an entry. Macros, comments and unknown words are left out.
func parseNetrc(text string) []login {
	var out []login
	var words []string
	inMacro := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			inMacro = false
		case inMacro || line[0] == '#':
		default:
			for _, w := range netrcWords(line) {
				if inMacro = w == "macdef"; inMacro {
					break
				}
				words = append(words, w)
			}
		}
	}
	for i := 0; i < len(words); i++ {
		if words[i] == "default" {
			out = append(out, login{})
			continue
		}
		if i+1 == len(words) || words[i] != "machine" && len(out) == 0 {
			continue
		}
		switch value := words[i+1]; words[i] {
		case "machine":
			out = append(out, login{machine: value})
		case "login":
			out[len(out)-1].user = value
		case "password":
			out[len(out)-1].password = value
		case "account":
		default:
			continue
		}
		i++
	}
	return out
}

// netrcWords splits a line at blanks. A word may be quoted, as curl takes it.
func netrcWords(line string) []string {
	var out []string
	for {
		line = strings.TrimLeft(line, " \t")
		if line == "" {
			return out
		}
		if line[0] != '"' {
			word, rest, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
			out, line = append(out, word), rest
			continue
		}
		var word strings.Builder
		i := 1
		for ; i < len(line) && line[i] != '"'; i++ {
			if line[i] == '\\' && i+1 < len(line) {
				i++
			}
			word.WriteByte(line[i])
		}
		out, line = append(out, word.String()), line[min(i+1, len(line)):]
	}
}

// aptLogins are the entries of apt's auth.conf and auth.conf.d, in apt's order.
func aptLogins(env Environment) []login {
	files := []string{env.file("/etc/apt/auth.conf")}
	more, _ := filepath.Glob(filepath.Join(env.file("/etc/apt/auth.conf.d"), "*.conf")) // the pattern is good
	var out []login
	for _, file := range append(files, more...) {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // absent, or for root alone: the mirror then asks for a password
		}
		for _, l := range parseNetrc(string(data)) {
			if l.machine != "" { // apt has no default
				out = append(out, l)
			}
		}
	}
	return out
}

// aptMatches reports whether an entry, [scheme://]host[:port][/path], is for u.
// Without a scheme it is for https alone.
func (l login) aptMatches(u *url.URL) bool {
	scheme, rest, given := strings.Cut(l.machine, "://")
	if !given {
		scheme, rest = "https", l.machine
	}
	host, path, _ := strings.Cut(rest, "/")
	own := u.Hostname()
	if strings.Contains(host, ":") {
		own = hostOf(u)
		host = hostOf(&url.URL{Scheme: u.Scheme, Host: host})
	}
	return scheme == u.Scheme && strings.EqualFold(host, own) && strings.HasPrefix(u.Path, strings.TrimRight("/"+path, "/"))
}

// pipLogins are the entries of the netrc that pip reads.
func pipLogins(env Environment) []login {
	home := env.get("HOME")
	for _, file := range []string{env.get("NETRC"), filepath.Join(home, ".netrc"), filepath.Join(home, "_netrc")} {
		if file == "" {
			continue
		}
		if data, err := os.ReadFile(env.file(file)); err == nil {
			return parseNetrc(string(data))
		}
	}
	return nil
}

// pipMatches reports whether an entry is for u, by the name of its host alone.
func (l login) pipMatches(u *url.URL) bool {
	return l.machine == "" || strings.EqualFold(l.machine, u.Hostname())
}

// find returns the name and password of the first entry that matches u, or nil.
func find(logins []login, u *url.URL, matches func(login, *url.URL) bool) *url.Userinfo {
	for _, l := range logins {
		if matches(l, u) && cmp.Or(l.user, l.password) != "" {
			return url.UserPassword(l.user, l.password)
		}
	}
	return nil
}

// withLogin adds a name and password to a URL that has none.
func withLogin(raw string, logins []login, matches func(login, *url.URL) bool) string {
	u, err := url.Parse(raw)
	if err != nil || u.User != nil {
		return raw
	}
	u.User = find(logins, u, matches)
	return u.String()
}
