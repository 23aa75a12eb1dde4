package yamlpos

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/imgforge/imgforge/internal/diag"
)

// Document parses data, which must hold exactly one document, into its top node;
// nil when there is none to use, and what is wrong is noted. kind is what a file
// holds (matrix), help what to do about an empty one.
func (r *Reader) Document(data []byte, kind, help string) *yaml.Node {
	var doc, second yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	err := dec.Decode(&doc)
	if err == io.EOF || err == nil && len(doc.Content) == 0 {
		r.Bad.Add(r.Start(), help, "the file is empty")
		return nil
	}
	if err == nil {
		if err = dec.Decode(&second); err == nil {
			r.Fail(&second, "one file holds one "+kind+"; move it to a file of its own", "a second YAML document begins here")
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		at, text := r.syntax(err, data)
		r.Bad.Add(at, "", "not YAML: %s", text)
		return nil
	}
	if !r.finite(doc.Content[0], map[*yaml.Node]int{}) {
		return nil
	}
	return doc.Content[0]
}

var (
	errLine   = regexp.MustCompile(`^line (\d+): `)
	errAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
	// parserErr are the errors whose line yaml.v3 counts from 0; others it counts from 1.
	parserErr = regexp.MustCompile(`^(did not find expected (<|node content|'-' indicator|key|',' or)|found (undefined|duplicate|incompatible) )`)
)

// syntax tells where and what an error of the yaml library is about.
func (r *Reader) syntax(err error, data []byte) (diag.Pos, string) {
	at, text := diag.Pos{File: r.File, Line: 1}, strings.TrimPrefix(err.Error(), "yaml: ")
	if m := errLine.FindStringSubmatch(text); m != nil {
		at.Line, _ = strconv.Atoi(m[1])
		if text = text[len(m[0]):]; parserErr.MatchString(text) {
			at.Line++
		}
		last := bytes.Count(bytes.TrimRight(data, "\n"), []byte("\n")) + 1
		at.Line = min(at.Line, last)
	}
	if m := errAnchor.FindStringSubmatch(text); m != nil {
		if before, _, found := strings.Cut(string(data), "*"+m[1]); found {
			line := before[strings.LastIndexByte(before, '\n')+1:]
			at.Line, at.Col = strings.Count(before, "\n")+1, utf8.RuneCountInString(line)+1
		}
	}
	return at, text
}

// maxNodes bounds what aliases may expand to.
const maxNodes = 1 << 20

// inside marks a node whose nodes are being counted.
const inside = -1

// finite counts nodes as if every alias were written out, into sizes, and notes
// the first alias that makes them endless or too many.
func (r *Reader) finite(n *yaml.Node, sizes map[*yaml.Node]int) bool {
	target := Deref(n)
	switch size, counted := sizes[target]; {
	case size == inside:
		r.Fail(n, "write the values out", "the alias *%s stands inside what it stands for", n.Value)
		return false
	case counted:
		return true
	}
	sizes[target] = inside
	total := 1
	for _, c := range target.Content {
		if !r.finite(c, sizes) {
			return false
		}
		if total += sizes[Deref(c)]; total > maxNodes {
			r.Fail(c, "write the values out", "the aliases up to here expand to more than %d values", maxNodes)
			return false
		}
	}
	sizes[target] = total
	return true
}

// Deref follows an alias to what it stands for.
func Deref(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}
