package resolve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ulikunitz/xz"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/plan"
)

// mirror is a Fetcher over files in memory, by archive/path.
type mirror struct {
	files map[string][]byte
	store string
}

func (m *mirror) Metadata(_ context.Context, archive, path string, check func([]byte) error) ([]byte, error) {
	data, ok := m.files[archive+"/"+path]
	if !ok {
		return nil, fmt.Errorf("no mirror has %s/%s", archive, path)
	}
	return data, check(data)
}

func (m *mirror) Fetch(_ context.Context, blobs []plan.Blob) error {
	for _, b := range blobs {
		data, ok := m.files[b.Origin]
		if strings.HasSuffix(b.Origin, "Packages.xz") || strings.Contains(b.Origin, "by-hash") {
			if !ok {
				return fmt.Errorf("no mirror has %s", b.Origin)
			}
			if err := os.WriteFile(filepath.Join(m.store, b.SHA256), data, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// engine is a Runner that answers as the scripts would.
type engine struct {
	jobs   []Job
	apt    map[string]string // what apt-get -s prints, by the packages asked for
	wheels []byte            // answers.json
}

func (e *engine) Run(_ context.Context, job Job) (map[string][]byte, error) {
	e.jobs = append(e.jobs, job)
	if job.Files["wheels.py"] != nil {
		return map[string][]byte{"answers.json": e.wheels}, nil
	}
	out := map[string][]byte{}
	for i := 0; job.Files[fmt.Sprintf("ask/%d/packages", i)] != nil; i++ {
		asked := strings.Join(strings.Fields(string(job.Files[fmt.Sprintf("ask/%d/packages", i)])), " ")
		printed, ok := e.apt[asked]
		if !ok {
			out[fmt.Sprintf("%d.err", i)] = []byte("W: odd\nE: Unable to locate package " + asked + "\n")
			continue
		}
		out[fmt.Sprintf("%d.out", i)], out[fmt.Sprintf("%d.end", i)] = []byte(printed), []byte("ok\n")
	}
	return out, nil
}

// world is a small Debian for two architectures, signed by a key of its own.
func world(t *testing.T) (*mirror, func(string) (openpgp.EntityList, error)) {
	t.Helper()
	key := newKey(t, "archive", 0)
	m := &mirror{files: map[string][]byte{}, store: t.TempDir()}
	for i, s := range []struct{ archive, suite, packages string }{
		{"debian", "bookworm", stanzaOf("apt", "2.6", "Depends: libc6") + "\n" + stanzaOf("libc6", "2.36-9", "Essential: yes") + "\n" +
			stanzaOf("python3", "3.11.2-1+b1") + "\n" + stanzaOf("debian-archive-keyring", "2023") + "\n" + stanzaOf("ca-certificates", "1") + "\n" + stanzaOf("zsh", "5.9-4")},
		{"debian", "bookworm-updates", ""},
		{"debian-security", "bookworm-security", stanzaOf("libc6", "2.36-9+deb12u1", "Essential: yes")},
	} {
		dir := "dists/" + s.suite + "/"
		text := fmt.Sprintf("Codename: %s\nDate: Sat, 28 Nov 2026 14:09:%02d UTC\nSHA256:\n", s.suite, 2*i+1)
		for _, arch := range []string{"amd64", "arm64"} {
			data := xzOf(t, strings.ReplaceAll(s.packages, "amd64", arch))
			sum, index := sha256.Sum256(data), "main/binary-"+arch+"/"
			// The security archive has no by-hash directory here.
			if s.archive == "debian" {
				m.files[s.archive+"/"+dir+index+"by-hash/SHA256/"+hex.EncodeToString(sum[:])] = data
			} else {
				m.files[s.archive+"/"+dir+index+"Packages.xz"] = data
			}
			text += fmt.Sprintf(" %x %d %sPackages.xz\n", sum, len(data), index)
		}
		m.files[s.archive+"/"+dir+"InRelease"] = sign(t, text, key)
	}
	return m, func(string) (openpgp.EntityList, error) { return openpgp.EntityList{key}, nil }
}

func xzOf(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := xz.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func needOf(kind string, edit func(*lock.Request)) lock.Need {
	r := lock.Request{Kind: kind, Base: "debian12", Suite: "bookworm", Components: []string{"main"}, Arch: "amd64", Python: "3.11"}
	if kind == "base" || kind == "debs" {
		r.Python = ""
	}
	if edit != nil {
		edit(&r)
	}
	return lock.Need{Set: r.Set(), Request: r, Cells: []string{"cell-a"}, Pos: diag.Pos{File: "m.yaml", Line: 7, Col: 3}}
}

// hexWord is the digest part of a set name, which tests leave out.
var hexWord = regexp.MustCompile(`-[0-9a-f]{8} `)

const aptBase = `NOTE: This is only a simulation!
Inst libc6 (2.36-9+deb12u1 localhost [amd64])
Conf libc6 (2.36-9+deb12u1 localhost [amd64])
Inst apt (2.6 localhost [amd64]) []
Inst python3 (3.11.2-1+b1 localhost [amd64])
`

func resolver(t *testing.T, e *engine) *Resolver {
	m, keys := world(t)
	return &Resolver{
		Fetcher: m, Runner: e, Platform: "linux/amd64", Path: func(sum string) string { return filepath.Join(m.store, sum) },
		Indexes: []Index{{"first", "https://user:secret@first.example/simple"}, {"second", "https://second.example/simple"}},
		CA:      []byte("PEM"), Proxy: map[string]string{"https_proxy": "http://proxy.example:1"},
		Now: func() time.Time { return today }, keys: keys,
	}
}

// summary renders answers and failures for comparison.
func summary(r *Result) string {
	var b strings.Builder
	for _, a := range r.Answers {
		fmt.Fprintf(&b, "%s: %s\n", a.Set[:strings.IndexByte(a.Set, '/')], strings.Join(a.Picks, " "))
	}
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "%s failed: %s\n", f.Need.Request.Kind, f.Err)
	}
	return b.String()
}

func TestResolve(t *testing.T) {
	numpy := `lock-version = "1.0"
[[packages]]
name = "numpy"
version = "1.26.4"
wheels = [{ url = "https://files.example/numpy-1.26.4-cp311-cp311-linux_x86_64.whl", hashes = { sha256 = "` + someHash + `" } }]
`
	answers, err := json.Marshal(wheelAnswers{Tags: cp311, Answers: []wheelAnswer{
		{Index: "second", Pylock: numpy, Tried: []struct{ Index, Reason string }{{"first", "no route"}}},
		{Tried: []struct{ Index, Reason string }{{"first", "no route"}, {"second", "No solution"}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{wheels: answers, apt: map[string]string{
		"apt libc6 debian-archive-keyring python3": aptBase,
		"zsh":   "Inst zsh (5.9-4 localhost [amd64])\n",
		"libc6": "Inst libc6 [2.36-9] (2.36-9+deb12u1 localhost [amd64])\n",
		"ghost": "Inst ghost (1 localhost [amd64])\n",
	}}
	with := func(packages ...string) lock.Need {
		return needOf("debs", func(r *lock.Request) { r.Packages = packages })
	}
	wheels := func(requirements ...string) lock.Need {
		return needOf("wheels", func(r *lock.Request) { r.Requirements = requirements })
	}
	var said []string
	r := resolver(t, e)
	r.Progress = func(s string) { said = append(said, s) }
	r.Size = func(_ context.Context, url string) (int64, error) {
		if url != "https://files.example/numpy-1.26.4-cp311-cp311-linux_x86_64.whl" {
			t.Errorf("the size of %s is asked", url)
		}
		return 4321, nil
	}
	got, err := r.Resolve(context.Background(), []lock.Need{
		with("zsh"), with("zsch"), with("libc6"), with("ghost"),
		wheels("numpy"), wheels("nothing"), wheels("torch==2.1.2+cu999"),
		needOf("wheels", func(r *lock.Request) { r.Python = "3.12" }),
		needOf("tools", nil),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `base: apt_2.6_amd64 libc6_2.36-9+deb12u1_amd64 python3_3.11.2-1+b1_amd64
debs: zsh_5.9-4_amd64
wheels: numpy-1.26.4-cp311-cp311-linux_x86_64.whl
tools: installer-1.1.0-py3-none-any.whl isal-1.9.1-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.manylinux_2_28_x86_64.whl
debs failed: m.yaml:7:3: cannot lock debs/debian12-aaaaaaaa (cell-a): Unable to locate package zsch; is the package in bookworm main?
debs failed: m.yaml:7:3: cannot lock debs/debian12-aaaaaaaa (cell-a): libc6 2.36-9+deb12u1 would replace the base's 2.36-9; is the package in bookworm main?
debs failed: m.yaml:7:3: cannot lock debs/debian12-aaaaaaaa (cell-a): apt chose ghost 1 amd64, which no verified index holds; is the package in bookworm main?
wheels failed: m.yaml:7:3: cannot lock wheels/torch-cuda-py3.11-aaaaaaaa (cell-a): first: no route; second: No solution
wheels failed: m.yaml:7:3: cannot lock wheels/torch-cuda-py3.11-aaaaaaaa (cell-a): torch==2.1.2+cu999 is on the PyTorch index alone, which imgforge does not ask, and its tables hold no sha256 and requirements of it for Python 3.11; leave the cell out, or use a torch whose wheel is known
wheels failed: m.yaml:7:3: cannot lock wheels/torch-cuda-py3.12-aaaaaaaa (cell-a): bookworm has Python 3.11, not 3.12; use python 3.11
`
	if text := hexWord.ReplaceAllString(summary(got), "-aaaaaaaa "); text != want {
		t.Errorf("got:\n%s\nwant:\n%s", text, want)
	}
	if !slices.Contains(said, "index first: no route") {
		t.Errorf("a failing index is not told: %q", said)
	}
	if e := got.Answers[2].Entries[0]; e.Size != 4321 {
		t.Errorf("the index's size is not used: %+v", e)
	}
	if len(got.Archives) != 3 || got.Archives[2].Key != "bookworm-security" || got.Archives[0].Value != "2026-11-28T14:09:01Z" {
		t.Errorf("archives %+v", got.Archives)
	}
	if want := time.Date(2026, 11, 28, 14, 9, 5, 0, time.UTC).Unix(); got.Epoch != want {
		t.Errorf("epoch %d, want %d", got.Epoch, want)
	}
	checkJobs(t, e.jobs)
}

// checkJobs holds the jobs to what may have a network and a secret.
func checkJobs(t *testing.T, jobs []Job) {
	if len(jobs) != 3 {
		t.Fatalf("%d jobs, want apt for the base, apt for the rest, and uv", len(jobs))
	}
	for i, job := range jobs {
		uv := i == 2
		if job.Network != uv || (len(job.Secrets) > 0) != uv || (job.Proxy != nil) != uv {
			t.Errorf("%s: network %v, %d secrets, proxy %v", job.Name, job.Network, len(job.Secrets), job.Proxy)
		}
		var root []string
		for _, b := range job.Root.Base {
			root = append(root, b.Name)
		}
		if want := "apt_2.6_amd64.deb ca-certificates_1_amd64.deb libc6_2.36-9+deb12u1_amd64.deb python3_3.11.2-1+b1_amd64.deb"; strings.Join(root, " ") != want {
			t.Errorf("%s: root %v", job.Name, root)
		}
		visible := fmt.Sprint(job.Args, job.Env, job.Blobs)
		for name, data := range job.Files {
			visible += name + string(data)
		}
		for _, secret := range []string{"example", "PEM"} {
			if strings.Contains(visible, secret) {
				t.Errorf("%s shows %q outside its secrets", job.Name, secret)
			}
		}
	}
	if status := string(jobs[1].Files["ask/0/status"]); strings.Count(status, "Status: install ok installed") != 3 || !strings.Contains(status, "Package: libc6\nVersion: 2.36-9+deb12u1\n") {
		t.Errorf("the base is not installed when apt is asked:\n%s", status)
	}
}

// A Release file that nobody known signed stops its Debian, and nothing else.
func TestResolveUnverified(t *testing.T) {
	r := resolver(t, &engine{})
	r.keys = nil // the embedded keys did not sign this world
	got, err := r.Resolve(context.Background(), []lock.Need{needOf("base", nil), needOf("tools", nil), needOf("base", func(r *lock.Request) { r.Suite = "potato" })})
	if err != nil {
		t.Fatal(err)
	}
	text := summary(got)
	for _, want := range []string{"tools: installer", "release file of bookworm: signed by ", "none of which is a known archive key (B8B80B5B", `no archive keys are known for suite "potato"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if got.Epoch != 0 || len(got.Archives) != 0 {
		t.Errorf("an unverified archive got into the result: %+v", got)
	}
}

func TestResolveStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := resolver(t, &engine{}).Resolve(ctx, []lock.Need{needOf("base", nil)}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestAptReason(t *testing.T) {
	stdout := "Reading...\nThe following packages have unmet dependencies:\n a : Depends: b (> 2) but 1 is to be installed\n     Recommends: c\nE: x\n"
	want := "Unable to correct problems, you have held broken packages.; a : Depends: b (> 2) but 1 is to be installed; Recommends: c"
	if got := aptReason("E: Unable to correct problems, you have held broken packages.\n", stdout); got != want {
		t.Errorf("got %q", got)
	}
	if got := aptReason("", ""); got != "apt failed and did not say why" {
		t.Errorf("got %q", got)
	}
}
