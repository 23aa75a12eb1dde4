package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/resolve"
)

// resolve asks the solvers, in containers, on the engine.
func (a *app) resolve(ctx context.Context, f *lockFlags, in *inputs, ask []lock.Need) (*resolve.Result, error) {
	display, err := newDisplay(a.stderr, f.progress)
	if err != nil {
		return nil, err
	}
	defer display.close()
	work, err := a.openWorkshop(ctx, &f.engine, in, display)
	if err != nil {
		return nil, err
	}
	t := display.begin(fmt.Sprintf("resolve %d sets", len(ask)))
	r := &resolve.Resolver{
		Fetcher:  work.metadata(),
		Runner:   work.runner(),
		Platform: work.builder.Platform(),
		Runs:     work.builder.Runs,
		Images:   finder{in.images},
		Bases:    lockedBases(in.all, in.lock),
		Path:     work.store.Path,
		Indexes:  work.indexes(),
		NoIndex:  work.fetcher.NoIndex(),
		Size:     work.fetcher.Size,
		CA:       a.caBundle(),
		Proxy:    a.proxies(),
		Now:      time.Now,
		Progress: func(text string) { t.say("%s", text) },
	}
	result, err := r.Resolve(ctx, ask)
	t.end(err)
	if cerr := work.close(); err == nil && cerr != nil {
		err = cerr
	}
	if err != nil {
		return nil, infra(err)
	}
	return result, nil
}

// caBundle is the PEM bundle this machine's tools are told to trust, if any: a
// container has none of its own, and a company's proxy may need a private one.
func (a *app) caBundle() []byte {
	told, _ := a.environment().CAFile()
	for _, path := range []string{
		told, "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
	} {
		if path == "" {
			continue
		}
		if data, err := os.ReadFile(path); err == nil {
			return data
		}
	}
	return nil
}

// proxies are this machine's proxy settings, by lower-case name.
func (a *app) proxies() map[string]string {
	out := map[string]string{}
	for _, name := range []string{"http_proxy", "https_proxy", "no_proxy", "all_proxy", "ftp_proxy"} {
		for _, spelling := range []string{name, strings.ToUpper(name)} {
			if value := a.env[spelling]; value != "" {
				out[name] = value
				break
			}
		}
	}
	return out
}
