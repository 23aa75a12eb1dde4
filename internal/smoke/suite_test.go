package smoke

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/imgforge/imgforge/internal/check"
	"github.com/imgforge/imgforge/internal/record"
)

// scripted gives each check the output of its name; none is an error of the runner.
type scripted map[string]check.Output

func (s scripted) Run(_ context.Context, e check.Exec) (check.Output, error) {
	out, ok := s[e.Name]
	if !ok {
		return check.Output{}, errors.New("the runner is lost")
	}
	return out, nil
}

func command(name string, kind check.Kind) check.Check {
	return check.Check{Name: name, Kind: kind, Run: "x", Timeout: time.Minute, Severity: check.Error}
}

func statuses(s *record.Smoked) string {
	var out []string
	for _, c := range s.Checks {
		out = append(out, c.Name+" "+string(c.Status))
	}
	return strings.Join(out, ", ") + ": " + string(s.Verdict())
}

// What becomes of GPU checks, by policy and by whether there is a GPU.
func TestPolicy(t *testing.T) {
	checks := []check.Check{command("cpu", check.CPU), command("gpu", check.GPU)}
	for _, tc := range []struct{ policy, none, want string }{
		{"auto", "", "cpu passed, gpu passed: tested"},
		{"auto", "no GPU", "cpu passed, gpu skipped: untested"},
		{"require", "", "cpu passed, gpu passed: tested"},
		{"require", "no GPU", "cpu passed, gpu failed: failed"},
		{"skip", "", "cpu passed, gpu skipped: untested"},
		{"skip", "no GPU", "cpu passed, gpu skipped: untested"},
	} {
		s := &Suite{Runner: scripted{"cpu": {}, "gpu": {}}, GPU: tc.policy, NoGPU: tc.none, Jobs: 2}
		got, err := s.Run(t.Context(), checks)
		if err != nil || statuses(got) != tc.want {
			t.Errorf("%s, %q: %v, %v, want %s", tc.policy, tc.none, statuses(got), err, tc.want)
		}
	}
}

func TestSuite(t *testing.T) {
	warns := command("warns", check.CPU)
	warns.Severity = check.Warning
	static := check.Check{Name: "static", Kind: check.Static, Use: "two-cuda", Severity: check.Error}
	s := &Suite{
		Runner: scripted{"a": {}, "fails": {Exit: 3}, "warns": {Exit: 1}, "hangs": {TimedOut: true}}, GPU: "auto", Jobs: 4,
		Static: func(context.Context, check.Check) (check.Result, error) {
			return check.Result{OK: true, Summary: "s"}, nil
		},
	}
	got, err := s.Run(t.Context(), []check.Check{static, command("a", check.CPU), command("fails", check.CPU), warns, command("hangs", check.CPU)})
	const want = "static passed, a passed, fails failed, warns warned, hangs failed: failed"
	if err != nil || statuses(got) != want {
		t.Errorf("%s, %v, want %s", statuses(got), err, want)
	}
	s.Only = []string{"a"}
	if got, err = s.Run(t.Context(), []check.Check{command("a", check.CPU), command("fails", check.CPU)}); err != nil || statuses(got) != "a passed, fails skipped: untested" {
		t.Errorf("some checks alone: %s, %v", statuses(got), err)
	}
}

// A runner that is lost is no failed check.
func TestLostRunner(t *testing.T) {
	got, err := (&Suite{Runner: scripted{"a": {}}, Jobs: 1}).Run(t.Context(), []check.Check{command("a", check.CPU), command("b", check.CPU)})
	if got != nil || err == nil || err.Error() != "check b: the runner is lost" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestFloorUnproven(t *testing.T) {
	smi := command("nvidia-smi", check.GPU)
	smi.Run, smi.Use = "", "nvidia-smi"
	answer := `{"ok":true,"summary":"s","facts":{"driver":"570.86.10","gpus":[{"name":"NVIDIA H20","uuid":"GPU-1","capability":"9.0","memory_total":97871}]}}`
	for floor, want := range map[string]int{"525.60.13": 1, "570.26": 0, "": 0} {
		s := &Suite{Runner: scripted{"nvidia-smi": {Stdout: []byte(answer)}}, GPU: "auto", Floor: floor, Jobs: 1}
		got, err := s.Run(t.Context(), []check.Check{smi})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Findings) != want || got.Host.Driver != "570.86.10" || got.Host.GPUs[0] != (record.GPU{Name: "NVIDIA H20", UUID: "GPU-1", Capability: "9.0", Memory: 97871}) {
			t.Errorf("floor %q: %+v, host %+v", floor, got.Findings, got.Host)
		}
	}
}
