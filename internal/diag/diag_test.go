package diag

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
)

func TestPosString(t *testing.T) {
	for want, pos := range map[string]Pos{
		"":            {},
		"m.yaml":      {File: "m.yaml"},
		"m.yaml:3":    {File: "m.yaml", Line: 3},
		"m.yaml:3:14": {File: "m.yaml", Line: 3, Col: 14},
	} {
		if got := pos.String(); got != want {
			t.Errorf("%#v prints %q, not %q", pos, got, want)
		}
	}
}

func TestProblemError(t *testing.T) {
	at := Pos{File: "m.yaml", Line: 3, Col: 1}
	for want, p := range map[string]Problem{
		"m.yaml:3:1: unknown axis; allowed: cuda": {Pos: at, What: "unknown axis", Help: "allowed: cuda"},
		"m.yaml:3:1: unknown axis":                {Pos: at, What: "unknown axis"},
		"no cell is left":                         {What: "no cell is left"},
	} {
		if got := p.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestPrint(t *testing.T) {
	files := map[string]string{
		"plain":   "one\ntwo three\n",
		"tabs":    "\tkey:\tvalue\n",
		"windows": "one\r\ntwo\r\n",
		"wide":    "名字: 你好\n",
		"bare":    "no newline at the end",
	}
	cases := []struct{ name, file, want string }{
		{"caret under the column", "plain:2:5", "    2 | two three\n      |     ^\n"},
		{"no column, no caret", "plain:2:0", "    2 | two three\n"},
		{"no line, no excerpt", "plain:0:0", ""},
		{"just after the line", "plain:1:4", "    1 | one\n      |    ^\n"},
		{"past the end of the line", "plain:1:9", "    1 | one\n"},
		{"end of the file", "plain:3:1", "    3 | \n      | ^\n"},
		{"past the end of the file", "plain:9:1", ""},
		{"a tab is one column", "tabs:1:7", "    1 |  key: value\n      |       ^\n"},
		{"no carriage return", "windows:2:1", "    2 | two\n      | ^\n"},
		{"columns count characters", "wide:1:6", "    1 | 名字: 你好\n      |      ^\n"},
		{"past the end in characters", "wide:1:9", "    1 | 名字: 你好\n"},
		{"no last newline", "bare:1:4", "    1 | no newline at the end\n      |    ^\n"},
		{"a file that cannot be read", "gone:1:1", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var pos Pos
			parts := strings.Split(c.file, ":")
			pos.File = parts[0]
			fmt.Sscan(parts[1], &pos.Line)
			fmt.Sscan(parts[2], &pos.Col)
			var out strings.Builder
			Print(&out, &Problem{Pos: pos, What: "it is wrong"}, func(name string) ([]byte, error) {
				if data, ok := files[name]; ok {
					return []byte(data), nil
				}
				return nil, fs.ErrNotExist
			})
			if want := pos.String() + ": it is wrong\n" + c.want; out.String() != want {
				t.Errorf("printed\n%swant\n%s", out.String(), want)
			}
		})
	}
}

func TestPrintKinds(t *testing.T) {
	two := List{{What: "first", Pos: Pos{File: "a", Line: 1, Col: 1}}, {What: "second"}}
	for want, err := range map[string]error{
		"plain\n":                   errors.New("plain"),
		"second\n":                  fmt.Errorf("wrapped: %w", two[1]),
		"a:1:1: first\nsecond\n":    fmt.Errorf("wrapped: %w", two),
		"a:1:1: first\n    1 | x\n": List{two[0]},
	} {
		read := func(string) ([]byte, error) { return []byte("x"), nil }
		if !strings.Contains(want, "|") {
			read = nil // Print must not need it
		}
		var out strings.Builder
		Print(&out, err, read)
		if got := strings.ReplaceAll(out.String(), "      | ^\n", ""); got != want {
			t.Errorf("%v prints %q, want %q", err, got, want)
		}
	}
}

// Lists are gathered from maps, so any order must give the same text.
func TestSorted(t *testing.T) {
	in := List{
		{Pos: Pos{"a", 2, 1}, What: "x"},
		{Pos: Pos{"a", 10, 1}, What: "x"},
		{Pos: Pos{"a", 2, 10}, What: "x"},
		{Pos: Pos{"a", 2, 9}, What: "y"},
		{Pos: Pos{"a", 2, 9}, What: "x", Help: "2"},
		{Pos: Pos{"a", 2, 9}, What: "x", Help: "1"},
		{Pos: Pos{"a", 2, 9}, What: "x", Help: "2"},
		{Pos: Pos{"b", 1, 1}, What: "x"},
		{Pos: Pos{"a", 2, 1}, What: "x"},
	}
	want := "a:2:1: x\na:2:9: x; 1\na:2:9: x; 2\na:2:9: y\na:2:10: x\na:10:1: x\nb:1:1: x"
	for range len(in) {
		before := slices.Clone(in)
		if got := in.Err().Error(); got != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
		if !slices.Equal(in, before) {
			t.Fatal("sorting changed the list itself")
		}
		in = append(in[1:], in[0])
	}
}

func TestErrOfNothing(t *testing.T) {
	var l List
	if err := l.Err(); err != nil {
		t.Errorf("an empty list is the error %v", err)
	}
	l.AddErr(Pos{}, nil)
	if len(l) != 0 {
		t.Error("no error was added as one")
	}
}

func TestAddErr(t *testing.T) {
	inner := List{{Pos: Pos{"a", 1, 1}, What: "one"}, {Pos: Pos{"a", 2, 1}, What: "two"}}
	at := Pos{"b", 9, 9}
	for want, err := range map[string]error{
		"a:1:1: one\na:2:1: two": fmt.Errorf("wrapped: %w", inner),
		"a:1:1: one":             inner[0],
		"b:9:9: 100% plain":      errors.New("100% plain"),
	} {
		var l List
		l.AddErr(at, err)
		if got := l.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"base-tools", "zsh", "jupyter", "python", "python-science", "cuda"}
	for got, want := range map[string]string{
		"zhs":           "zsh",
		"jupiter":       "jupyter",
		"pyton":         "python",
		"python-sience": "python-science",
		"base_tools":    "base-tools",
		"cuda":          "cuda",
		"kubernetes":    "",
		"":              "",
		"x":             "", // one letter away from nothing
		"ab":            "",
	} {
		if near := Nearest(got, names); near != want {
			t.Errorf("nearest to %q is %q, want %q", got, near, want)
		}
	}
	if near := Nearest("cu", []string{"ab"}); near != "" {
		t.Errorf("%q shares no letter with cu", near)
	}
	if near := Nearest("zsh", nil); near != "" {
		t.Errorf("nearest of nothing is %q", near)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"same", "same", 0}} {
		if got := distance(c.a, c.b); got != c.want || distance(c.b, c.a) != c.want {
			t.Errorf("distance of %q and %q is %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
