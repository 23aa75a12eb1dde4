package main

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"time"

	"github.com/imgforge/imgforge/internal/builder"
	"github.com/imgforge/imgforge/internal/matrix"
	"github.com/imgforge/imgforge/internal/store"
)

// machine is what the doctor can ask of a computer. Tests have machines of their
// own, with one thing wrong.
type machine struct {
	uid     int
	env     map[string]string
	now     func() time.Time
	read    func(path string) ([]byte, error)
	exists  func(path string) bool
	find    func(given, name string) string // a program beside this one or on PATH; "" without
	output  func(ctx context.Context, program string, args ...string) (string, error)
	free    func(dir string) int64 // bytes
	overlay func(dir string) error // mounts one below dir, and unmounts it
	resolve func(ctx context.Context, host string) error
	answers func(ctx context.Context, url string) error
	dial    func(ctx context.Context, addr, tls string) error
	engine  string // the version of BuildKit that this program is made with
}

// patient is a machine and what is to be done on it.
type patient struct {
	machine machine
	state   string // directory
	remote  string // URL of an engine elsewhere; empty for our own
	tls     string
	inputs  error // why the matrix could not be read
	cells   []matrix.Cell
	mirrors []store.Profile
	indexes []store.Index
	epoch   int64 // of the lock; 0 without one
	need    need
}

// thisMachine asks this one.
func (a *app) thisMachine() machine {
	return machine{
		uid: os.Geteuid(), env: a.env, now: time.Now, read: os.ReadFile, find: builder.Find, free: freeSpace,
		overlay: builder.TryOverlay, dial: dial, engine: moduleVersion("github.com/moby/buildkit"),
		exists: func(path string) bool { _, err := os.Stat(path); return err == nil },
		output: func(ctx context.Context, program string, args ...string) (string, error) {
			ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
			defer cancel()
			out, err := exec.CommandContext(ctx, program, args...).Output()
			return string(out), err
		},
		resolve: func(ctx context.Context, host string) error {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			_, err := net.DefaultResolver.LookupHost(ctx, host)
			return err
		},
		answers: func(ctx context.Context, url string) error { return answers(ctx, store.Client(a.environment()), url) },
	}
}

// answers asks a server for a page; any answer of its own will do.
func answers(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	if err := resp.Body.Close(); err != nil {
		return err
	}
	if resp.StatusCode >= 500 || resp.StatusCode == http.StatusProxyAuthRequired {
		return errors.New(resp.Status)
	}
	return nil
}

// certificates tells whether a PEM file has any.
func certificates(data []byte) bool { return x509.NewCertPool().AppendCertsFromPEM(data) }
