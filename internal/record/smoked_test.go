package record

import (
	"encoding/json"
	"testing"
)

// What was skipped, or never ran, is never taken for tested.
func TestVerdict(t *testing.T) {
	for _, tc := range []struct {
		statuses []Status
		want     Verdict
	}{
		{nil, Untested},
		{[]Status{CheckPassed}, Tested},
		{[]Status{CheckPassed, CheckWarned}, Tested},
		{[]Status{CheckWarned}, Untested},
		{[]Status{CheckPassed, CheckSkipped}, Untested},
		{[]Status{CheckPassed, CheckSkipped, CheckFailed}, Broken},
		{[]Status{""}, Untested},
		{[]Status{CheckPassed, ""}, Untested},
		{[]Status{CheckPassed, "PASSED"}, Untested},
	} {
		s := &Smoked{}
		for _, status := range tc.statuses {
			s.Checks = append(s.Checks, Check{Status: status})
		}
		if got := s.Verdict(); got != tc.want {
			t.Errorf("%q: %s, want %s", tc.statuses, got, tc.want)
		}
	}
}

func TestSmokedWire(t *testing.T) {
	const want = `{"cell":"a","smoked":{"image":"sha256:d","runner":"buildkit","policy":"auto","floor":"525.60.13","host":{"driver":"535.1","gpus":[{"name":"H20"}]},` +
		`"checks":[{"name":"zsh","kind":"cpu","status":"failed","summary":"s","problems":[{"problem":"p","meaning":"m","do":["d"]}],"seconds":1}],` +
		`"findings":[{"rule":"floor-unproven","text":"t"}],"seconds":2}}`
	got, err := json.Marshal(Event{Cell: "a", Smoked: &Smoked{
		Image: "sha256:d", Runner: "buildkit", Policy: "auto", Floor: "525.60.13", Host: Host{Driver: "535.1", GPUs: []GPU{{Name: "H20"}}},
		Checks:   []Check{{Name: "zsh", Kind: "cpu", Status: CheckFailed, Summary: "s", Problems: []Problem{{"p", "m", []string{"d"}}}, Seconds: 1}},
		Findings: []Finding{{"floor-unproven", "t"}}, Seconds: 2,
	}})
	if err != nil || string(got) != want {
		t.Errorf("got  %s (%v)\nwant %s", got, err, want)
	}
}
