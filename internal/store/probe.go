package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/imgforge/imgforge/internal/plan"
)

const (
	sampled   = 12      // files of each kind that a probe asks for, unless it asks for all
	speedSize = 8 << 20 // bytes that a probe of the speed takes at most
	speedTime = 5 * time.Second
)

// Probe is what asking one mirror showed.
type Probe struct {
	Mirror    string  `json:"mirror"`
	Reachable bool    `json:"reachable"`       // it answered, whatever it said
	Has       int     `json:"has"`             // of the files asked for
	Speed     float64 `json:"speed"`           // bytes a second of one timed download; 0 when none was made
	Lacks     []Lack  `json:"lacks,omitempty"` // why it has the others not, the most frequent reason first
	has       []bool  // by file asked for
}

// Lack is a reason and the files it holds for, sorted.
type Lack struct {
	Reason string   `json:"reason"`
	Files  []string `json:"files,omitempty"`
}

// ProbeResult is what asking all mirrors showed.
type ProbeResult struct {
	Mirrors []Probe  `json:"mirrors"`           // as given
	Order   []string `json:"order"`             // of mirrors that have something, the fastest first
	Nowhere []string `json:"nowhere,omitempty"` // files asked for that no mirror has, sorted
	Asked   int      `json:"asked"`             // files asked for
	Files   int      `json:"files"`             // files there are
}

