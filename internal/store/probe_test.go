package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/plan"
	"github.com/imgforge/imgforge/internal/store/storetest"
)

func TestProbe(t *testing.T) {
	deb, wheel := content(1000), content(2000)
	debs, wheels := debBlob(deb), wheelBlob("pypi:x==1", "x-1-py3-none-any.whl", wheel)
	torch := wheelBlob("pytorch/cu118:torch==2.1.2+cu118", "torch-2.1.2+cu118-cp311.whl", []byte("large"))
	torch.Size = 0
	full, half, other := storetest.New(t), storetest.New(t), storetest.New(t)
	full.Add(debPath, deb)
	full.Wheel("/simple/x/", wheels.Name, wheel)
	full.Add("/whl/cu118/torch-2.1.2+cu118-cp311.whl", []byte("large"))
	full.List("/whl/cu118/", torch.Name, "torch-2.1.2%2Bcu118-cp311.whl", "")
	half.Add(debPath, deb)
	half.Wheel("/simple/x/", wheels.Name, content(2001)) // the same name
	other.Add(debPath, content(999))
	other.List("/simple/x/", wheels.Name, full.URL+"/"+wheels.Name, wheels.SHA256)
	profiles := []Profile{
		mirrorProfile("half", half.URL), mirrorProfile("dead", storetest.Closed(t)), mirrorProfile("full", full.URL),
		mirrorProfile("other", other.URL), {Name: "none", Missing: []string{"pypi: it is small"}},
	}
	f := newFetcher(t, profiles...)
	told := 0
	got, err := f.Probe(context.Background(), []plan.Blob{debs, wheels, torch}, true, func(done, total int) {
		if told++; done != told || total != 15 {
			t.Errorf("told %d of %d", done, total)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"half":  "reachable 1: 404 Not Found; lists another file under this name",
		"dead":  "away 0: connection refused",
		"full":  "reachable 3:",
		"other": "reachable 0: 404 Not Found; has another file there, of 999 bytes; links to another host, " + storetest.Host(full.URL),
		"none":  "away 0: has no Python index (it is small); has no debian archive; has no torch wheels for cu118",
	}
	for _, p := range got.Mirrors {
		var reasons []string
		for _, l := range p.Lacks {
			reasons = append(reasons, l.Reason)
		}
		state := "away"
		if p.Reachable {
			state = "reachable"
		}
		if text := strings.TrimSpace(fmt.Sprintf("%s %d: %s", state, p.Has, strings.Join(reasons, "; "))); text != want[p.Mirror] {
			t.Errorf("%s: %s\nnot %s", p.Mirror, text, want[p.Mirror])
		}
		if (p.Speed > 0) != (p.Has > 0) {
			t.Errorf("%s: speed %f", p.Mirror, p.Speed)
		}
	}
	slices.Sort(got.Order)
	if !slices.Equal(got.Order, []string{"full", "half"}) || len(got.Nowhere) != 0 || told != 15 {
		t.Errorf("got %+v", got)
	}
	f = newFetcher(t, profiles[0])
	got, err = f.Probe(context.Background(), []plan.Blob{debs, wheels, torch}, true, nil)
	if err != nil || !slices.Equal(got.Nowhere, []string{torch.Name, wheels.Name}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if f.Store.Has(debs.SHA256) {
		t.Error("a probe keeps files")
	}
}

func TestProbeOrder(t *testing.T) {
	got := ProbeResult{Asked: 1, Mirrors: []Probe{
		{Mirror: "slow", Reachable: true, Has: 1, Speed: 10, has: []bool{true}}, {Mirror: "dead", has: []bool{false}},
		{Mirror: "fast", Reachable: true, Has: 1, Speed: 20, has: []bool{true}}, {Mirror: "empty", Reachable: true, has: []bool{false}},
	}}
	got.conclude([]wanted{{blob: debBlob(nil)}})
	if !slices.Equal(got.Order, []string{"fast", "slow"}) || len(got.Nowhere) != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestRank(t *testing.T) {
	data := content(1000)
	empty, good := storetest.New(t), storetest.New(t)
	good.Add(debPath, data)
	f := newFetcher(t, mirrorProfile("dead", storetest.Closed(t)), mirrorProfile("empty", empty.URL), mirrorProfile("good", good.URL))
	blobs := []plan.Blob{debBlob(data)}
	if err := f.Rank(context.Background(), blobs); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range f.Profiles {
		names = append(names, p.Name)
	}
	if !slices.Equal(names, []string{"good", "dead", "empty"}) {
		t.Errorf("ranked %q", names)
	}
	mustFetch(t, f, blobs...)
	asked := len(good.Asked())
	if err := f.Rank(context.Background(), blobs); err != nil || len(good.Asked()) != asked {
		t.Errorf("mirrors are asked though nothing is missing: %q, %v", good.Asked(), err)
	}
}

func TestProbeSample(t *testing.T) {
	var blobs []plan.Blob
	for i := range 100 {
		blobs = append(blobs, plan.Blob{Name: fmt.Sprint(i), Origin: fmt.Sprint("debian/pool/", i), SHA256: storetest.Sum([]byte{byte(i)}), Size: int64(i + 1)})
	}
	blobs = append(blobs, plan.Blob{Name: "w", Origin: "pypi:w==1", SHA256: storetest.Sum([]byte("w"))})
	m := storetest.New(t)
	f := newFetcher(t, mirrorProfile("one", m.URL))
	got, err := f.Probe(context.Background(), blobs, false, nil)
	if err != nil || got.Asked != sampled+1 || got.Files != 101 || len(got.Nowhere) != sampled+1 {
		t.Errorf("got %+v, %v", got, err)
	}
	if !slices.Contains(got.Nowhere, "99") {
		t.Error("the largest is not among the sample")
	}
	// With nothing to ask for it is still found out who answers.
	got, err = newFetcher(t, mirrorProfile("one", m.URL), mirrorProfile("dead", storetest.Closed(t))).Probe(context.Background(), nil, false, nil)
	if err != nil || !got.Mirrors[0].Reachable || got.Mirrors[1].Reachable || got.Mirrors[1].Lacks[0].Reason != "connection refused" {
		t.Errorf("got %+v, %v", got, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := f.Probe(ctx, blobs, true, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}
