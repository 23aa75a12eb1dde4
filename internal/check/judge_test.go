package check

import (
	"strings"
	"testing"
	"time"
)

func TestJudgeCommand(t *testing.T) {
	text := func(s string) *string { return &s }
	for _, tc := range []struct {
		name   string
		expect Expect
		out    Output
		want   string // in the first problem; empty: it passes
	}{
		{"ends with 0", Expect{}, Output{Stdout: []byte("fine\n")}, ""},
		{"ends with 3", Expect{}, Output{Exit: 3, Stderr: []byte("boom")}, "code 3, not 0"},
		{"must fail", Expect{Exit: 3}, Output{Exit: 3}, ""},
		{"must fail, does not", Expect{Exit: 3}, Output{}, "code 0, not 3"},
		{"exact", Expect{Stdout: text("2.4.1")}, Output{Stdout: []byte("\n2.4.1 \n")}, ""},
		{"not exact", Expect{Stdout: text("2.4.1")}, Output{Stdout: []byte("2.4.10")}, `"2.4.10", not "2.4.1"`},
		{"nothing", Expect{Stdout: text("")}, Output{}, ""},
		{"something", Expect{Stdout: text("")}, Output{Stdout: []byte("x")}, `printed "x"`},
		{"matches", Expect{Match: "^torch"}, Output{Stdout: []byte("torch 2")}, ""},
		{"matches nothing", Expect{Match: "^torch"}, Output{Stdout: []byte("a torch")}, "does not match"},
		{"version", Expect{Version: "~2.4"}, Output{Stdout: []byte("torch 2.4.1+cu121")}, ""},
		{"version of four parts", Expect{Version: ">=525"}, Output{Stdout: []byte("525.60.13.1")}, ""},
		{"another version", Expect{Version: "~2.4"}, Output{Stdout: []byte("2.5.0")}, "version 2.5.0 is not inside"},
		{"no version", Expect{Version: "~2.4"}, Output{Stdout: []byte("none")}, "no version"},
		{"JSON", Expect{JSON: map[string]string{"gpus.0.name": "H20", "ok": "true", "n": "12345678901234567890"}},
			Output{Stdout: []byte(`{"gpus":[{"name":"H20"}],"ok":true,"n":12345678901234567890}`)}, ""},
		{"JSON of another value", Expect{JSON: map[string]string{"a": "1"}}, Output{Stdout: []byte(`{"a":2}`)}, `a is "2" in its JSON, not "1"`},
		{"JSON without it", Expect{JSON: map[string]string{"a.3": "1"}}, Output{Stdout: []byte(`{"a":[]}`)}, "has no a.3"},
		{"a list is no value", Expect{JSON: map[string]string{"a": "[]"}}, Output{Stdout: []byte(`{"a":[]}`)}, "has no a"},
		{"no JSON", Expect{JSON: map[string]string{"a": "1"}}, Output{Stdout: []byte("a=1")}, "not JSON"},
		{"hangs", Expect{}, Output{TimedOut: true}, "killed after 1m0s"},
	} {
		got := Check{Run: "x", Expect: tc.expect, Timeout: time.Minute}.Judge(tc.out)
		switch {
		case got.OK != (tc.want == "") || got.OK != (len(got.Problems) == 0):
			t.Errorf("%s: %+v", tc.name, got)
		case !got.OK && !strings.Contains(got.Problems[0].Problem, tc.want):
			t.Errorf("%s: %q does not say %q", tc.name, got.Problems[0].Problem, tc.want)
		}
	}
}

// A built-in's program is believed only where all it says agrees.
func TestJudgeBuiltin(t *testing.T) {
	const passed, failed = `{"ok":true,"summary":"fine"}`, `{"ok":false,"summary":"bad","problems":[{"problem":"p"}]}`
	for _, tc := range []struct {
		out  Output
		ok   bool
		want string
	}{
		{Output{Stdout: []byte("noise\n" + passed + "\n")}, true, "fine"},
		{Output{Exit: 1, Stdout: []byte(failed)}, false, "bad"},
		{Output{Exit: 1, Stdout: []byte(passed)}, false, "contradicts"},
		{Output{Exit: 0, Stdout: []byte(failed)}, false, "contradicts"},
		{Output{Exit: 0, Stdout: []byte(`{"ok":true,"summary":"fine","problems":[{"problem":"p"}]}`)}, false, "contradicts"},
		{Output{Exit: 1, Stdout: []byte(`{"ok":false,"summary":"bad"}`)}, false, "contradicts"},
		{Output{Exit: 0, Stdout: []byte(passed + "\nlater noise")}, false, "no result"},
		{Output{Exit: 0, Stdout: []byte(`{"ok":true}`)}, false, "no result"},
		{Output{Exit: 0, Stdout: []byte(`{"ok":true,"summary":"fine","extra":1}`)}, false, "no result"},
		{Output{Exit: 139}, false, "no result"},
		{Output{Exit: 127, Stderr: []byte("python3: not found")}, false, "cannot be started"},
		{Output{TimedOut: true, Stdout: []byte(passed)}, false, "did not end"},
	} {
		got := Check{Use: "pip-check"}.Judge(tc.out)
		if got.OK != tc.ok || !strings.Contains(got.Summary, tc.want) || got.OK != (len(got.Problems) == 0) {
			t.Errorf("%s, exit %d: %+v", tc.out.Stdout, tc.out.Exit, got)
		}
	}
}

func FuzzJudge(f *testing.F) {
	f.Add([]byte(`{"a":[{"b":1}]}`), "a.0.b", "1", "a+", 0)
	f.Add([]byte("torch 2.4.1+cu121"), "x", "", "", 3)
	f.Fuzz(func(t *testing.T, stdout []byte, path, value, match string, exit int) {
		e := Expect{JSON: map[string]string{path: value}, Match: match, Version: "~2.4"}
		if e.check() != nil {
			return
		}
		for _, c := range []Check{{Run: "x", Expect: e}, {Use: "x"}} {
			if r := c.Judge(Output{Stdout: stdout, Exit: exit}); r.OK != (len(r.Problems) == 0) {
				t.Errorf("%+v", r)
			}
		}
	})
}

// Every built-in has what help and documents show of it, and a time-out in bounds.
func TestBuiltins(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range Builtins() {
		if seen[b.Name] || !nameForm.MatchString(b.Name) || b.Doc == "" || b.Timeout > longest {
			t.Errorf("%+v", b)
		}
		seen[b.Name] = true
	}
}
