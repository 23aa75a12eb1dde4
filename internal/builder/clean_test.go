package builder

import (
	"strings"
	"testing"
)

func TestClean(t *testing.T) {
	tests := map[string]string{
		"plain\ttext\n":                            "plain\ttext\n",
		"\x1b[31mred\x1b[0m":                       "red",
		"\x1b[2J\x1b[1;1Hgone":                     "gone",
		"\x1b]0;title\x07after":                    "after",
		"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\": "link",
		"\x1bP1$r\x1b\\text":                       "text",
		"\x1b(Btext":                               "text",
		"\x1bcreset":                               "reset",
		"10%\r50%\r100%\r\n":                       "10%\n50%\n100%\n",
		"bell\x07 back\b null\x00 del\x7f":         "bell back null del",
		"\xc2\x9b31mred":                           "red",
		"\xc2\x9dtitle\x07x":                       "x",
		"90\u00b0 \u4e2d\u6587 \u00e9":             "90\u00b0 \u4e2d\u6587 \u00e9",
		"\x1b\x1b[1mtwice":                         "twice",
	}
	for in, want := range tests {
		var whole, pieces cleaner
		if got := string(whole.clean([]byte(in))); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
		var b strings.Builder
		for i := range len(in) {
			b.Write(pieces.clean([]byte{in[i]}))
		}
		if b.String() != want {
			t.Errorf("%q byte by byte: %q, want %q", in, b.String(), want)
		}
	}
}
