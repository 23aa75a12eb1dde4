package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/imgforge/imgforge/internal/version"
)

// check refuses expectations that no output could be held to.
func (e Expect) check() error {
	if _, err := regexp.Compile(e.Match); err != nil {
		return fmt.Errorf("match %q is no regular expression: %w", e.Match, err)
	}
	if e.Version != "" {
		if _, err := version.InRange("1.0.0", e.Version); err != nil {
			return fmt.Errorf("version: %w", err)
		}
	}
	return nil
}

// Judge says what came of a check that ran.
func (c Check) Judge(out Output) Result {
	if out.TimedOut {
		return failure("it did not end", Problem{Problem: fmt.Sprintf("killed after %s", c.Timeout), Meaning: lastLines(out),
			Do: []string{"if it is only slow here, give the check a longer timeout"}})
	}
	if c.Use != "" {
		return judgeBuiltin(out)
	}
	problems := c.Expect.misses(out)
	if len(problems) > 0 {
		if text := lastLines(out); text != "" {
			problems[len(problems)-1].Meaning = text
		}
		return failure(problems[0].Problem, problems...)
	}
	return Result{OK: true, Summary: firstLine(string(out.Stdout))}
}

func failure(summary string, problems ...Problem) Result {
	return Result{Summary: summary, Problems: problems}
}

// judgeBuiltin reads what a built-in's program says of itself. It is believed only
// where its exit code says the same.
func judgeBuiltin(out Output) Result {
	lines := bytes.Split(bytes.TrimSpace(out.Stdout), []byte("\n"))
	var r Result
	dec := json.NewDecoder(bytes.NewReader(lines[len(lines)-1]))
	dec.DisallowUnknownFields()
	err := dec.Decode(&r)
	switch {
	case err != nil && (out.Exit == 126 || out.Exit == 127): // as shells say it
		return failure("its program cannot be started", Problem{Problem: "the check's program cannot be started", Meaning: lastLines(out),
			Do: []string{"add the recipe python: built-in checks need python3 on PATH, and zsh's sh"}})
	case err != nil || r.Summary == "":
		return failure("it gave no result", Problem{Problem: fmt.Sprintf("the check's program ended with code %d and without a result", out.Exit), Meaning: lastLines(out)})
	case r.OK != (out.Exit == 0) || r.OK != (len(r.Problems) == 0):
		return failure("its result contradicts itself", Problem{Problem: fmt.Sprintf("ok is %t, the exit code %d, and it names %d problems", r.OK, out.Exit, len(r.Problems)), Meaning: lastLines(out)})
	}
	return r
}

// misses lists what an output lacks of the expectation.
func (e Expect) misses(out Output) []Problem {
	var bad []Problem
	miss := func(format string, args ...any) { bad = append(bad, Problem{Problem: fmt.Sprintf(format, args...)}) }
	text := strings.TrimSpace(string(out.Stdout))
	if out.Exit != e.Exit {
		miss("it ended with code %d, not %d", out.Exit, e.Exit)
	}
	if e.Stdout != nil && text != *e.Stdout {
		miss("it printed %s, not %q", short(text), *e.Stdout)
	}
	if e.Match != "" && !regexp.MustCompile(e.Match).MatchString(text) {
		miss("what it printed does not match %q: %s", e.Match, short(text))
	}
	if e.Version != "" {
		if why := missesVersion(text, e.Version); why != "" {
			miss("%s", why)
		}
	}
	if len(e.JSON) > 0 {
		var doc any
		dec := json.NewDecoder(strings.NewReader(text))
		dec.UseNumber()
		if err := dec.Decode(&doc); err != nil {
			miss("what it printed is not JSON: %s", short(text))
			return bad
		}
		for _, path := range slices.Sorted(maps.Keys(e.JSON)) {
			got, ok := at(doc, path)
			switch {
			case !ok:
				miss("its JSON has no %s", path)
			case got != e.JSON[path]:
				miss("%s is %q in its JSON, not %q", path, got, e.JSON[path])
			}
		}
	}
	return bad
}

var versionForm = regexp.MustCompile(`\d+(\.\d+)+`)

func missesVersion(text, want string) string {
	found := versionForm.FindString(text)
	if found == "" {
		return fmt.Sprintf("it printed no version: %s", short(text))
	}
	parts := strings.SplitN(found, ".", 4)
	ok, err := version.InRange(strings.Join(parts[:min(3, len(parts))], "."), want)
	if err != nil || !ok {
		return fmt.Sprintf("version %s is not inside %q", found, want)
	}
	return ""
}

// at is a value inside a JSON document, as text.
func at(doc any, path string) (string, bool) {
	for key := range strings.SplitSeq(path, ".") {
		switch v := doc.(type) {
		case map[string]any:
			next, ok := v[key]
			if !ok {
				return "", false
			}
			doc = next
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(v) {
				return "", false
			}
			doc = v[i]
		default:
			return "", false
		}
	}
	switch v := doc.(type) {
	case string:
		return v, true
	case json.Number, bool, nil:
		return fmt.Sprint(v), true
	}
	return "", false
}

// lastLines is the end of what was printed, errors before all else.
func lastLines(out Output) string {
	text := strings.TrimSpace(string(out.Stderr))
	if text == "" {
		text = strings.TrimSpace(string(out.Stdout))
	}
	lines := strings.Split(text, "\n")
	text = strings.Join(lines[max(0, len(lines)-5):], "\n")
	if out.Cut {
		text += "\n(what it printed was cut)"
	}
	return strings.TrimSpace(text)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if len(line) > 100 {
		line = strings.ToValidUTF8(line[:100], "") + "..."
	}
	return line
}

// short quotes what may be long.
func short(text string) string {
	if text == "" {
		return "nothing"
	}
	return strconv.Quote(firstLine(text))
}
