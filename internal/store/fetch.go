package store

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/imgforge/imgforge/internal/plan"
)

const maxMetadata = 128 << 20 // bytes; a Packages file of main is about a tenth

// Fetcher fills a store from mirrors. What it learns of them, such as that one
// cannot be reached, holds for its lifetime. It may be used concurrently.
type Fetcher struct {
	Store    *Store
	Profiles []Profile // in order of preference
	Client   *http.Client
	Jobs     int            // files at a time; 8 when zero
	PerHost  int            // requests at a time to one host; 6 when zero
	Stall    time.Duration  // give up when no byte comes for so long; 30 s when zero
	Progress func(Progress) // called by one goroutine at a time; may be nil
	Env      Environment    // says which proxy to use, unless Client is set
	Snapshot time.Time      // newest date of the locked archives, for mirrors that keep them by date

	pieces pieces                                     // of large files; for tests
	sleep  func(context.Context, time.Duration) error // for tests

	once sync.Once
	run  *run
}

// Progress is how far a Fetch is.
type Progress struct {
	Files, FilesDone int
	Bytes, Done      int64  // of all files; files of unknown size count once they are here
	Note             string // what just went wrong, or empty
}

// Result is what a Fetch did.
type Result struct {
	Downloaded int64    // bytes that came over the network
	Files      int      // files that were not in the store before
	Notes      []string // what went wrong on the way though it ended well, by mirror
}

// Index is a simple index (PEP 503) of a mirror.
type Index struct{ Mirror, URL string }

// run is the part of a Fetcher that all its calls share.
type run struct {
	store    *Store
	client   *http.Client
	stall    time.Duration
	snapshot time.Time
	health   *health
	pieces   pieces
	sleep    func(context.Context, time.Duration) error

	hostsMu sync.Mutex
	hosts   map[string]chan struct{}
	perHost int

	pagesMu sync.Mutex
	pages   map[string]*pageCall

	noteMu sync.Mutex
	note   map[*tally]bool // who wants to hear of mirrors that go down
}

func (f *Fetcher) start() *run {
	f.once.Do(func() {
		f.run = &run{
			store: f.Store, client: f.Client, stall: cmp.Or(f.Stall, 30*time.Second), snapshot: f.Snapshot, health: newHealth(),
			perHost: cmp.Or(f.PerHost, 6), hosts: map[string]chan struct{}{},
			pages: map[string]*pageCall{}, note: map[*tally]bool{}, pieces: f.pieces.orDefault(), sleep: f.sleep,
		}
		if f.run.sleep == nil {
			f.run.sleep = sleep
		}
		if f.run.client == nil {
			f.run.client = newClient(f.run.perHost, f.Env)
		}
	})
	return f.run
}

// enter waits for a place at a host.
func (r *run) enter(ctx context.Context, host string) (release func(), err error) {
	r.hostsMu.Lock()
	places := r.hosts[host]
	if places == nil {
		places = make(chan struct{}, r.perHost)
		r.hosts[host] = places
	}
	r.hostsMu.Unlock()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case places <- struct{}{}:
		return sync.OnceFunc(func() { <-places }), nil
	}
}

func (r *run) markDown(mirror, host, reason string) {
	if !r.health.mark(mirror, host, reason) {
		return
	}
	r.noteMu.Lock()
	defer r.noteMu.Unlock()
	for t := range r.note {
		t.say("mirror " + mirror + ": " + reason + "; trying others")
	}
}

// Fetch brings blobs into the store, each from the first mirror that has it. One
// that no mirror gives does not stop the others; the error is then a *FetchError.
// When ctx ends it returns promptly and keeps what it has of unfinished files.
func (f *Fetcher) Fetch(ctx context.Context, blobs []plan.Blob) (Result, error) {
	r := f.start()
	files, err := distinct(blobs)
	if err != nil {
		return Result{}, err
	}
	t := newTally(files, f.Progress)
	r.listen(t, true)
	defer r.listen(t, false)
	failures := make([]*FileFailure, len(files))
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(cmp.Or(f.Jobs, 8))
	for i, w := range files {
		group.Go(func() error {
			d := &download{run: r, tally: t, want: w}
			err := d.fetch(gctx, f.Profiles)
			var failed *FetchError
			if errors.As(err, &failed) {
				failures[i] = &failed.Files[0]
				return nil
			}
			if isFull(err) {
				return &SpaceError{Dir: r.store.dir, File: w.blob.Name, Need: max(w.blob.Size-d.have, 0), All: t.left(), err: err}
			}
			return err
		})
	}
	err = group.Wait()
	result := t.result()
	if err != nil {
		return result, err
	}
	var failed FetchError
	for _, fail := range failures {
		if fail != nil {
			failed.Files = append(failed.Files, *fail)
		}
	}
	if len(failed.Files) > 0 {
		return result, &failed
	}
	return result, nil
}

