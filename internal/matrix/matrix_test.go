package matrix_test

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/matrix"
)

var update = flag.Bool("update", false, "rewrite golden files")

const testdata = "../../testdata"

// expand parses and expands, as every command does.
func expand(file string, data []byte) (*matrix.Expansion, error) {
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

// TestExpansions holds matrices to the cells they make: the shipped one, and those
// in testdata/ok.
func TestExpansions(t *testing.T) {
	files, err := filepath.Glob(testdata + "/ok/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no matrices: %v", err)
	}
	for _, file := range append(files, "../../matrix/universal.yaml") {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			made, err := expand(name, data)
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			for _, c := range made.Cells {
				show(&out, c)
			}
			for _, h := range made.Holes {
				fmt.Fprintf(&out, "hole %s\n    at %s\n    %s\n", h.Cell, h.Pos, strings.Join(h.Reasons, "\n    "))
			}
			golden(t, testdata+"/ok/"+strings.TrimSuffix(name, ".yaml")+".out", out.String())
			for range 25 {
				if again, err := expand(name, data); err != nil || !reflect.DeepEqual(again, made) {
					t.Fatal("the same matrix expanded differently")
				}
			}
		})
	}
}

// show prints all that a cell holds.
func show(w io.Writer, c matrix.Cell) {
	fmt.Fprintf(w, "%s cuda=%s torch=%s python=%s driver=%s base=%s", c.Tag, c.CUDA, c.Torch, c.Python,
		c.Driver, c.BaseName)
	if c.Platform != "linux/amd64" {
		fmt.Fprintf(w, " platform=%s", c.Platform)
	}
	switch b := c.Base; {
	case b.Debian != nil:
		fmt.Fprintf(w, " suite=%s%s", b.Debian.Suite, b.Debian.Components)
	case b.Rootfs != nil:
		fmt.Fprintf(w, " rootfs=%s sha256=%s", b.Rootfs.URL, b.Rootfs.SHA256)
	case b.Image != nil:
		fmt.Fprintf(w, " image=%s%s", b.Image.Ref, b.Image.Components)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Free)) {
		fmt.Fprintf(w, " %s=%s", name, c.Free[name])
	}
	fmt.Fprintf(w, "\n    from %s, recipes %s\n", c.Pos, c.Recipes)
	for _, warning := range c.Warnings {
		fmt.Fprintf(w, "    %s\n", warning)
	}
}

// A range is the newest patch of each minor line inside it, of what the tables know.
func TestRanges(t *testing.T) {
	const text = `version: 1
name: ranges
bases:
  debian12:
    debian: {suite: bookworm}
axes:
  cuda: [%s]
  torch: [%s]
  base: [debian12]
  python: [%s]
  driver: [%s]
holes: skip
recipes: [torch]
tag: "${torch}-cuda${cuda}-py${python}-driver${driver}"
`
	plain := []string{`"12.1"`, `"2.4.1"`, `"3.11"`, `">=535.54.03"`}
	values := []func(matrix.Cell) string{
		func(c matrix.Cell) string { return c.CUDA }, func(c matrix.Cell) string { return c.Torch },
		func(c matrix.Cell) string { return c.Python }, func(c matrix.Cell) string { return c.Driver },
	}
	for _, c := range []struct {
		axis int
		in   string
		want string
	}{
		{0, ">=11.8,<12.4", "11.8 12.1"},
		{0, "~12.1", "12.1"},
		{1, ">=2.1,<2.5", "2.1.2 2.2.2 2.3.1 2.4.1"},
		{1, "~2.3", "2.3.1"},
		{1, "2.3.x", "2.3.1"},
		{1, ">=2.3.0,<2.3.1", "2.3.0"},
		{1, "~2.2 || ~2.4", "2.2.2 2.4.1"},
		{2, "~3.11", "3.11"},
		{2, ">=3.11,<3.12", "3.11"},
		{3, "~535", "535.54.03"},
		{3, ">=525,<536", "525.60.13 530.30.02 535.54.03"},
	} {
		axes := slices.Clone(plain)
		axes[c.axis] = `"` + c.in + `"`
		made, err := expand("f.yaml", fmt.Appendf(nil, text, axes[0], axes[1], axes[2], axes[3]))
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		var got []string
		for _, cell := range made.Cells {
			got = append(got, values[c.axis](cell))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s is %q, want %q (holes %v)", c.in, got, c.want, made.Holes)
		}
	}
}

// Problems come out of maps in part; the order they are told in must not show it.
func TestProblemsInOneOrder(t *testing.T) {
	for _, name := range []string{"ten-mistakes.yaml", "expansion-mistakes.yaml"} {
		data, err := os.ReadFile(testdata + "/err/" + name)
		if err != nil {
			t.Fatal(err)
		}
		_, first := expand(name, data)
		for range 25 {
			if _, again := expand(name, data); first == nil || again == nil || again.Error() != first.Error() {
				t.Fatalf("%s was told differently:\n%v\n\n%v", name, first, again)
			}
		}
	}
}

