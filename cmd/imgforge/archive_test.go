package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/imgforge/imgforge/internal/imagetest"
)

// podman runs the distribution's podman on storage of its own, with what a
// machine without cgroups v2 or the right to raise limits needs.
func podman(t *testing.T, args ...string) string {
	t.Helper()
	dir := filepath.Join(scratch, "podman")
	conf := filepath.Join(dir, "containers.conf")
	if _, err := os.Stat(conf); err != nil {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		text := "[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=20000:20000\"]\n[engine]\nruntime = \"runc\"\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"none\"\n"
		if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("podman", append([]string{"--root", dir + "/root", "--runroot", dir + "/run", "--tmpdir", dir + "/tmp",
		"--storage-opt", "overlay.skip_mount_home=true"}, args...)...)
	cmd.Env = append(os.Environ(), "CONTAINERS_CONF="+conf, "TMPDIR="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("podman %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// compressed are builds of the first cell in each compression, as an OCI layout
// and two archives.
var compressed = map[string]func() (world, result){}

func init() {
	for _, c := range []string{"zstd", "gzip", "estargz"} {
		compressed[c] = sync.OnceValues(func() (world, result) {
			w := small()
			w.dist = filepath.Join(scratch, "compressed", c)
			var out, errs syncBuffer
			dir := w.dist + "-archives"
			_ = os.MkdirAll(dir, 0o755)
			code := run(context.Background(), environ(), strings.NewReader(""), &out, &errs, w.args("build", "--only", "driver=525", "--json", "--compression", c,
				"--output", "docker:"+dir+"/docker.tar", "--output", "oci:"+dir+"/oci.tar"))
			return w, result{out.String(), errs.String(), code}
		})
	}
}

// inCompression is the first cell built that way.
func inCompression(t *testing.T, c string) world {
	t.Helper()
	built(t)
	w, r := compressed[c]()
	r.wants(t, exitDone)
	return w
}

// podman loads and runs what was built, whatever its compression and archive.
func TestArchives(t *testing.T) {
	types := map[string]types.MediaType{"zstd": types.OCILayerZStd, "gzip": types.OCILayer, "estargz": types.OCILayer}
	for _, c := range []string{"zstd", "gzip", "estargz"} {
		w := inCompression(t, c)
		img := imagetest.Find(t, imagetest.Open(t, w.dist), cellA)
		img.Validate(t)
		for _, l := range img.Manifest.Layers {
			if l.MediaType != types[c] {
				t.Errorf("%s: a layer is a %s", c, l.MediaType)
			}
			if _, lazy := l.Annotations["containerd.io/snapshot/stargz/toc.digest"]; lazy != (c == "estargz") {
				t.Errorf("%s: a layer has the annotations %v", c, l.Annotations)
			}
		}
		for _, format := range []string{"docker", "oci"} {
			if c == "gzip" && format == "docker" {
				continue // equal to zstd's, below
			}
			said := podman(t, "load", "--quiet", "--input", w.dist+"-archives/"+format+".tar")
			_, name, ok := strings.Cut(strings.TrimSpace(said), ": ")
			if !ok || !strings.HasSuffix(name, "/small:"+cellA) {
				t.Fatalf("%s, %s: podman loaded %q", c, format, said)
			}
			if got := podman(t, "run", "--rm", "--network", "none", "--pull", "never", name, "note"); !strings.HasPrefix(got, "Hello, world!") {
				t.Errorf("%s, %s: the image says %q", c, format, got)
			}
			podman(t, "rmi", "--force", name)
		}
	}
	var files [2][]byte
	for i, c := range []string{"zstd", "gzip"} {
		data, err := os.ReadFile(inCompression(t, c).dist + "-archives/docker.tar")
		if err != nil {
			t.Fatal(err)
		}
		files[i] = data
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("the docker archive depends on the compression, though its layers have none")
	}
}

// A blob of an earlier run that was damaged since is written anew.
func TestDamagedOutput(t *testing.T) {
	w, rows := built(t)
	w.dist = filepath.Join(t.TempDir(), "dist")
	args := w.args("build", "--only", "driver=525")
	imgforge(t, args...).wants(t, exitDone)
	for _, blob := range imagetest.Find(t, imagetest.Open(t, w.dist), cellA).LayerDigests()[:2] {
		path := filepath.Join(w.dist, "blobs", strings.Replace(blob, ":", "/", 1))
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		data[len(data)/2] ^= 1
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	imgforge(t, args...).wants(t, exitDone)
	img := imagetest.Find(t, imagetest.Open(t, w.dist), cellA)
	img.Validate(t)
	if img.Digest != digests(rows)[cellA] {
		t.Errorf("%s, want %s", img.Digest, digests(rows)[cellA])
	}
}

// Two runs do not write one layout at once, even with engines of their own.
func TestOutputInUse(t *testing.T) {
	w := sleeper(t, "316.5")
	p := startSleeping(t, w)
	other := w
	other.state = t.TempDir()
	r := imgforge(t, other.args("build")...).wants(t, exitInfra)
	if !strings.Contains(r.stderr, "another imgforge is writing to "+w.dist) {
		t.Errorf("stderr:\n%s", tail(r.stderr, 10))
	}
	p.signal(t, p.cmd.Process.Pid, 15)
	p.result(t).wants(t, exitInfra)
	nothingLeft(t, w, "sleep 316.5")
}
