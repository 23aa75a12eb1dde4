package builder

// cleaner takes out of a step's output what would steer a terminal: escape
// sequences and control characters. Output comes in pieces that may be cut
// anywhere, so it remembers where it is.
type cleaner struct{ state cleanState }

type cleanState int

const (
	inText     cleanState = iota
	afterCR               // a return: a new line, unless one follows
	afterC2               // the first byte of a control character in UTF-8
	inEscape              // behind an escape
	inSequence            // behind escape [
	inString              // behind escape ] and the like
)

// clean returns what of a piece may be shown. Returns become new lines, so that
// nothing is written over.
func (c *cleaner) clean(piece []byte) []byte {
	out := make([]byte, 0, len(piece))
	for _, b := range piece {
		out = c.next(out, b)
	}
	return out
}

func (c *cleaner) next(out []byte, b byte) []byte {
	switch state := c.state; state {
	case inEscape:
		c.escape(b)
		return out
	case inSequence:
		if b >= 0x40 && b <= 0x7e {
			c.state = inText
		}
		return out
	case inString:
		switch b {
		case 0x07:
			c.state = inText
		case 0x1b:
			c.state = inEscape // the \ that follows ends both
		}
		return out
	case afterC2:
		c.state = inText
		if b < 0x80 || b > 0x9f {
			return append(out, 0xc2, b)
		}
		c.escape(b - 0x40) // the same as escape and this character
		return out
	case afterCR:
		c.state = inText
		out = append(out, '\n')
		if b == '\n' {
			return out
		}
	}
	switch {
	case b == '\n', b == '\t', b >= 0x20 && b != 0x7f && b != 0xc2:
		return append(out, b)
	case b == '\r':
		c.state = afterCR
	case b == 0xc2:
		c.state = afterC2
	case b == 0x1b:
		c.state = inEscape
	}
	return out
}

// escape takes the character behind an escape.
func (c *cleaner) escape(b byte) {
	switch {
	case b == '[':
		c.state = inSequence
	case b == ']', b == 'P', b == 'X', b == '^', b == '_':
		c.state = inString
	case b >= 0x20 && b <= 0x2f, b == 0x1b:
		c.state = inEscape
	default:
		c.state = inText
	}
}
