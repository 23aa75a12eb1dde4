package lock

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/golden"
)

// Every mistake is told with its place, the line it is on, and what to do.
func TestErrors(t *testing.T) {
	files, err := filepath.Glob("testdata/err/*.lock")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".lock"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Parse(filepath.Base(file), data)
			if err == nil {
				t.Fatal("accepted")
			}
			for line := range strings.Lines(err.Error()) {
				if !strings.HasPrefix(line, filepath.Base(file)+":") || !strings.Contains(line, "imgforge") || !strings.Contains(line, "; ") {
					t.Errorf("no place or no cure in %q", line)
				}
			}
			var got bytes.Buffer
			diag.Print(&got, err, func(string) ([]byte, error) { return data, nil })
			golden.Check(t, strings.TrimSuffix(file, ".lock")+".out", got.String())
		})
	}
}

const (
	oldEpoch = "epoch source-date-epoch 999999999 - -\n"
	newEpoch = "epoch source-date-epoch 1735689600 - -\n"
)

// A conflict is settled by taking both sides, whatever their order, and of two
// dates the later.
func TestMend(t *testing.T) {
	mine, theirs := "pick wheels/x-1 a.whl - -\n"+oldEpoch+"recipe zsh - - "+tree+"\n", "pick wheels/x-2 a.whl - -\n"+newEpoch+"recipe zsh - - "+tree2+"\n"
	common := "wheel a.whl pypi:a==1 5 " + hexA + "\n"
	for name, text := range map[string]string{
		"two sides":   header + "\n<<<<<<< HEAD\n" + mine + "=======\n" + theirs + ">>>>>>> topic\n" + common,
		"swapped":     header + "\n<<<<<<< HEAD\n" + theirs + "=======\n" + mine + ">>>>>>> topic\n" + common,
		"three parts": header + "\n<<<<<<< HEAD\n" + mine + "||||||| 123\npick wheels/x-0 gone.whl - -\n=======\n" + theirs + ">>>>>>> topic\n" + common,
		"union":       header + "\n" + mine + theirs + common + common,
	} {
		got, err := Mend("x.lock", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		out := string(got.Format())
		if got.Epoch() != 1735689600 || strings.Contains(out, "gone.whl") || strings.Count(out, "recipe zsh") != 1 ||
			strings.Count(out, "pick wheels/") != 2 || strings.Count(out, "wheel a.whl") != 1 {
			t.Errorf("%s gives\n%s", name, out)
		}
		if _, err := Parse("x.lock", got.Format()); err != nil {
			t.Errorf("%s: what was mended is no lock: %v", name, err)
		}
	}
}

// Nobody can choose between two hashes of one file.
func TestMendRefuses(t *testing.T) {
	_, err := Mend("x.lock", []byte(header+"\nwheel a.whl pypi:a==1 5 "+hexA+"\nwheel a.whl pypi:a==1 5 "+hexB+"\n"))
	if err == nil || !strings.HasPrefix(err.Error(), "x.lock:3:1: wheel a.whl is on line 2 with another hash; ") {
		t.Errorf("got %v", err)
	}
}
