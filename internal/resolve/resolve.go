// Package resolve answers needs: which .debs and which wheels, with their
// hashes. It solves nothing itself. Debian's Release files are verified against
// embedded keys; then apt, offline, and uv run in a container of that Debian.
package resolve

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/inspect"
	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/plan"
)

// Fetcher brings bytes from mirrors.
type Fetcher interface {
	// Metadata returns a file of an archive from the first mirror whose answer
	// passes check.
	Metadata(ctx context.Context, archive, path string, check func([]byte) error) ([]byte, error)
	// Fetch puts blobs into the store.
	Fetch(ctx context.Context, blobs []plan.Blob) error
}

// Runner runs a command in a container on the engine and returns the files it
// left in /out, by relative path. A command that fails is an error that holds
// the end of its output.
type Runner interface {
	Run(ctx context.Context, job Job) (map[string][]byte, error)
}

// Job is one command in a Debian container. Its blobs are in the store. It is of
// plain types, so that a Runner elsewhere can declare its own and convert.
type Job struct {
	Name    string               // for progress
	Root    *plan.Plan           // its base and .debs make the root; its Epoch and Platform count too
	Files   map[string][]byte    // small files, by path under /in (read-only)
	Blobs   map[string]plan.Blob // stored files, by path under /in
	Args    []string
	Env     []string          // NAME=value
	Network bool              // give it a network, and never answer from a cache
	Secrets map[string][]byte // by name: files in /run/secrets, in no cache and no layer
	Proxy   map[string]string // http_proxy and its kin; given to the step, in no cache key
}

// Images finds what references to registry images stand for.
type Images interface {
	Find(ctx context.Context, ref, platform string) (*Image, error)
}

// Image is an image of a registry.
type Image struct {
	Parts []Part // manifest, configuration, then layers, base first
	Env   []string
}

// Part is one blob of an image.
type Part struct {
	Name      string // manifest, config or layer
	MediaType string
	SHA256    string // hex
	Size      int64
}

// Index is a Python package index.
type Index struct {
	Name string // of the mirror, for messages
	URL  string // of its simple API
}

// Resolver holds what answering takes.
type Resolver struct {
	Fetcher  Fetcher
	Runner   Runner
	Platform string                                               // the engine's own, on which Runner runs best; empty: this machine's
	Runs     func(ctx context.Context, platform string) error     // says why Runner cannot run another platform; nil: it runs its own alone
	Images   Images                                               // finds base images
	Bases    map[string]*plan.Plan                                // what is locked of image and rootfs bases, by their set
	Path     func(sha256 string) string                           // where the store keeps a blob
	Indexes  []Index                                              // best first
	NoIndex  string                                               // why there is no index, when there is none
	Size     func(ctx context.Context, url string) (int64, error) // asks an index for a size it does not list, in bytes
	CA       []byte                                               // PEM bundle this machine trusts; may be empty
	Proxy    map[string]string                                    // as in Job
	Now      func() time.Time
	Progress func(string) // told what begins; may be nil

	keys  func(suite string) (openpgp.EntityList, error) // for tests; nil: the embedded ones
	roots map[string]*inspect.Root                       // bases that were looked into, by set
}

// Answer is one set: the blobs that answer it and the picks that name them.
type Answer struct {
	Set     string
	Entries []lock.Entry // files and facts, sorted by key
	Picks   []string     // keys of Entries, sorted
}

// Failure is a need without an answer.
type Failure struct {
	Need lock.Need
	Err  error // a *diag.Problem at the need's position
}

// Result is all answers and failures of one run, in the needs' order.
type Result struct {
	Answers  []Answer
	Failures []Failure
	Requires []lock.Entry // what the blobs of the answers need among themselves
	Archives []lock.Entry // one archive line for each Release file used
	Epoch    int64        // newest Release date, in seconds; 0 when none was read
}

// Resolve answers every need it can; what cannot be answered does not stop the
// rest. The error is that of a cancelled context alone. A debs need is solved
// on its base as it is now, so Answers then holds the base's set too, asked for
// or not: lock both or neither.
func (r *Resolver) Resolve(ctx context.Context, needs []lock.Need) (*Result, error) {
	out := &Result{}
	for _, group := range byRoot(needs) {
		s := &session{Resolver: r, out: out}
		s.run(ctx, group)
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("locking was stopped: %w", err)
		}
	}
	order := map[string]int{}
	for i, n := range needs {
		order[n.Set] = i
	}
	slices.SortStableFunc(out.Answers, func(a, b Answer) int {
		return cmp.Or(cmp.Compare(order[a.Set], order[b.Set]), cmp.Compare(a.Set, b.Set))
	})
	slices.SortStableFunc(out.Failures, func(a, b Failure) int { return cmp.Compare(order[a.Need.Set], order[b.Need.Set]) })
	return out, nil
}

// byRoot groups needs that are answered in the same Debian, in stable order.
func byRoot(needs []lock.Need) [][]lock.Need {
	var out [][]lock.Need
	at := map[string]int{}
	for _, n := range needs {
		id := strings.Join(append([]string{n.Request.On, n.Request.Suite, n.Request.Arch}, n.Request.Components...), " ")
		i, ok := at[id]
		if !ok {
			i = len(out)
			at[id] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], n)
	}
	return out
}

// session answers the needs of one Debian.
type session struct {
	*Resolver
	out     *Result
	archive *archive
}

func (s *session) run(ctx context.Context, needs []lock.Need) {
	var online []lock.Need
	for _, n := range needs {
		switch {
		case n.Request.Kind == "tools":
			s.tools(n)
			continue
		case n.Request.Image != "" || n.Request.Rootfs != "":
			s.base(ctx, n)
			continue
		}
		online = append(online, n)
	}
	if len(online) == 0 {
		return
	}
	a, err := s.open(ctx, online[0].Request)
	if err != nil {
		s.failAll(online, err)
		return
	}
	s.archive = a
	s.out.Archives = append(s.out.Archives, a.entries()...)
	s.out.Epoch = max(s.out.Epoch, a.epoch())
	s.debs(ctx, online)
	s.wheels(ctx, slices.DeleteFunc(slices.Clone(online), func(n lock.Need) bool { return n.Request.Kind != "wheels" }))
}

// answer notes what a need is answered with.
func (s *session) answer(n lock.Need, entries []lock.Entry) {
	slices.SortStableFunc(entries, func(a, b lock.Entry) int { return cmp.Compare(a.Key, b.Key) })
	a := Answer{Set: n.Set, Entries: entries}
	for _, e := range entries {
		if e.Kind != lock.Fact {
			a.Picks = append(a.Picks, e.Key)
		}
	}
	s.out.Answers = append(s.out.Answers, a)
}

func (s *session) fail(n lock.Need, help string, err error) {
	s.out.Failures = append(s.out.Failures, Failure{Need: n, Err: &diag.Problem{
		Pos: n.Pos, What: fmt.Sprintf("cannot lock %s (%s): %s", n.Set, cellList(n.Cells), err), Help: help,
	}})
}

func (s *session) failAll(needs []lock.Need, err error) {
	for _, n := range needs {
		s.fail(n, "", err)
	}
}

// cellList names a few cells and counts the rest.
func cellList(tags []string) string {
	switch {
	case len(tags) == 0:
		return "no cell"
	case len(tags) <= 3:
		return strings.Join(tags, ", ")
	}
	return strings.Join(tags[:2], ", ") + " and " + strconv.Itoa(len(tags)-2) + " more"
}

func (r *Resolver) say(format string, args ...any) {
	if r.Progress != nil {
		r.Progress(fmt.Sprintf(format, args...))
	}
}
