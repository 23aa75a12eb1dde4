package store

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/store/storetest"
)

// What mirrors have dropped is asked of the archive that keeps it by date.
// KatherLab/MediSwarm#395: exact versions vanish from mirrors.
func TestSnapshotIsTheLastResort(t *testing.T) {
	data := content(1000)
	bare, dated := storetest.New(t), storetest.New(t)
	dated.Add("/archive/debian/20261129T125313Z/pool/main/z/zsh/zsh_5.9-4+b1_amd64.deb", data)
	snapshot := Profile{Name: "snapshot", Archives: map[string]string{"debian": dated.URL + "/archive/debian/" + dateSlot}}

	f := newFetcher(t, mirrorProfile("bare", bare.URL), snapshot)
	f.Snapshot = time.Date(2026, 11, 29, 0, 53, 13, 0, time.UTC)
	if got := mustFetch(t, f, debBlob(data)); got.Files != 1 {
		t.Errorf("fetched %d files", got.Files)
	}

	undated := newFetcher(t, snapshot)
	_, err := undated.Fetch(context.Background(), []plan.Blob{debBlob(data)})
	if err == nil || !strings.Contains(err.Error(), "by date") {
		t.Errorf("with no date known: %v", err)
	}
}
