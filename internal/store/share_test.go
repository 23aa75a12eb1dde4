package store_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/store"
	"github.com/imgforge/imgforge/internal/store/storetest"
)

// slowly answers with the file in many pieces, so that two downloads of it overlap.
func slowly(w http.ResponseWriter, _ *http.Request, file []byte) {
	w.Header().Set("Content-Length", fmt.Sprint(len(file)))
	for len(file) > 0 {
		n := min(len(file), 8<<10)
		if _, err := w.Write(file[:n]); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		file = file[n:]
		time.Sleep(time.Millisecond)
	}
}

// shared is a mirror with one file, which it serves slowly, and its blob.
func shared(t *testing.T) (*storetest.Mirror, plan.Blob) {
	data := bytes.Repeat([]byte("imgforge"), 64<<10)
	m := storetest.New(t)
	m.Add("/debian/pool/a.deb", data)
	for range 8 {
		m.Fault("/debian/pool/a.deb", slowly)
	}
	return m, plan.Blob{Name: "a.deb", Origin: "debian/pool/a.deb", SHA256: storetest.Sum(data), Size: int64(len(data))}
}

func fetcher(t *testing.T, dir, url string) *store.Fetcher {
	t.Helper()
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return &store.Fetcher{Store: s, Profiles: []store.Profile{{Name: "only", Archives: map[string]string{"debian": url + "/debian"}}}}
}

func checkShared(t *testing.T, dir string, m *storetest.Mirror, b plan.Blob) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "blobs", "sha256", b.SHA256))
	if err != nil || storetest.Sum(data) != b.SHA256 {
		t.Errorf("the store holds %d bytes with sha256 %s: %v", len(data), storetest.Sum(data), err)
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "partial")); len(left) > 0 {
		t.Errorf("%d partial files are left, such as %s", len(left), left[0].Name())
	}
	if asked := m.Asked(); len(asked) != 1 {
		t.Errorf("the mirror was asked %d times, want once: %v", len(asked), asked)
	}
}

// TestTwoProcessesShareADownload runs this test's own program twice at once.
func TestTwoProcessesShareADownload(t *testing.T) {
	if url := os.Getenv("STORE_TEST_URL"); url != "" {
		b := plan.Blob{Name: "a.deb", Origin: "debian/pool/a.deb", SHA256: os.Getenv("STORE_TEST_SUM"), Size: 512 << 10}
		if _, err := fetcher(t, os.Getenv("STORE_TEST_DIR"), url).Fetch(context.Background(), []plan.Blob{b}); err != nil {
			t.Fatal(err)
		}
		return
	}
	m, b := shared(t)
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestTwoProcessesShareADownload$")
			cmd.Env = append(os.Environ(), "STORE_TEST_URL="+m.URL, "STORE_TEST_SUM="+b.SHA256, "STORE_TEST_DIR="+dir)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	wg.Wait()
	checkShared(t, dir, m, b)
}
