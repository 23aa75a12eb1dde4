package matrix_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/matrix"
)

var update = flag.Bool("update", false, "rewrite golden files")

const testdata = "../../testdata"

// expand parses and expands, as every command does.
func expand(file string, data []byte) ([]matrix.Cell, error) {
	m, err := matrix.Parse(file, data)
	if err != nil {
		return nil, err
	}
	return m.Expand()
}

func TestErrorGoldens(t *testing.T) {
	files, err := filepath.Glob(testdata + "/err/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("found %d broken matrices: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name := filepath.Base(file)
			_, err = expand(name, data)
			if err == nil {
				t.Fatal("a broken matrix was accepted")
			}
			var out strings.Builder
			diag.Print(&out, err, func(string) ([]byte, error) { return data, nil })
			golden(t, strings.TrimSuffix(file, ".yaml")+".out", out.String())
		})
	}
}

// The issue's own measure: ten mistakes, ten positions, one run.
func TestTenMistakesAtOnce(t *testing.T) {
	data, err := os.ReadFile(testdata + "/err/ten-mistakes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, err = expand("ten-mistakes.yaml", data)
	problems, ok := err.(diag.List)
	if !ok || len(problems) != 10 {
		t.Fatalf("want ten problems, got %d:\n%v", len(problems), err)
	}
	lines := map[int]bool{}
	for _, p := range problems {
		if p.Pos.Line == 0 || p.Pos.Col == 0 {
			t.Errorf("no position: %v", p)
		}
		lines[p.Pos.Line] = true
	}
	if len(lines) != 10 {
		t.Errorf("the ten problems stand on only %d lines", len(lines))
	}
}

func TestShippedMatrix(t *testing.T) {
	data, err := os.ReadFile("../../matrix/universal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cells, err := expand("universal.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, c := range cells {
		fmt.Fprintf(&out, "%s cuda=%s torch=%s python=%s driver>=%s base=%s recipes=%d\n", c.Tag, c.CUDA, c.Torch, c.Python, c.Driver, c.BaseName, len(c.Recipes))
		for _, w := range c.Warnings {
			fmt.Fprintf(&out, "    %s\n", w)
		}
	}
	golden(t, testdata+"/ok/universal.out", out.String())
	for range 25 {
		again, err := expand("universal.yaml", data)
		if err != nil || !reflect.DeepEqual(again, cells) {
			t.Fatal("the same matrix expanded differently")
		}
	}
}

func TestSelector(t *testing.T) {
	c := matrix.Cell{CUDA: "12.1", Torch: "2.3.1", Python: "3.11", Driver: "525.60.13", BaseName: "debian12", Tag: "2.3.1-cuda12.1", Free: map[string]string{"flavor": "slim"}}
	tests := map[string]bool{
		"cuda=12.1": true, "cuda=11.8": false, "torch=~2.3": true, "torch=2.3.1": true, "torch=~2.4": false,
		"torch=>=2.1,<2.4": true, "torch=>=2.1,<2.3": false, "torch=>=2.1,<2.4,cuda=12.1": true,
		"driver=525": true, "driver=525.60.13": true, "driver=>=525.60.13": true, "driver=535": false,
		"flavor=slim": true, "flavor=fat": false, "unknown=1": false, "tag=2.3.*": true, "tag=2.4.*": false, "base=debian12": true,
		"torch=2.3": true, "python=3.11": true,
	}
	for text, want := range tests {
		s, err := matrix.ParseSelector(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := s.Match(c); got != want {
			t.Errorf("%s matches: %t, want %t", text, got, want)
		}
	}
	for _, text := range []string{"", "12.1", "cuda=", "torch=banana", "tag=["} {
		if _, err := matrix.ParseSelector(text); err == nil {
			t.Errorf("selector %q was accepted", text)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, dir := range []string{testdata + "/err/*.yaml", "../../matrix/*.yaml"} {
		files, _ := filepath.Glob(dir)
		for _, file := range files {
			data, _ := os.ReadFile(file)
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := expand("fuzz.yaml", data)
		problems, ok := err.(diag.List)
		if err != nil && !ok {
			t.Fatalf("an error without positions: %v", err)
		}
		for _, p := range problems {
			if p.Pos.File != "fuzz.yaml" || p.Pos.Line < 1 {
				t.Fatalf("a problem without a place: %v", p)
			}
		}
	})
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update rewrites it); got:\n%s", file, got)
	}
}
