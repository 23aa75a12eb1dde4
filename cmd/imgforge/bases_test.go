package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/klauspost/compress/zstd"

	"github.com/imgforge/imgforge/internal/imagetest"
	"github.com/imgforge/imgforge/internal/report"
)

const basesMatrix = `version: 1
name: bases
bases:
  tarball: {rootfs: {url: root.tar.gz, sha256: SHA256}}
  plain: {image: "HOST/debian:12"}
  nvidia: {image: "HOST/cuda:12.1"}
  conda: {image: "HOST/torch:2.4.1"}
defaults: {cuda: "12.1", torch: "2.4.1", python: "3.11", driver: ">=525.60.13"}
axes:
  base: [tarball, plain, nvidia, conda]
  tqdm: ["4.67.1"]
recipes:
  - zsh
  - bar
  - note
  - {name: torch, when: {base: conda}}
tag: "${base}"
mirrors: [host]
`

// foreign is a world whose bases were made foreign: of the real Debian that the
// small world has, in the forms that others give them.
type foreign struct {
	world
	server *httptest.Server
	host   string
	images map[string]v1.Image
}

var (
	foreignOnce  sync.Once
	foreignBases foreign
)

func basesMadeElsewhere(t *testing.T) foreign {
	t.Helper()
	built(t)
	foreignOnce.Do(func() { foreignBases = makeElsewhere(t) })
	if foreignBases.host == "" {
		t.Fatal("the bases could not be made")
	}
	return foreignBases
}