// Probe asks every mirror for blobs, a sample of each kind or all, without
// fetching them, and times one download. said is told what was done, and may be
// nil. The error is that of ctx, or a mistake in the blobs.
func (f *Fetcher) Probe(ctx context.Context, blobs []plan.Blob, all bool, said func(done, total int)) (*ProbeResult, error) {
	r := f.start()
	files, err := distinct(blobs)
	if err != nil {
		return nil, err
	}
	out := &ProbeResult{Files: len(files), Mirrors: make([]Probe, len(f.Profiles))}
	if !all {
		files = sample(files)
	}
	out.Asked = len(files)
	told := &counter{said: said, total: len(files) * len(f.Profiles)}
	group, gctx := errgroup.WithContext(ctx)
	for i := range f.Profiles {
		group.Go(func() (err error) {
			out.Mirrors[i], err = r.probe(gctx, f.Profiles[i].found(), files, told)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	out.conclude(files)
	return out, nil
}

// Rank puts the mirrors in the order that a Probe of the files not yet in the store
// recommends, those of no use last. It must not run beside a Fetch.
func (f *Fetcher) Rank(ctx context.Context, blobs []plan.Blob) error {
	missing := slices.DeleteFunc(slices.Clone(blobs), func(b plan.Blob) bool { return f.Store.Has(b.SHA256) })
	if len(missing) == 0 {
		return nil
	}
	result, err := f.Probe(ctx, missing, false, nil)
	if err != nil {
		return err
	}
	place := func(p Profile) int {
		if i := slices.Index(result.Order, p.Name); i >= 0 {
			return i
		}
		return len(result.Order)
	}
	f.Profiles = slices.Clone(f.Profiles)
	slices.SortStableFunc(f.Profiles, func(a, b Profile) int { return cmp.Compare(place(a), place(b)) })
	return nil
}

// conclude finds what no mirror has, and the order to recommend.
func (r *ProbeResult) conclude(files []wanted) {
	for i, w := range files {
		if !slices.ContainsFunc(r.Mirrors, func(p Probe) bool { return p.has[i] }) {
			r.Nowhere = append(r.Nowhere, w.blob.Name)
		}
	}
	slices.Sort(r.Nowhere)
	useful := slices.DeleteFunc(slices.Clone(r.Mirrors), func(p Probe) bool { return !p.Reachable || r.Asked > 0 && p.Has == 0 })
	slices.SortStableFunc(useful, func(a, b Probe) int { return cmp.Compare(b.Speed, a.Speed) })
	for _, p := range useful {
		r.Order = append(r.Order, p.Mirror)
	}
}

// sample keeps some files of each kind, evenly by size, the largest among them.
func sample(files []wanted) []wanted {
	kinds := map[string][]wanted{}
	var names []string
	for _, w := range files { // the largest first
		kind := cmp.Or(w.archive, w.cuda, "pypi")
		if w.lone {
			kind, _, _ = strings.Cut(w.blob.Origin, ":")
		}
		if kinds[kind] == nil {
			names = append(names, kind)
		}
		kinds[kind] = append(kinds[kind], w)
	}
	var out []wanted
	for _, name := range names {
		of := kinds[name]
		n := min(sampled, len(of))
		for i := range n {
			out = append(out, of[i*len(of)/n])
		}
	}
	return out
}

// probe asks one mirror.
func (r *run) probe(ctx context.Context, p *Profile, files []wanted, told *counter) (Probe, error) {
	out := Probe{Mirror: p.Name, has: make([]bool, len(files))}
	reasons := make([]string, len(files))
	at := make([]*url.URL, len(files))
	answered := make([]bool, len(files))
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(r.perHost)
	for i, w := range files {
		group.Go(func() error {
			u, err := r.look(gctx, p, w)
			var fail *failure
			switch {
			case err == nil:
				at[i], out.has[i], answered[i] = u, true, true
			case errors.As(err, &fail):
				reasons[i] = fail.reason
				answered[i] = fail.status != 0 || fail.effect == next && fail.url != ""
			default:
				return err
			}
			told.done()
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return out, err
	}
	out.Reachable = slices.Contains(answered, true)
	if !out.Reachable {
		if err := r.knock(ctx, p); err == nil {
			out.Reachable = true
		} else if ctx.Err() != nil {
			return out, context.Cause(ctx)
		} else if len(files) == 0 {
			out.Lacks = []Lack{{Reason: err.Error()}}
		}
	}
	out.count(files, reasons)
	if i := slices.Index(out.has, true); i >= 0 { // the largest it has
		var err error
		if out.Speed, err = r.speed(ctx, p, at[i]); err != nil {
			return out, err
		}
	}
	return out, nil
}

// count gathers the reasons.
func (p *Probe) count(files []wanted, reasons []string) {
	by := map[string][]string{}
	for i, reason := range reasons {
		if p.has[i] {
			p.Has++
		} else {
			by[reason] = append(by[reason], files[i].blob.Name)
		}
	}
	for reason, names := range by {
		slices.Sort(names)
		p.Lacks = append(p.Lacks, Lack{reason, names})
	}
	slices.SortFunc(p.Lacks, func(a, b Lack) int {
		return cmp.Or(cmp.Compare(len(b.Files), len(a.Files)), cmp.Compare(a.Reason, b.Reason))
	})
}

// look finds out where a mirror has a file, in the first of its places that does:
// listed under its name and sha256, and there with its size.
func (r *run) look(ctx context.Context, p *Profile, w wanted) (*url.URL, error) {
	sources, why := r.sources(p, w)
	if why != "" {
		return nil, &failure{effect: next, reason: why}
	}
	var last error
	for _, s := range sources {
		u, err := s.locate(ctx)
		if err == nil {
			var size int64
			size, err = r.size(ctx, s.profile, u)
			if want := w.blob.Size; err == nil && want > 0 && size > 0 && size != want {
				err = &failure{effect: next, reason: fmt.Sprintf("has another file there, of %d bytes", size), url: redactURL(u)}
			}
		}
		if err == nil {
			return u, nil
		}
		last = err
	}
	return nil, last
}

// knock asks whether anything of a mirror answers at all.
func (r *run) knock(ctx context.Context, p *Profile) error {
	var roots []string
	for _, name := range archiveNames {
		if base := p.Archives[name]; base != "" {
			base, _, _ = strings.Cut(base, dateSlot)
			roots = append(roots, base+"/")
		}
	}
	roots = append(roots, p.Indexes...)
	for _, cuda := range sortedKeys(p.Wheels) {
		roots = append(roots, p.Wheels[cuda])
	}
	err := errors.New("it has no address")
	for _, raw := range roots {
		u, perr := url.Parse(raw)
		if perr != nil {
			continue
		}
		resp, aerr := r.ask(ctx, p, http.MethodHead, u, http.Header{})
		var fail *failure
		if aerr == nil {
			resp.Body.Close()
			return nil
		}
		if errors.As(aerr, &fail) && fail.status != 0 {
			return nil
		}
		err = aerr
	}
	return err
}

func sortedKeys(m map[string]string) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// speed times the download of the beginning of a file, in bytes a second; 0 when
// that fails.
func (r *run) speed(ctx context.Context, p *Profile, u *url.URL) (float64, error) {
	limited, cancel := context.WithTimeout(ctx, speedTime)
	defer cancel()
	began := time.Now()
	var n int64
	resp, err := r.get(limited, p, u, http.Header{"Accept-Encoding": {"identity"}, "Range": {fmt.Sprintf("bytes=0-%d", speedSize-1)}})
	if err == nil {
		n, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, speedSize)) // what came in the time counts
		resp.Body.Close()
	}
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	return float64(n) / max(time.Since(began).Seconds(), 1e-6), nil
}
