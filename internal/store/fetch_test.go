package store

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/store/storetest"
)

// docker/docker-install#379, tuna/issues#1819: a mirror whose index and files are of two days.
func TestThirdMirrorSaves(t *testing.T) {
	data := content(5000)
	liar, good := storetest.New(t), storetest.New(t)
	liar.Add(debPath, content(5001)[1:])
	good.Add(debPath, data)
	f := newFetcher(t, mirrorProfile("one", storetest.Closed(t)), mirrorProfile("two", liar.URL), mirrorProfile("three", good.URL))
	var told []Progress
	f.Progress = func(p Progress) { told = append(told, p) }
	result := mustFetch(t, f, debBlob(data))
	mustHave(t, f, data)
	wantNote(t, result.Notes, "one: connection refused", "zsh_5.9")
	wantNote(t, result.Notes, "two: served other bytes", "zsh_5.9")
	if len(result.Notes) != 2 || result.Files != 1 || result.Downloaded != 2*5000 {
		t.Errorf("got %+v", result)
	}
	last := told[len(told)-1]
	if last != (Progress{Files: 1, FilesDone: 1, Bytes: 5000, Done: 5000}) {
		t.Errorf("the last progress is %+v", last)
	}
	if !slices.ContainsFunc(told, func(p Progress) bool { return strings.HasPrefix(p.Note, "mirror one: connection refused") }) {
		t.Error("progress never said that a mirror is down")
	}
}

func TestNothingTwice(t *testing.T) {
	data := content(100)
	m := storetest.New(t)
	m.Add(debPath, data)
	f := newFetcher(t, mirrorProfile("one", m.URL))
	mustFetch(t, f, debBlob(data), debBlob(data))
	result := mustFetch(t, f, debBlob(data))
	if result.Files != 0 || result.Downloaded != 0 || len(m.Asked()) != 1 {
		t.Errorf("got %+v after %q", result, m.Asked())
	}
}

