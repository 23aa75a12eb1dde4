package store

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	maxTries    = 3
	firstWait   = 500 * time.Millisecond
	longestWait = 30 * time.Second
)

// newClient is what a Fetcher uses when it is given none. Proxies and
// certificate authorities come from the environment; where those cannot be read,
// no request is made, for the reason would be lost.
func newClient(perHost int, env Environment) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = env.proxy()
	t.DialContext = (&net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	t.TLSHandshakeTimeout = 15 * time.Second
	t.MaxIdleConnsPerHost = perHost
	roots, err := env.roots()
	if err != nil {
		return &http.Client{Transport: broken{err}}
	}
	t.TLSClientConfig = &tls.Config{RootCAs: roots} // nil: the system's
	return &http.Client{Transport: t}
}

// broken is a transport that cannot be used.
type broken struct{ err error }

func (b broken) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, &failure{effect: down, reason: b.err.Error()}
}

// Client is what asks mirrors: proxies and certificate authorities come from env.
func Client(env Environment) *http.Client { return newClient(2, env) }

// get asks a mirror for u. The body must be closed. Errors are *failure, or the
// context's own.
func (r *run) get(ctx context.Context, p *Profile, u *url.URL, header http.Header) (*http.Response, error) {
	return r.ask(ctx, p, http.MethodGet, u, header)
}

func (r *run) ask(ctx context.Context, p *Profile, method string, u *url.URL, header http.Header) (*http.Response, error) {
	at := redactURL(u)
	if reason := r.health.down(p.Name, hostOf(u)); reason != "" {
		return nil, &failure{effect: down, reason: reason, url: at}
	}
	release, err := r.enter(ctx, hostOf(u))
	if err != nil {
		return nil, err
	}
	watched, watch := newWatch(ctx, r.stall)
	req, err := http.NewRequestWithContext(watched, method, p.signedIn(u).String(), nil)
	if err != nil {
		watch.stop()
		release()
		return nil, &failure{effect: next, reason: "not a usable address", url: at}
	}
	req.Header = header
	req.Header.Set("User-Agent", "imgforge")
	client := *r.client
	if p.Client != nil {
		client = *p.Client
	}
	client.CheckRedirect = func(req *http.Request, via []*http.Request) error { return checkRedirect(p, req, via) }
	resp, err := client.Do(req)
	if err != nil {
		err = r.explain(ctx, watched, p, hostOf(u), err)
		watch.stop()
		release()
		return nil, located(err, at)
	}
	resp.Body = &watchedBody{
		body: resp.Body, watch: watch, release: release,
		explain: func(err error) error { return located(r.explain(ctx, watched, p, hostOf(u), err), at) },
	}
	if fail := statusFailure(resp); fail != nil {
		resp.Body.Close()
		fail.url = at
		return nil, fail
	}
	return resp, nil
}

func checkRedirect(p *Profile, req *http.Request, via []*http.Request) error {
	if via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme == "http" {
		return &failure{effect: next, reason: "redirects from https to http"}
	}
	if !p.owns(req.URL) {
		return &failure{effect: next, reason: "redirects to another host, " + hostOf(req.URL)}
	}
	if len(via) >= 10 {
		return &failure{effect: next, reason: "redirects without end"}
	}
	if from := via[0].URL; req.URL.User == nil && hostOf(req.URL) == hostOf(from) {
		req.URL.User = from.User // an absolute one into the same, private, mirror
	}
	req.URL = p.signedIn(req.URL)
	return nil
}

// signedIn is u with the name and password this machine has for it, if any.
func (p *Profile) signedIn(u *url.URL) *url.URL {
	if p.login == nil || u.User != nil {
		return u
	}
	with := *u
	with.User = p.login(u)
	return &with
}

// statusFailure is what a status other than success means.
func statusFailure(resp *http.Response) *failure {
	fail := &failure{effect: next, reason: resp.Status, status: resp.StatusCode, wait: resp.Header.Get("Retry-After")}
	switch code := resp.StatusCode; {
	case code == http.StatusOK, code == http.StatusPartialContent:
		return nil
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code >= 500:
		fail.effect = retry
	case code == http.StatusUnauthorized:
		fail.reason += ": it wants another name and password"
	case code == http.StatusRequestedRangeNotSatisfiable:
		fail.effect, fail.wait = retry, "0"
	}
	return fail
}

// explain turns what client and body report into a failure, and notes in health
// what concerns the whole host. The caller's own cancellation stays as it is.
func (r *run) explain(ctx, watched context.Context, p *Profile, host string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(context.Cause(watched), errStall) {
		return &failure{effect: slow, reason: fmt.Sprintf("stalled: no byte for %s", r.stall)}
	}
	fail := classifyNet(err)
	fail.host = host
	if fail.effect == down {
		r.markDown(p.Name, host, fail.reason)
	}
	return fail
}

// located adds the address to a failure that has none.
func located(err error, at string) error {
	var fail *failure
	if errors.As(err, &fail) && fail.url == "" {
		with := *fail
		with.url = at
		return &with
	}
	return err
}

// retryWait is how long to wait before try number n (from 1) is repeated.
func retryWait(n int, retryAfter string) time.Duration {
	wait := firstWait << (n - 1)
	if s, err := strconv.Atoi(retryAfter); err == nil && s >= 0 {
		wait = time.Duration(min(s, 3600)) * time.Second
	} else if at, err := http.ParseTime(retryAfter); err == nil {
		wait = max(time.Until(at), 0)
	}
	return min(wait, longestWait)
}

// wait waits before try number n is repeated, longer by chance, so that many
// that failed together do not come back together.
func (r *run) wait(ctx context.Context, n int, retryAfter string) error {
	d := retryWait(n, retryAfter)
	return r.sleep(ctx, d+time.Duration(rand.Float64()*float64(d)/2))
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// watch cancels a request when nothing arrives for a while.
type watch struct {
	timer  *time.Timer
	cancel context.CancelCauseFunc
	after  time.Duration
}

func newWatch(ctx context.Context, after time.Duration) (context.Context, *watch) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watch{cancel: cancel, after: after}
	w.timer = time.AfterFunc(after, func() { cancel(errStall) })
	return ctx, w
}

func (w *watch) alive() { w.timer.Reset(w.after) }

func (w *watch) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// watchedBody is a body that fails when it stalls, and frees its host's place
// when it is closed.
type watchedBody struct {
	body    io.ReadCloser
	watch   *watch
	release func()
	explain func(error) error
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if n > 0 {
		b.watch.alive()
	}
	if err != nil && err != io.EOF {
		err = b.explain(err)
	}
	return n, err
}

func (b *watchedBody) Close() error {
	err := b.body.Close()
	b.watch.stop()
	b.release()
	return err
}
