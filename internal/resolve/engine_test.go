package resolve_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/imgforge/imgforge/internal/builder"
	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/graph"
	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/resolve"
	"github.com/imgforge/imgforge/internal/store"
)

// runner runs jobs on a real engine.
type runner struct{ *builder.Builder }

func (r runner) Run(ctx context.Context, job resolve.Job) (map[string][]byte, error) {
	return r.Command(ctx, graph.Command{
		Name: job.Name, Root: job.Root,
		Files: job.Files, Blobs: job.Blobs, Args: job.Args, Env: job.Env, Network: job.Network,
	}, job.Secrets, nil)
}

type fetcher struct{ *store.Fetcher }

func (f fetcher) Fetch(ctx context.Context, blobs []plan.Blob) error {
	_, err := f.Fetcher.Fetch(ctx, blobs)
	return err
}

// workshop is a real engine and this machine's own mirrors.
func workshop(t *testing.T) *resolve.Resolver {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("the embedded engine needs root")
	}
	buildkitd, err := filepath.Abs("../../bin/buildkitd")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(buildkitd); err != nil {
		t.Skip("no bin/buildkitd: run `make build`")
	}
	dir := t.TempDir()
	s, err := store.Open(filepath.Join(dir, "store"))
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for _, kv := range os.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	profiles, err := store.LoadProfiles([]diag.Str{{Value: "host"}}, nil, store.Environment{Env: env, Root: "/",
		Run: func(ctx context.Context, name string, args ...string) ([]byte, error) {
			return exec.CommandContext(ctx, name, args...).Output()
		}})
	if err != nil {
		t.Fatal(err)
	}
	f := fetcher{&store.Fetcher{Store: s, Profiles: profiles}}
	indexes := []resolve.Index{{Name: "dead", URL: "http://127.0.0.1:9/simple"}}
	for _, x := range f.Indexes() {
		indexes = append(indexes, resolve.Index{Name: x.Mirror, URL: x.URL})
	}
	engine, err := builder.Start(t.Context(), filepath.Join(dir, "engine"), builder.Paths{Buildkitd: buildkitd})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	url, stop, err := s.Serve(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stop() })
	b, err := builder.Connect(t.Context(), builder.Options{Addr: engine.Addr, Store: s, BlobURL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	ca, _ := os.ReadFile("/etc/ssl/certs/ca-certificates.crt")
	return &resolve.Resolver{Fetcher: f, Runner: runner{b}, Path: s.Path, Indexes: indexes, Size: f.Size, CA: ca,
		Now: time.Now, Progress: func(text string) { t.Log(text) }}
}

// The real apt and the real uv answer in a container made of real .debs.
func TestRealSolvers(t *testing.T) {
	r := workshop(t)
	need := func(kind string, edit func(*lock.Request)) lock.Need {
		q := lock.Request{Kind: kind, Base: "debian12", Suite: "bookworm", Components: []string{"main"}, Arch: "amd64"}
		edit(&q)
		return lock.Need{Set: q.Set(), Request: q, Cells: []string{"cell"}, Pos: diag.Pos{File: "m.yaml", Line: 1, Col: 1}}
	}
	needs := []lock.Need{
		need("debs", func(q *lock.Request) { q.Packages = []string{"zsh"} }),
		need("debs", func(q *lock.Request) { q.Packages = []string{"no-such-package-zsch"} }),
		need("wheels", func(q *lock.Request) {
			q.Python, q.Requirements = "3.11", []string{"torch==2.1.2+cu118"}
			q.Torch, q.CUDA = "2.1.2", "11.8"
		}),
		need("wheels", func(q *lock.Request) {
			q.Python, q.Requirements, q.Constraints = "3.11", []string{"numpy>=2"}, []string{"numpy<2"}
		}),
	}
	got, err := r.Resolve(t.Context(), needs)
	if err != nil {
		t.Fatal(err)
	}
	picks := map[string]string{}
	for _, a := range got.Answers {
		kind, _, _ := strings.Cut(a.Set, "/")
		picks[kind] = "\n" + strings.Join(a.Picks, "\n")
	}
	for kind, names := range map[string][]string{
		"base":   {"\napt_", "\nlibc6_", "\npython3_3.11", "\ndebian-archive-keyring_", "\ndpkg_"},
		"debs":   {"\nzsh_5", "\nzsh-common_5"},
		"wheels": {"\ntorch-2.1.2+cu118-cp311-cp311-linux_x86_64.whl", "\nsympy-", "\ntriton-2.1.0-"},
	} {
		for _, name := range names {
			if !strings.Contains(picks[kind], name) {
				t.Errorf("%s holds no %s:%s", kind, strings.TrimSpace(name), picks[kind])
			}
		}
	}
	if strings.Contains(picks["debs"], "\nlibc6_") {
		t.Errorf("debs hold what the base has:%s", picks["debs"])
	}
	var failed []string
	for _, f := range got.Failures {
		failed = append(failed, f.Err.Error())
	}
	text := strings.Join(failed, "\n")
	if len(failed) != 2 || !strings.Contains(text, "Unable to locate package no-such-package-zsch") || !strings.Contains(text, "No solution found") {
		t.Errorf("failures:\n%s", text)
	}
}
