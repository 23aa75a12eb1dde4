package resolve

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"pault.ag/go/debian/control"
)

// release is a verified Release file.
type release struct {
	suite string // codename, such as bookworm-security
	date  time.Time
	hash  string             // "sha256:..." of the InRelease file
	files map[string]fileSum // by path below dists/<suite>/
}

// fileSum is what a Release file says of one file.
type fileSum struct {
	sha256 string // hex
	size   int64
}

// verifyRelease checks an InRelease file: a good signature of one of keys, the
// suite that was asked for, not past its Valid-Until.
func verifyRelease(data []byte, suite string, keys openpgp.EntityList, now time.Time) (*release, error) {
	text, err := verifyClearsigned(data, keys, now)
	if err != nil {
		return nil, err
	}
	r, err := parseRelease(text, now)
	if err != nil {
		return nil, fmt.Errorf("signed, but not a usable Release file: %w", err)
	}
	if r.suite != suite {
		return nil, fmt.Errorf("is the Release file of %q, not of %q", r.suite, suite)
	}
	sum := sha256.Sum256(data)
	r.hash = "sha256:" + hex.EncodeToString(sum[:])
	return r, nil
}

// verifyClearsigned returns the signed text. Anything around it is refused: no
// signature covers it.
func verifyClearsigned(data []byte, keys openpgp.EntityList, now time.Time) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte("-----BEGIN PGP SIGNED MESSAGE-----")) {
		return nil, errors.New("not a signed Release file (a web page of a proxy or portal?)")
	}
	block, rest := clearsign.Decode(data)
	if block == nil {
		return nil, errors.New("the signed Release file is damaged")
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("text after the signature")
	}
	sigs, err := io.ReadAll(block.ArmoredSignature.Body)
	if err != nil {
		return nil, fmt.Errorf("the signature is damaged: %w", err)
	}
	config := &packet.Config{Time: func() time.Time { return now }}
	_, err = openpgp.CheckDetachedSignature(keys, bytes.NewReader(block.Bytes), bytes.NewReader(sigs), config)
	signers := strings.Join(issuers(sigs), ", ")
	switch {
	case errors.Is(err, pgperrors.ErrUnknownIssuer):
		return nil, fmt.Errorf("signed by %s, none of which is a known archive key (%s)", cmp.Or(signers, "nobody"), fingerprints(keys))
	case err != nil:
		return nil, fmt.Errorf("bad signature by %s: %w", cmp.Or(signers, "nobody"), err)
	}
	return block.Plaintext, nil
}

// issuers names the keys that made the signatures, known or not.
func issuers(sigs []byte) []string {
	var out []string
	for packets := packet.NewReader(bytes.NewReader(sigs)); ; {
		p, err := packets.Next()
		if err != nil {
			return out
		}
		sig, ok := p.(*packet.Signature)
		switch {
		case !ok:
		case sig.IssuerFingerprint != nil:
			out = append(out, strings.ToUpper(hex.EncodeToString(sig.IssuerFingerprint)))
		case sig.IssuerKeyId != nil:
			out = append(out, fmt.Sprintf("%016X", *sig.IssuerKeyId))
		}
	}
}

func fingerprints(keys openpgp.EntityList) string {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = strings.ToUpper(hex.EncodeToString(k.PrimaryKey.Fingerprint))
	}
	return strings.Join(out, ", ")
}

var sha256Hex = regexp.MustCompile(`^[0-9a-f]{64}$`)

func parseRelease(text []byte, now time.Time) (*release, error) {
	reader, err := control.NewParagraphReader(bytes.NewReader(text), nil)
	if err != nil {
		return nil, err
	}
	para, err := reader.Next()
	if err != nil {
		return nil, fmt.Errorf("no fields: %w", err)
	}
	r := &release{suite: para.Values["Codename"], files: map[string]fileSum{}}
	if para.Values["Origin"] == "Ubuntu" { // jammy-updates has the code name jammy
		r.suite = para.Values["Suite"]
	}
	if r.date, err = releaseTime(para.Values["Date"]); err != nil {
		return nil, fmt.Errorf("date %q: %w", para.Values["Date"], err)
	}
	if until := para.Values["Valid-Until"]; until != "" {
		end, err := releaseTime(until)
		if err != nil {
			return nil, fmt.Errorf("valid-until %q: %w", until, err)
		}
		if now.After(end) {
			return nil, fmt.Errorf("it expired on %s: the mirror is stale, or this machine's clock is wrong", end.Format(time.RFC3339))
		}
	}
	for line := range strings.Lines(para.Values["SHA256"]) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if len(fields) != 3 || !sha256Hex.MatchString(fields[0]) {
			return nil, fmt.Errorf("SHA256 line %q is not `hash size path`", strings.TrimSpace(line))
		}
		size, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil || size < 0 {
			return nil, fmt.Errorf("SHA256 line %q: bad size", strings.TrimSpace(line))
		}
		r.files[fields[2]] = fileSum{sha256: fields[0], size: size}
	}
	return r, nil
}

// releaseTime reads a date as Release files write it, always in UTC.
func releaseTime(s string) (time.Time, error) {
	return time.Parse("Mon, 2 Jan 2006 15:04:05 MST", s)
}