// The bound holds before anything is made: this would be more cells than memory.
func TestTooManyCellsAtOnce(t *testing.T) {
	base, err := os.ReadFile(testdata + "/err/too-many-cells.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var axes strings.Builder
	for i := range 20 {
		fmt.Fprintf(&axes, "  more%d: [a, b, c, d, e, f, g, h, i, j]\n", i)
	}
	data := strings.Replace(string(base), "recipes:", axes.String()+"recipes:", 1)
	if _, err := expand("huge.yaml", []byte(data)); err == nil || !strings.Contains(err.Error(), "more than 100000 cells") {
		t.Errorf("got %v", err)
	}
}

func sample() matrix.Cell {
	return matrix.Cell{CUDA: "12.1", Torch: "2.3.1", Python: "3.11", Driver: "525.60.13", BaseName: "debian12",
		Platform: "linux/amd64", Tag: "2.3.1-cuda12.1", Free: map[string]string{"flavor": "slim"}}
}

func TestSelectorMatch(t *testing.T) {
	for text, want := range map[string]bool{
		"cuda=12.1": true, "cuda=11.8": false, "cuda=>=12": true, "cuda.major=12": true, "cuda.major=11": false,
		"torch=2.3.1": true, "torch=2.3": true, "torch=~2.3": true, "torch=~2.4": false, "torch.minor=3": true,
		"torch=>=2.1,<2.4": true, "torch=>=2.1,<2.3": false, "torch=>=2.1, <2.4, cuda=12.1": true, "torch=>=2.1,<2.4,cuda=11.8": false,
		"python=3.11": true, "python=3.1": false, "python=>=3.10": true,
		"driver=525": true, "driver=>=525": true, "driver=535": false, "driver=5": false, "driver.major=525": true,
		"driver=525.60.13": true, "driver=>=525.60.13": true, "driver=525.60.13.00": true, "driver=525.60": false, "driver=525.60.1": false,
		"base=debian12": true, "base=debian": false, "platform=linux/amd64": true, "platform=linux/arm64": false, "arch=amd64": true, "arch=arm64": false,
		"flavor=slim": true, "flavor=fat": false, "nothing=1": false,
		"tag=2.3.*": true, "tag=2.3.1-cuda12.1": true, "tag=2.4.*": false, "tag=*": true, " cuda = 12.1": true,
	} {
		s, err := matrix.ParseSelector(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := s.Match(sample()); got != want {
			t.Errorf("%s matches: %t, want %t", text, got, want)
		}
	}
}

func TestSelectorRefused(t *testing.T) {
	for text, want := range map[string]string{
		"": "write axis=value", "12.1": "does not begin with an axis", ">=2.1,torch=2.3": "does not begin with an axis",
		"cuda=": "has no value", "cuda=12.1,": "nothing stands between", "cuda=12.1,,torch=2.3": "nothing stands between",
		"torch=banana": "not a version or range", "driver=new": "not a driver floor", "driver=<525": "no other operator",
		"tag=[": "syntax error", "cuda=11.8,cuda=12.1": "cuda is given twice",
	} {
		if _, err := matrix.ParseSelector(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestSelectorCheck(t *testing.T) {
	cells := []matrix.Cell{sample()}
	for text, want := range map[string]string{
		"cuda=11.8,flavor=fat,tag=x": "", "torch.minor=3": "",
		"cudda=12.1": `did you mean "cuda"?`, "flavour=slim": "flavor",
	} {
		s, err := matrix.ParseSelector(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Check(cells); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestVar(t *testing.T) {
	for name, want := range map[string]string{
		"cuda": "12.1", "cuda.major": "12", "cuda.minor": "1", "torch": "2.3.1", "torch.major": "2", "torch.minor": "3",
		"python": "3.11", "driver": "525.60.13", "driver.major": "525", "base": "debian12", "platform": "linux/amd64", "flavor": "slim",
	} {
		if got, ok := sample().Var(name); !ok || got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if _, ok := sample().Var("nothing"); ok {
		t.Error("a variable that is not there was found")
	}
}

func FuzzParse(f *testing.F) {
	for _, dir := range []string{testdata + "/err/*.yaml", testdata + "/ok/*.yaml", "../../matrix/*.yaml"} {
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

// FuzzSelector: what is accepted can be matched, and nothing panics.
func FuzzSelector(f *testing.F) {
	for _, text := range []string{"cuda=12.1,torch=>=2.1,<2.4", "tag=2.*[", "driver=525", "=,=", "torch.minor=3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := matrix.ParseSelector(text)
		if err == nil {
			s.Match(sample())
		} else if s.Match(sample()) != new(matrix.Selector).Match(sample()) {
			t.Error("a refused selector is half filled")
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