func makeElsewhere(t *testing.T) foreign {
	root := debianTar(t)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)))) // it ends with the process
	e := foreign{world: small(), server: server, host: strings.TrimPrefix(server.URL, "http://"), images: map[string]v1.Image{}}
	dir := filepath.Join(scratch, "elsewhere")
	e.matrix, e.lock, e.dist = filepath.Join(dir, "matrix.yaml"), filepath.Join(dir, "matrix.lock"), filepath.Join(dir, "dist")
	debian := layerOf(t, root)
	e.push(t, "debian:12", imageOf(t, nil, debian))
	e.push(t, "cuda:12.1", imageOf(t, []string{
		"PATH=/usr/local/nvidia/bin:/usr/local/cuda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"CUDA_VERSION=12.1.1", "NVIDIA_REQUIRE_CUDA=cuda>=12.1 brand=tesla,driver>=470,driver<471",
		"LD_LIBRARY_PATH=/usr/local/nvidia/lib:/usr/local/cuda-12.1/lib64",
	}, debian, layerOf(t, tarFiles(t, map[string]string{
		"usr/local/cuda-12.1/lib64/libcudart.so.12":       "not a library",
		"usr/local/cuda-12.1/compat/libcuda.so.530.30.02": "not a library",
		"etc/apt/sources.list.d/cuda.list":                "deb https://mirror.example/nvidia/ /\n",
	}))))
	e.push(t, "torch:2.4.1", imageOf(t, []string{"PATH=/opt/conda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, debian, layerOf(t, condaLayer(t, root))))
	packed := gzipped(t, root)
	text := strings.NewReplacer("HOST", e.host, "SHA256", hexSum(packed)).Replace(basesMatrix)
	err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(e.matrix, []byte(text), 0o644), os.WriteFile(filepath.Join(dir, "root.tar.gz"), packed, 0o644))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// debianTar is the base layer of the small world.
func debianTar(t *testing.T) []byte {
	t.Helper()
	layers, err := cellImage(t, cellA).Layers()
	if err != nil {
		t.Fatal(err)
	}
	packed, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	z, err := zstd.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func gzipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err == nil {
		_, err = z.Write(data)
	}
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func layerOf(t *testing.T, data []byte) v1.Layer {
	t.Helper()
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }, tarball.WithCompressionLevel(1))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func imageOf(t *testing.T, env []string, layers ...v1.Layer) v1.Image {
	t.Helper()
	img, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Config.Env = "linux", "amd64", env
	if img, err = mutate.ConfigFile(img, config); err != nil {
		t.Fatal(err)
	}
	return img
}

func (e foreign) push(t *testing.T, at string, img v1.Image) {
	t.Helper()
	ref, err := name.ParseReference(e.host + "/" + at)
	if err == nil {
		err = remote.Write(ref, img)
	}
	if err != nil {
		t.Fatal(err)
	}
	e.images[at] = img
}

func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func tarFiles(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	tw := tar.NewWriter(&b)
	for _, p := range slices.Sorted(maps.Keys(files)) {
		err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: p, Mode: 0o644, Size: int64(len(files[p]))})
		if err == nil {
			_, err = io.WriteString(tw, files[p])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// condaLayer is a Python that is not dpkg's, with a torch that stands for the real
// one: Debian's own interpreter and library under another prefix.
func condaLayer(t *testing.T, root []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	tw := tar.NewWriter(&b)
	put := func(h *tar.Header, body io.Reader) {
		err := tw.WriteHeader(h)
		if err == nil {
			_, err = io.Copy(tw, body)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for tr := tar.NewReader(bytes.NewReader(root)); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Name == "usr/bin/python3.11" || strings.HasPrefix(h.Name, "usr/lib/python3.11/") {
			h.Name = "opt/conda/" + strings.TrimPrefix(h.Name, "usr/")
			h.Linkname = strings.Replace(h.Linkname, "usr/lib/", "opt/conda/lib/", 1)
			put(h, tr)
		}
	}
	for link, target := range map[string]string{"python3": "python3.11", "python": "python3.11"} {
		put(&tar.Header{Typeflag: tar.TypeSymlink, Name: "opt/conda/bin/" + link, Linkname: target, Mode: 0o777}, strings.NewReader(""))
	}
	site := "opt/conda/lib/python3.11/site-packages/"
	for p, body := range map[string]string{
		site + "torch/__init__.py":                        "__version__ = '2.4.1'\n",
		site + "torch/version.py":                         "__version__ = '2.4.1'\ncuda: Optional[str] = '12.1'\n",
		site + "torch-2.4.1.dist-info/METADATA":           "Metadata-Version: 2.1\nName: torch\nVersion: 2.4.1\n",
		"opt/conda/lib/python3.11/dist-packages/site.pth": "/" + site + "\n", // where Debian's interpreter looks
	} {
		put(&tar.Header{Typeflag: tar.TypeReg, Name: p, Mode: 0o644, Size: int64(len(body))}, strings.NewReader(body))
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// moby/buildkit#4614, #4805: layers of a base stay as they are, by digest.
// NVIDIA/nvidia-container-toolkit#152: a tag that is pushed again is told, and changes nothing.
func TestBasesMadeElsewhere(t *testing.T) {
	e := basesMadeElsewhere(t)
	imgforge(t, e.args("lock", "--progress", "plain")...).wants(t, exitDone)
	locked, err := os.ReadFile(e.lock)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{" compat=/usr/local/cuda-12.1/compat ", " dist=torch==2.4.1 ", " python=/opt/conda/bin/python3.11 ", " os=debian ", "rootfs tarball_root.tar.gz tarball "} {
		if !strings.Contains(string(locked), want) {
			t.Errorf("the lock has no %q", want)
		}
	}
	for _, not := range []string{e.host, "wheel torch-", "wheel nvidia_"} {
		if strings.Contains(string(locked), not) {
			t.Errorf("the lock has %q", not)
		}
	}
	archive := filepath.Join(scratch, "elsewhere", "docker.tar")
	r := imgforge(t, e.args("build", "--json", "--output", "docker:"+archive)...).wants(t, exitDone)
	first := rows(t, r)
	images := imagetest.Open(t, e.dist)
	for tag, base := range map[string]string{"plain": "debian:12", "nvidia": "cuda:12.1", "conda": "torch:2.4.1"} {
		keepsLayers(t, imagetest.Find(t, images, tag), e.images[base])
	}
	for _, tag := range []string{"tarball", "plain", "nvidia", "conda"} {
		t.Run(tag, func(t *testing.T) { runsOnBase(t, imagetest.Find(t, images, tag), tag) })
	}
	t.Run("podman", func(t *testing.T) { podmanRuns(t, archive, "tarball", "plain", "nvidia", "conda") })
	t.Run("drift", func(t *testing.T) { tagMoves(t, e, first) })
	t.Run("cold", func(t *testing.T) { builtFromKept(t, e, first) })
}

// keepsLayers checks that an image begins with its base's layers, byte for byte.
func keepsLayers(t *testing.T, img *imagetest.Image, base v1.Image) {
	t.Helper()
	img.Validate(t)
	m, err := base.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	got := img.LayerDigests()
	for i, l := range m.Layers {
		if got[i] != l.Digest.String() {
			t.Errorf("%s: layer %d is %s, the base's is %s", img.Tag, i, got[i], l.Digest)
		}
	}
	digest, _ := base.Digest()
	if got := img.Manifest.Annotations["org.opencontainers.image.base.digest"]; got != digest.String() {
		t.Errorf("%s: base.digest is %q, want %s", img.Tag, got, digest)
	}
}

// runsOnBase runs what recipes put on a base.
func runsOnBase(t *testing.T, img *imagetest.Image, tag string) {
	c := imagetest.Unpack(t, img, "")
	c.Output(t, 0, "hello")
	c.Output(t, 1000, "python", "-c", "import tqdm, sys; assert sys.prefix == '/opt/venv', sys.prefix")
	c.Output(t, 1000, "zsh", "-c", "true")
	env := strings.Join(img.Config.Config.Env, "\n") + "\n"
	if strings.Contains(env, "CUDA_VERSION") || !strings.Contains(env, "NVIDIA_REQUIRE_CUDA=driver>=525.60.13\n") {
		t.Errorf("environment:\n%s", env)
	}
	switch tag {
	case "nvidia":
		if !strings.Contains(env, "LD_LIBRARY_PATH=/usr/local/nvidia/lib\n") {
			t.Errorf("CUDA of the base is on the library path:\n%s", env)
		}
		for _, gone := range []string{"usr/local/cuda-12.1/compat", "etc/apt/sources.list.d/cuda.list"} {
			if _, err := os.Lstat(filepath.Join(c.Root, gone)); err == nil {
				t.Errorf("%s is there", gone)
			}
		}
		if _, err := os.Lstat(filepath.Join(c.Root, "usr/local/cuda-12.1/lib64/libcudart.so.12")); err != nil {
			t.Error(err)
		}
	case "conda":
		got := c.Output(t, 1000, "python", "-c", "import torch, sys; print(torch.__version__, torch.__file__, sys.base_prefix)")
		if want := "2.4.1 /opt/conda/lib/python3.11/site-packages/torch/__init__.py /opt/conda\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// builtFromKept keeps every file in a directory, and builds from that alone, from
// an empty state and with the registry and the tarball gone.
func builtFromKept(t *testing.T, e foreign, first []report.Row) {
	kept := filepath.Join(t.TempDir(), "kept")
	imgforge(t, e.args("vendor", "--to", kept)...).wants(t, exitDone)
	e.server.Close()
	if err := os.Remove(filepath.Join(filepath.Dir(e.matrix), "root.tar.gz")); err != nil {
		t.Fatal(err)
	}
	again := e.world
	again.state, again.dist = filepath.Join(scratch, "bases-cold"), filepath.Join(t.TempDir(), "dist")
	defer os.RemoveAll(again.state)
	args := again.args("build", "--json")
	args[slices.Index(args, "host")] = "vendor:" + kept
	second := rows(t, imgforge(t, args...).wants(t, exitDone))
	if a, b := digests(first), digests(second); !maps.Equal(a, b) {
		t.Errorf("two states, two digests: %v and %v", a, b)
	}
}

// podmanRuns loads an archive of several images into podman and runs each.
func podmanRuns(t *testing.T, archive string, tags ...string) {
	podman(t, "load", "--quiet", "--input", archive)
	for _, tag := range tags {
		name := "localhost/bases:" + tag
		if got := podman(t, "run", "--rm", "--network", "none", "--pull", "never", name, "python", "-c", "import sys, tqdm; print(sys.prefix)"); got != "/opt/venv\n" {
			t.Errorf("%s says %q", tag, got)
		}
		podman(t, "rmi", "--force", name)
	}
}

// tagMoves pushes another image to a tag that is locked: it is told, and changes
// nothing until it is asked for.
func tagMoves(t *testing.T, e foreign, first []report.Row) {
	was := e.images["debian:12"]
	defer e.push(t, "debian:12", was)
	moved, err := mutate.AppendLayers(was, layerOf(t, tarFiles(t, map[string]string{"etc/moved": "x"})))
	if err != nil {
		t.Fatal(err)
	}
	e.push(t, "debian:12", moved)
	r := imgforge(t, e.args("lock")...).wants(t, exitDone)
	digest, _ := moved.Digest()
	if !strings.Contains(r.stderr, "note: base plain: "+e.host+"/debian:12 is "+digest.String()+" now") {
		t.Errorf("the tag has moved, and nothing says so:\n%s", r.stderr)
	}
	imgforge(t, e.args("lock", "--check")...).wants(t, exitDone)
	again := rows(t, imgforge(t, e.args("build", "--json", "--only", "base=plain")...).wants(t, exitDone))
	if digests(again)["plain"] != digests(first)["plain"] {
		t.Error("a tag that moved changed what is locked")
	}
	before, err := os.ReadFile(e.lock)
	if err != nil {
		t.Fatal(err)
	}
	imgforge(t, e.args("lock", "--upgrade", "plain")...).wants(t, exitDone)
	after, err := os.ReadFile(e.lock)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(after), digest.Hex) {
		t.Error("the upgrade did not take the new digest")
	}
	if err := os.WriteFile(e.lock, before, 0o644); err != nil {
		t.Fatal(err)
	}
}
