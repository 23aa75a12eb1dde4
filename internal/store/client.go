package store

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func (f *Fetcher) newTransport() http.RoundTripper {
	proxy := f.Env.proxy().ProxyFunc()
	// HTTP/1.1: on a bad network a connection to itself serves a file better
	// than a share of one.
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:               func(r *http.Request) (*url.URL, error) { return proxy(r.URL) },
		DialContext:         (&net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 15 * time.Second,
		MaxIdleConnsPerHost: f.perHost(),
		IdleConnTimeout:     60 * time.Second,
		Protocols:           protocols,
	}
}

// refusal is a redirect that the profile does not allow.
type refusal struct{ error }

// get asks a site for u. On success the body must be closed; reading it fails
// when nothing comes for the stall time.
func (f *Fetcher) get(ctx context.Context, s *site, u *url.URL, header http.Header) (*http.Response, *failure) {
	outer := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	watch := time.AfterFunc(f.stall(), func() { cancel(errStalled) })
	body := &watchedBody{ctx: ctx, cancel: cancel, watch: watch, stall: f.stall()}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		body.Close()
		return nil, &failure{reason: "not a URL that can be asked for", kind: absent}
	}
	req.Header = header.Clone()
	req.Header.Set("User-Agent", "imgforge")
	client := http.Client{Transport: f.transport, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if len(via) >= 10 {
			return refusal{errors.New("redirects without end")}
		}
		if err := s.profile.allows(u, next.URL); err != nil {
			return refusal{fmt.Errorf("a redirect %w", err)}
		}
		return nil
	}}
	resp, err := client.Do(req)
	watch.Stop()
	if err != nil {
		cause := context.Cause(ctx)
		body.Close()
		if outer.Err() == nil && errors.Is(cause, errStalled) {
			err = errStalled
		}
		return nil, f.classify(err)
	}
	body.ReadCloser, resp.Body = resp.Body, body
	return resp, nil
}

var errStalled = errors.New("stalled")

// watchedBody gives up on a body from which nothing comes.
type watchedBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	watch  *time.Timer
	stall  time.Duration
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.watch.Reset(b.stall)
	n, err := b.ReadCloser.Read(p)
	b.watch.Stop()
	if err != nil && err != io.EOF && errors.Is(context.Cause(b.ctx), errStalled) {
		err = errStalled
	}
	return n, err
}

func (b *watchedBody) Close() error {
	b.watch.Stop()
	b.cancel(nil)
	if b.ReadCloser == nil {
		return nil
	}
	return b.ReadCloser.Close()
}

// classify says what an error of the network means.
func (f *Fetcher) classify(err error) *failure {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // the rest is the URL, which may hold a password
	}
	var no refusal
	var dns *net.DNSError
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	errors.As(err, &op)
	var timeout net.Error
	switch {
	case errors.As(err, &no):
		return &failure{reason: no.Error(), kind: absent}
	case errors.Is(err, errStalled):
		return &failure{reason: fmt.Sprintf("sent nothing for %s", f.stall()), kind: flaky}
	case op != nil && op.Op == "proxyconnect":
		return &failure{reason: "the proxy cannot be used: " + op.Err.Error(), kind: dead}
	case errors.As(err, &dns):
		if dns.IsNotFound {
			return &failure{reason: "no such host: " + dns.Name, kind: dead}
		}
		return &failure{reason: "cannot look up " + dns.Name + ": " + dns.Err, kind: flaky, fatal: true}
	case errors.As(err, &cert), errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"),
		op != nil && (op.Op == "remote error" || op.Op == "local error"): // a TLS alert
		return &failure{reason: "TLS: " + err.Error(), kind: dead}
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return &failure{reason: err.Error(), kind: dead}
	case op != nil && op.Op == "dial", errors.As(err, &timeout) && timeout.Timeout():
		return &failure{reason: err.Error(), kind: flaky, fatal: true}
	}
	return &failure{reason: "the connection broke: " + err.Error(), kind: flaky}
}

// refused says what an answer other than success means.
func refused(resp *http.Response) *failure {
	f := &failure{reason: "answers " + resp.Status, kind: strange}
	switch code := resp.StatusCode; {
	case code == http.StatusNotFound || code == http.StatusGone:
		f.kind = absent
	case code == http.StatusProxyAuthRequired:
		f.kind = dead
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests,
		code >= 500 && code != http.StatusNotImplemented:
		f.kind = flaky
		f.after = retryAfter(resp.Header.Get("Retry-After"))
	}
	return f
}

// retryAfter reads the header: seconds or a date.
func retryAfter(s string) time.Duration {
	if n, err := strconv.Atoi(s); err == nil && n > 0 {
		return time.Duration(min(n, 1<<20)) * time.Second
	}
	if at, err := http.ParseTime(s); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// answer is a small file, read whole.
type answer struct {
	data        []byte
	at          *url.URL // after redirects
	contentType string
}

// maxPage bounds what is read into memory: index pages and Release files.
const maxPage = 32 << 20

// read gets a small file, as fresh as the mirror has it.
func (f *Fetcher) read(ctx context.Context, s *site, u *url.URL, accept string) (*answer, *failure) {
	header := http.Header{"Cache-Control": {"max-age=0"}}
	if accept != "" {
		header.Set("Accept", accept)
	}
	resp, failed := f.get(ctx, s, u, header)
	if failed != nil {
		return nil, failed
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, refused(resp)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxPage+1))
	if err != nil {
		return nil, f.classify(err)
	}
	if len(data) > maxPage {
		return nil, &failure{reason: fmt.Sprintf("the page has more than %d MiB", maxPage>>20), kind: strange}
	}
	return &answer{data, resp.Request.URL, resp.Header.Get("Content-Type")}, nil
}
