package store

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/imgforge/imgforge/internal/plan"
)

func TestSweepRemovesDamagedFilesAlone(t *testing.T) {
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var blobs []plan.Blob
	for _, text := range []string{"sound", "damaged"} {
		sum, size, err := s.Put(context.Background(), bytes.NewReader([]byte(text)))
		if err != nil {
			t.Fatal(err)
		}
		blobs = append(blobs, plan.Blob{Name: text, SHA256: sum, Size: size})
	}
	if err := os.Remove(s.Path(blobs[1].SHA256)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.Path(blobs[1].SHA256), []byte("dAmaged"), 0o644); err != nil {
		t.Fatal(err)
	}
	missing := debBlob([]byte("never stored"))
	removed, err := s.Sweep(context.Background(), append(blobs, missing))
	if err != nil || removed != 1 {
		t.Errorf("removed %d, %v", removed, err)
	}
	if !s.Has(blobs[0].SHA256) || s.Has(blobs[1].SHA256) {
		t.Error("the wrong file was removed")
	}
}