func (r *run) listen(t *tally, on bool) {
	r.noteMu.Lock()
	defer r.noteMu.Unlock()
	if on {
		r.note[t] = true
	} else {
		delete(r.note, t)
	}
}

// distinct takes the blobs' origins apart; the same content is wanted once. The
// largest come first, so that none is left for the end.
func distinct(blobs []plan.Blob) ([]wanted, error) {
	var out []wanted
	var errs []error
	seen := map[string]bool{}
	for _, b := range blobs {
		w, err := parseOrigin(b)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if !seen[b.SHA256] {
			seen[b.SHA256] = true
			out = append(out, w)
		}
	}
	slices.SortStableFunc(out, func(a, b wanted) int { return cmp.Compare(b.blob.Size, a.blob.Size) })
	return out, errors.Join(errs...)
}

// Metadata returns the file at path of archive ("debian" or "debian-security")
// from the first mirror whose answer passes check. A mirror whose answer does
// not is marked down with that reason. When none has it, the error is a
// *FetchError.
func (f *Fetcher) Metadata(ctx context.Context, archive, file string, check func([]byte) error) ([]byte, error) {
	r := f.start()
	w := wanted{blob: plan.Blob{Name: path.Base(file), Origin: archive + "/" + file}, archive: archive, path: file}
	if !cleanPath(file) {
		return nil, errors.New(w.blob.Origin + " is no path in an archive")
	}
	var attempts []Attempt
	for _, p := range r.health.order(f.Profiles) {
		data, attempt, err := r.metadata(ctx, p, w, check)
		if err != nil {
			return nil, err
		}
		if attempt == nil {
			return data, nil
		}
		attempts = append(attempts, *attempt)
	}
	return nil, &FetchError{Files: []FileFailure{{Blob: w.blob, Attempts: attempts}}}
}

func (r *run) metadata(ctx context.Context, p *Profile, w wanted, check func([]byte) error) ([]byte, *Attempt, error) {
	sources, why := r.sources(p, w)
	if why != "" {
		return nil, &Attempt{Mirror: p.Name, Reason: why}, nil
	}
	base := sources[0].base
	if reason := r.health.down(p.Name, base); reason != "" {
		return nil, &Attempt{p.Name, base, reason}, nil
	}
	u, err := sources[0].locate(ctx)
	var data []byte
	if err == nil {
		err = r.patiently(ctx, sources[0].place, func() error {
			data, err = r.readAll(ctx, p, u)
			return err
		})
	}
	if err != nil {
		attempt, err := asAttempt(p, base, err)
		return nil, attempt, err
	}
	if check != nil {
		if err := check(data); err != nil {
			r.markDown(p.Name, base, err.Error())
			return nil, &Attempt{p.Name, redactURL(u), err.Error()}, nil
		}
	}
	r.health.praise(sources[0].place)
	return data, nil, nil
}

func (r *run) readAll(ctx context.Context, p *Profile, u *url.URL) ([]byte, error) {
	resp, err := r.get(ctx, p, u, http.Header{"Accept-Encoding": {"identity"}})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := readAtMost(resp.Body, maxMetadata)
	return data, located(err, redactURL(u))
}

// asAttempt is a failure as an Attempt; any other error stays one.
func asAttempt(p *Profile, at string, err error) (*Attempt, error) {
	var fail *failure
	if !errors.As(err, &fail) {
		return nil, err
	}
	return &Attempt{p.Name, cmp.Or(fail.url, at), fail.reason}, nil
}

// NoIndex says why no mirror has a Python index; empty when one has.
func (f *Fetcher) NoIndex() string {
	var why []string
	for i := range f.Profiles {
		p := f.Profiles[i].found()
		if len(p.Indexes) > 0 {
			return ""
		}
		why = append(why, p.Name+" "+lacks(p, "pypi", "has no Python index"))
	}
	return strings.Join(why, "; ")
}

// Indexes returns the simple indexes of all mirrors in order, those that are
// marked down last. A URL may hold credentials.
func (f *Fetcher) Indexes() []Index {
	r := f.start()
	var up, dead []Index
	for _, p := range r.health.order(f.Profiles) {
		for _, raw := range p.found().Indexes {
			i := Index{p.Name, raw}
			u, err := url.Parse(raw)
			if err != nil || r.health.down(p.Name, hostOf(u)) != "" || r.health.down(p.Name, redact(raw)) != "" {
				dead = append(dead, i)
			} else {
				up = append(up, i)
			}
		}
	}
	return append(up, dead...)
}