// KatherLab/MediSwarm#395: what is gone everywhere names the command that refreshes the lock.
func TestAllDead(t *testing.T) {
	empty := storetest.New(t)
	data := content(10)
	f := newFetcher(t, mirrorProfile("one", storetest.Closed(t)), mirrorProfile("two", empty.URL),
		Profile{Name: "three", Missing: []string{"it is small"}})
	good := content(77)
	empty.Add("/debian/pool/good.deb", good)
	lib := plan.Blob{Name: "lib.deb", Origin: "debian-security/pool/updates/lib.deb", SHA256: storetest.Sum([]byte("x"))}
	ok := plan.Blob{Name: "good.deb", Origin: "debian/pool/good.deb", SHA256: storetest.Sum(good)}
	_, err := f.Fetch(context.Background(), []plan.Blob{debBlob(data), lib, ok})
	var failed *FetchError
	if !errors.As(err, &failed) || len(failed.Files) != 2 {
		t.Fatalf("got %v", err)
	}
	mustHave(t, f, good)
	for _, want := range []string{
		"no mirror gave 2 files:", "zsh_5.9-4+b1_amd64.deb (debian/pool/main/z/zsh/", "lib.deb (debian-security/pool/updates/lib.deb)",
		"    one: connection refused: http://", "    two: 404 Not Found: " + empty.URL + "/debian", "    three: has no debian archive (it is small)",
		"`imgforge lock --upgrade`",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
}

// Each fault is met once; the one mirror there is then serves the file.
func TestFaultsThatPass(t *testing.T) {
	data := content(100_000)
	for name, fault := range map[string]storetest.Fault{
		"truncated":   storetest.Truncate(40_000),
		"429":         storetest.Status(http.StatusTooManyRequests, "0"),
		"500":         storetest.Status(http.StatusInternalServerError, "0"),
		"503, a date": storetest.Status(http.StatusServiceUnavailable, "Mon, 02 Jan 2006 15:04:05 GMT"),
		"nothing":     storetest.Truncate(0),
	} {
		t.Run(name, func(t *testing.T) {
			m := storetest.New(t)
			m.Add(debPath, data)
			m.Fault(debPath, fault)
			f := newFetcher(t, mirrorProfile("one", m.URL))
			result := mustFetch(t, f, debBlob(data))
			mustHave(t, f, data)
			if result.Downloaded != int64(len(data)) {
				t.Errorf("%d bytes were downloaded, not %d", result.Downloaded, len(data))
			}
			asked := m.Asked()
			if resumed := asked[1] == debPath+" bytes=40000-"; len(asked) != 2 || resumed != (name == "truncated") {
				t.Errorf("asked %q", asked)
			}
		})
	}
}

func TestFaultsThatStay(t *testing.T) {
	data := content(1000)
	elsewhere := storetest.New(t)
	elsewhere.Add(debPath, data)
	for name, c := range map[string]struct {
		fault  storetest.Fault
		reason string
		tries  int
	}{
		"500":         {storetest.Status(http.StatusInternalServerError, "0"), "500 Internal Server Error", 3},
		"403":         {storetest.Status(http.StatusForbidden, ""), "403 Forbidden", 1},
		"redirect":    {storetest.Redirect(elsewhere.URL + debPath), "redirects to another host, " + storetest.Host(elsewhere.URL), 1},
		"loop":        {storetest.Redirect(debPath), "redirects without end", 10},
		"too long":    {storetest.Bytes(content(1001)), "served other bytes: 1001 bytes, not 1000", 1},
		"same length": {storetest.Bytes(content(1001)[1:]), "served other bytes", 1},
		"stalls":      {storetest.Stall(500), "stalled: no byte for", 1},
	} {
		t.Run(name, func(t *testing.T) {
			m := storetest.New(t)
			m.Add(debPath, data)
			m.Fault(debPath, slices.Repeat([]storetest.Fault{c.fault}, 10)...)
			f := newFetcher(t, mirrorProfile("one", m.URL))
			f.Stall = soon
			wantReason(t, mustFail(t, f, debBlob(data)), "one", c.reason)
			if asked := m.Asked(); len(asked) != c.tries {
				t.Errorf("asked %q", asked)
			}
		})
	}
	if asked := elsewhere.Asked(); len(asked) != 0 {
		t.Errorf("another host was asked %q", asked)
	}
}

func TestRedirectToOwnHost(t *testing.T) {
	data := content(1000)
	front, files := storetest.New(t), storetest.New(t)
	front.Fault(debPath, storetest.Redirect(files.URL+"/bucket/x"))
	files.Add("/bucket/x", data)
	p := mirrorProfile("one", front.URL)
	p.Hosts = []string{storetest.Host(files.URL)}
	f := newFetcher(t, p)
	mustFetch(t, f, debBlob(data))
	mustHave(t, f, data)
}

func TestOneRequestPerHost(t *testing.T) {
	m := storetest.New(t)
	var mu sync.Mutex
	now, most := 0, 0
	var blobs []plan.Blob
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		data := []byte(name)
		at := "/debian/pool/" + name
		m.Add(at, data)
		m.Fault(at, func(w http.ResponseWriter, _ *http.Request, file []byte) {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(5 * time.Millisecond)
			mu.Lock()
			now--
			mu.Unlock()
			w.Write(file)
		})
		blobs = append(blobs, plan.Blob{Name: name, Origin: at[1:], SHA256: storetest.Sum(data)})
	}
	f := newFetcher(t, mirrorProfile("one", m.URL))
	f.PerHost = 2
	mustFetch(t, f, blobs...)
	if most > 2 {
		t.Errorf("%d requests at once", most)
	}
}

func TestBadOrigins(t *testing.T) {
	f := newFetcher(t)
	good := debBlob(content(1))
	for _, change := range []func(*plan.Blob){
		func(b *plan.Blob) { b.SHA256 = "../../etc/passwd" },
		func(b *plan.Blob) { b.SHA256 = strings.ToUpper(b.SHA256) },
		func(b *plan.Blob) { b.Origin = "debian/../../x" },
		func(b *plan.Blob) { b.Origin = "debian/" },
		func(b *plan.Blob) { b.Origin = "fedora/pool/x" },
		func(b *plan.Blob) { b.Origin = "pypi:numpy" },
		func(b *plan.Blob) { b.Origin = "" },
		func(b *plan.Blob) { b.Name = "a/b" },
	} {
		bad := good
		change(&bad)
		if _, err := f.Fetch(context.Background(), []plan.Blob{bad}); err == nil || errors.As(err, new(*FetchError)) {
			t.Errorf("%+v: got %v", bad, err)
		}
	}
}

