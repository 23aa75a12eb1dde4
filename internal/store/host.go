package store

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// readHost makes a profile of what apt and pip use on this machine. Their links
// may lead anywhere, as they may for apt and pip themselves.
func readHost(env Environment) Profile {
	p := Profile{Name: hostProfile, AnyHost: true, Archives: aptArchives(env)}
	logins := aptLogins(env)
	for _, kind := range archiveNames {
		switch {
		case p.Archives[kind] != "":
			p.Archives[kind] = withLogin(p.Archives[kind], logins, login.aptMatches)
		case kind == "ubuntu-base":
			p.Missing = append(p.Missing, kind+": apt has no such files")
		default:
			p.Missing = append(p.Missing, kind+": apt on this machine is not set up with it")
		}
	}
	var why []string
	p.Indexes, why = pipIndexes(env)
	for _, reason := range why {
		p.Missing = append(p.Missing, "pypi: "+reason)
	}
	logins = pipLogins(env)
	for i, raw := range p.Indexes {
		p.Indexes[i] = withLogin(raw, logins, login.pipMatches)
	}
	p.login = func(u *url.URL) *url.Userinfo { return find(logins, u, login.pipMatches) }
	p.Missing = append(p.Missing, "pytorch: pip on this machine names no index of torch wheels by CUDA version")
	return p
}

// file is where an absolute path is below the environment's root.
func (e Environment) file(path string) string { return filepath.Join("/", e.Root, path) }

// proxy is how requests leave this machine; with no Env, as the process's own
// environment says.
func (e Environment) proxy() func(*http.Request) (*url.URL, error) {
	if e.Env == nil {
		return http.ProxyFromEnvironment
	}
	either := func(name string) string { return cmp.Or(e.get(name), e.get(strings.ToLower(name))) }
	conf := httpproxy.Config{HTTPProxy: either("HTTP_PROXY"), HTTPSProxy: either("HTTPS_PROXY"), NoProxy: either("NO_PROXY")}
	find := conf.ProxyFunc()
	return func(r *http.Request) (*url.URL, error) { return find(r.URL) }
}

// CAFile is the file of certificate authorities that this machine's tools are told
// to trust, and the variable that says so; both empty where none does.
func (e Environment) CAFile() (path, variable string) {
	for _, name := range []string{"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"} {
		if v := e.get(name); v != "" {
			return v, name
		}
	}
	return "", ""
}

// roots are the authorities of CAFile; nil, the system's, where there is none.
func (e Environment) roots() (*x509.CertPool, error) {
	path, variable := e.CAFile()
	if info, err := os.Stat(path); path == "" || err == nil && info.IsDir() { // a hashed directory is the system's way
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", variable, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%s: %s holds no certificate in PEM", variable, path)
	}
	return pool, nil
}

func (e Environment) get(name string) string { return e.Env[name] }

// output is what a program prints.
func (e Environment) output(name string, args ...string) ([]byte, error) {
	if e.Run == nil {
		return nil, errors.New("programs cannot be run here")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return e.Run(ctx, name, args...)
}
