package store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Size asks for the length, in bytes, of a file that an index of one of the
// mirrors links to. It is asked as that mirror is: through the proxy, with its
// name and password.
func (f *Fetcher) Size(ctx context.Context, raw string) (int64, error) {
	r := f.start()
	u, err := url.Parse(raw)
	if err != nil {
		return 0, errors.New("its address is not a URL")
	}
	for i := range f.Profiles {
		p := f.Profiles[i].found()
		if !p.owns(u) {
			continue
		}
		var size int64
		err := r.patiently(ctx, place{p, hostOf(u)}, func() (err error) {
			size, err = r.size(ctx, p, p.signedInLike(u))
			if err == nil && size == 0 {
				return &failure{effect: next, reason: "does not say how long it is"}
			}
			return err
		})
		if err != nil {
			return 0, fmt.Errorf("mirror %s: %w: %s", p.Name, err, redactURL(u))
		}
		return size, nil
	}
	return 0, fmt.Errorf("it is on %s, which no mirror owns", hostOf(u))
}

// signedInLike is u with the name and password of an index on the same host: a
// solver leaves them out of what it writes.
func (p *Profile) signedInLike(u *url.URL) *url.URL {
	for _, raw := range p.Indexes {
		index, err := url.Parse(raw)
		if err == nil && u.User == nil && index.User != nil && hostOf(index) == hostOf(u) {
			with := *u
			with.User = index.User
			return &with
		}
	}
	return u
}

// size asks with HEAD, or for one byte where a server has no HEAD. It is 0 for a
// file whose server does not say.
func (r *run) size(ctx context.Context, p *Profile, u *url.URL) (int64, error) {
	header := http.Header{"Accept-Encoding": {"identity"}}
	resp, err := r.ask(ctx, p, http.MethodHead, u, header)
	var fail *failure
	if err == nil {
		resp.Body.Close()
		if resp.ContentLength > 0 {
			return resp.ContentLength, nil
		}
	} else if !errors.As(err, &fail) || fail.status != http.StatusMethodNotAllowed && fail.status != http.StatusNotImplemented {
		return 0, err
	}
	header.Set("Range", "bytes=0-0")
	if resp, err = r.get(ctx, p, u, header); err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	size := resp.ContentLength
	if resp.StatusCode == http.StatusPartialContent {
		size = totalOf(resp)
	}
	return max(size, 0), nil
}

// totalOf is the length of the whole file of which resp is a part; 0 when unknown.
func totalOf(resp *http.Response) int64 {
	_, total, _ := strings.Cut(resp.Header.Get("Content-Range"), "/")
	size, err := strconv.ParseInt(total, 10, 64)
	if err != nil || size < 0 {
		return 0
	}
	return size
}
