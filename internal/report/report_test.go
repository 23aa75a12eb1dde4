package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/golden"
	"github.com/imgforge/imgforge/internal/record"
)

// run is the events of a run in which cells ended in every way, as forge tells
// them, but for one that came too early.
func run() []record.Event {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	warn := []string{"torch.compile needs driver >=520.61.05 for CUDA 11.8"}
	stale := &record.Failed{Class: record.ClassPlan, Reason: "the lock is stale:\nm.yaml:3:4: its wheels are not locked"}
	return []record.Event{
		{Cell: "2.4.1-cuda12.1", Planned: &record.Planned{Plan: "sha256:p1"}},
		{Cell: "2.1.2-cuda11.8", Planned: &record.Planned{Plan: "sha256:p2", Warnings: warn}},
		{Cell: "2.4.1-cuda12.1", Fetched: &record.Fetched{Files: 300, Downloaded: 3 << 30}},
		{Cell: "2.4.1-cuda12.1", Built: &record.Built{Digest: digest, Size: 4_500_000_000, New: 4_500_000_000, Layers: 60, Seconds: 754.2, Pushed: "hub.invalid/torch@" + digest}},
		{Cell: "2.1.2-cuda11.8", Fetched: &record.Fetched{Files: 290}},
		{Cell: "2.1.2-cuda11.8", Built: &record.Built{Digest: digest, Size: 4_100_000_000, New: 12345, Layers: 59, Seconds: 0.84}},
		{Cell: "2.2.2-cuda11.8", Planned: &record.Planned{Plan: "sha256:p3", Warnings: warn}},
		{Cell: "2.2.2-cuda11.8", Fetched: &record.Fetched{Files: 290}},
		{Cell: "2.2.2-cuda11.8", Failed: &record.Failed{Class: record.ClassBuild, Reason: "recipes/zsh.yaml:28:5: exit code 1"}},
		{Cell: "2.4.1-cuda12.1", Smoked: &record.Smoked{Image: digest, Runner: "buildkit", Policy: "auto", Seconds: 12.3,
			Host: record.Host{Driver: "570.86.10", GPUs: []record.GPU{{Name: "NVIDIA H20"}}},
			Checks: []record.Check{
				{Name: "two-cuda", Kind: "static", Status: record.CheckPassed, Summary: "one CUDA runtime, one cuDNN", Seconds: 0.2},
				{Name: "setuid", Kind: "static", Status: record.CheckWarned, Summary: "1 program", Problems: []record.Problem{{Problem: "/usr/bin/at is set-uid"}}},
				{Name: "torch-cuda", Kind: "gpu", Status: record.CheckPassed, Summary: "right on 1 GPU", Seconds: 8},
			}, Findings: []record.Finding{{Rule: "floor-unproven", Text: "a pass on driver 570.86.10 shows nothing of the floor 525.60.13"}}}},
		{Cell: "2.1.2-cuda11.8", Smoked: &record.Smoked{Image: digest, Runner: "podman", Policy: "auto", Seconds: 3,
			Checks: []record.Check{
				{Name: "opencv", Kind: "cpu", Status: record.CheckFailed, Summary: "cv2 needs libGL.so.1", Seconds: 1, Problems: []record.Problem{
					{Problem: "import cv2: libGL.so.1: cannot open", Meaning: "an OpenCV with windows\nis installed", Do: []string{"keep opencv-python-headless alone", "look who pulled it: imgforge lock --why"}}}},
				{Name: "torch-cuda", Kind: "gpu", Status: record.CheckSkipped, Summary: "no GPU"},
			}}},
		{Cell: "2.1.2-cuda11.8", Failed: &record.Failed{Class: record.ClassSmoke, Reason: "checks failed: opencv"}},
		{Cell: "2.3.1-cuda11.8", Failed: stale},
		{Cell: "2.3.1-cuda12.1", Failed: stale},
		{Cell: "2.5.1-cuda11.8", Failed: stale},
	}
}

func TestTable(t *testing.T) {
	var out strings.Builder
	if err := Table(&out, Fold(run())); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/table.out", out.String())
}

func TestJUnit(t *testing.T) {
	var out strings.Builder
	if err := JUnit(&out, Fold(run())); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/junit.xml", out.String())
}

func TestJSON(t *testing.T) {
	var out bytes.Buffer
	rows := Fold(run())
	if err := JSON(&out, rows); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/rows.json", out.String())
	var back []Row
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || !reflect.DeepEqual(back, rows) {
		t.Errorf("%v; read again: %+v", err, back)
	}
}

func TestNoRows(t *testing.T) {
	var out strings.Builder
	if err := JSON(&out, Fold(nil)); err != nil || out.String() != "[]\n" {
		t.Errorf("no rows print %q, %v", out.String(), err)
	}
}

// Cells keep the order they first appear in, also when their events mix.
func TestFold(t *testing.T) {
	rows := Fold(run())
	var order []string
	for _, r := range rows {
		order = append(order, r.Cell)
	}
	want := "2.4.1-cuda12.1 2.1.2-cuda11.8 2.2.2-cuda11.8 2.3.1-cuda11.8 2.3.1-cuda12.1 2.5.1-cuda11.8"
	if got := strings.Join(order, " "); got != want {
		t.Errorf("rows are %s", got)
	}
	if r := rows[0]; r.Status != "tested" || r.Fetched != 3<<30 || r.Plan != "sha256:p1" || r.Failed != nil {
		t.Errorf("a built cell is %+v", r)
	}
	if r := rows[2]; r.Status != "failed" || r.Digest != "" || r.Failed.Class != record.ClassBuild || len(r.Warnings) != 1 {
		t.Errorf("a failed cell is %+v", r)
	}
}

// broken refuses every byte, as a closed pipe does.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestTableTellsWriteErrors(t *testing.T) {
	if err := Table(broken{}, Fold(run())); err == nil {
		t.Error("nothing could be written and nobody was told")
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1: "1 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 12345: "12.1 KiB",
		102_348: "99.9 KiB", 102_399: "100 KiB", 512_000: "500 KiB", 1_023_000: "999 KiB",
		1_023_999: "1.0 MiB", 1 << 20: "1.0 MiB", 1<<30 - 1: "1.0 GiB", 4_500_000_000: "4.2 GiB",
		1 << 40: "1.0 TiB", 2000 << 40: "2000 TiB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("%d bytes are %q, want %q", n, got, want)
		}
	}
}

func TestSeconds(t *testing.T) {
	for s, want := range map[float64]string{
		0: "0.0 s", 0.04: "0.0 s", 0.06: "0.1 s", 12.34: "12.3 s", 59.94: "59.9 s", 59.96: "1 min 00 s", 60: "1 min 00 s",
		61.4: "1 min 01 s", 119.7: "2 min 00 s", 754.2: "12 min 34 s", 3600: "60 min 00 s",
	} {
		if got := Seconds(s); got != want {
			t.Errorf("%g seconds are %q, want %q", s, got, want)
		}
	}
}
