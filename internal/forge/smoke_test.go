package forge_test

import (
	"context"
	"errors"
	"testing"

	"github.com/imgforge/imgforge/internal/forge"
	"github.com/imgforge/imgforge/internal/record"
)

// smoker gives each cell the status of its tag, or an error.
type smoker map[string]record.Status

func (s smoker) Smoke(_ context.Context, cell forge.Cell, image forge.Image) (*record.Smoked, error) {
	if s[cell.Tag] == "" {
		return nil, errors.New("the runner is lost")
	}
	return &record.Smoked{Image: image.Digest, Checks: []record.Check{{Name: "zsh", Status: s[cell.Tag]}}}, nil
}

// A failed check fails its cell alone, whose image is told all the same; a check that
// could not be run is no failed check.
func TestSmoke(t *testing.T) {
	got := do(t.Context(), forge.Run{Jobs: 1, Builder: builder(fine), Smoker: smoker{
		"a": record.CheckPassed, "b": record.CheckFailed, "c": record.CheckSkipped,
	}}, cell("a", ""), cell("b", ""), cell("c", ""), cell("d", ""))
	check(t, got, `a planned []
a fetched 0 files, 0 bytes
a built sha256:a size 101 new 101 layers 2 
a smoked sha256:a: tested
b planned []
b fetched 0 files, 0 bytes
b built sha256:b size 101 new 1 layers 2 
b smoked sha256:b: failed
b failed smoke: checks failed: zsh
c planned []
c fetched 0 files, 0 bytes
c built sha256:c size 101 new 1 layers 2 
c smoked sha256:c: untested
d planned []
d fetched 0 files, 0 bytes
d built sha256:d size 101 new 1 layers 2 
d failed engine: the runner is lost
`)
}