func TestMetadata(t *testing.T) {
	stale, good := storetest.New(t), storetest.New(t)
	const at = "dists/bookworm/InRelease"
	stale.Add("/debian/"+at, []byte("old"))
	good.Add("/debian/"+at, []byte("new"))
	f := newFetcher(t, mirrorProfile("stale", stale.URL), mirrorProfile("good", good.URL))
	check := func(data []byte) error {
		if string(data) != "new" {
			return errors.New("its Release file is a year old")
		}
		return nil
	}
	for range 2 {
		data, err := f.Metadata(context.Background(), "debian", at, check)
		if err != nil || string(data) != "new" {
			t.Fatalf("got %q, %v", data, err)
		}
	}
	if len(stale.Asked()) != 1 {
		t.Errorf("the stale mirror was asked %q", stale.Asked())
	}
	_, err := f.Metadata(context.Background(), "debian", "dists/none", check)
	for _, want := range []string{"stale: its Release file is a year old", "good: 404 Not Found: " + good.URL + "/debian/dists/none"} {
		if !errors.As(err, new(*FetchError)) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, which lacks %q", err, want)
		}
	}
	if _, err := f.Metadata(context.Background(), "debian", "../x", nil); err == nil {
		t.Error("a path out of the archive was taken")
	}
}

func TestCredentialsStaySecret(t *testing.T) {
	data := content(1000)
	m := storetest.New(t)
	withUser := strings.Replace(m.URL, "://", "://robot:hunter2@", 1)
	gone := strings.Replace(storetest.Closed(t), "://", "://robot:hunter2@", 1)
	f := newFetcher(t, mirrorProfile("one", withUser), mirrorProfile("two", gone))
	var said []string
	f.Progress = func(p Progress) { said = append(said, p.Note) }
	for _, blob := range []plan.Blob{debBlob(data), wheelBlob("pypi:numpy==1.26.4", "numpy-1.26.4-cp311.whl", data)} {
		_, err := f.Fetch(context.Background(), []plan.Blob{blob})
		if err == nil {
			t.Fatal("no error")
		}
		if text := err.Error() + strings.Join(said, ""); strings.Contains(text, "hunter2") || strings.Contains(text, "robot") {
			t.Errorf("credentials in %s", text)
		}
	}
}

// replicate/cog#1163, pytorch/builder#1446: a base that its registry has removed is
// had from a place that kept it; else the error says which digest of what is locked.
func TestRemovedImage(t *testing.T) {
	data := content(500)
	blob := plan.Blob{Name: "nvidia_amd64_000-manifest", Origin: "image:docker.io/nvidia/cuda", SHA256: storetest.Sum(data), Size: int64(len(data))}
	place := func(name, url string) Profile {
		return Profile{Name: name, File: func(b plan.Blob) string { return url + "/v2/nvidia/cuda/manifests/sha256:" + b.SHA256 }}
	}
	upstream, kept := storetest.New(t), storetest.New(t)
	f := newFetcher(t, place("registry hub.example", upstream.URL))
	_, err := f.Fetch(context.Background(), []plan.Blob{blob})
	for _, want := range []string{"nvidia_amd64_000-manifest", "docker.io/nvidia/cuda", "registry hub.example: 404 Not Found", "sha256:" + blob.SHA256, "by digest", "`imgforge lock`"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	kept.Add("/v2/nvidia/cuda/manifests/sha256:"+blob.SHA256, data)
	f = newFetcher(t, place("registry hub.example", upstream.URL), place("our own", kept.URL))
	mustFetch(t, f, blob)
	mustHave(t, f, data)
}
