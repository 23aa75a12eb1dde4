package resolve

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"github.com/imgforge/imgforge/internal/compat"
)

var today = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// newKey makes a signing key, valid from a day before today; lifetime in
// seconds, 0 for ever.
func newKey(t testing.TB, name string, lifetime uint32) *openpgp.Entity {
	t.Helper()
	key, err := openpgp.NewEntity(name, "", name+"@example.org", &packet.Config{
		Algorithm:       packet.PubKeyAlgoEdDSA,
		KeyLifetimeSecs: lifetime,
		Time:            func() time.Time { return today.Add(-24 * time.Hour) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sign makes an InRelease file.
func sign(t testing.TB, text string, keys ...*openpgp.Entity) []byte {
	t.Helper()
	var private []*packet.PrivateKey
	for _, k := range keys {
		private = append(private, k.PrivateKey)
	}
	var b bytes.Buffer
	w, err := clearsign.EncodeMulti(&b, private, &packet.Config{Time: func() time.Time { return today.Add(-12 * time.Hour) }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const someHash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

const releaseText = `Origin: Debian
Codename: bookworm
Date: Sat, 28 Nov 2026 14:09:31 UTC
Valid-Until: Sat, 05 Dec 2026 14:09:31 UTC
MD5Sum:
 00000000000000000000000000000000 12 main/binary-amd64/Packages.xz
SHA256:
 ` + someHash + ` 1234 main/binary-amd64/Packages.xz
`

func TestVerifyRelease(t *testing.T) {
	ours, other := newKey(t, "ours", 0), newKey(t, "other", 0)
	for name, data := range map[string][]byte{
		"one signature":             sign(t, releaseText, ours),
		"an unknown one beside it":  sign(t, releaseText, other, ours),
		"an unknown one behind it":  sign(t, releaseText, ours, other),
		"lines ending as in e-mail": bytes.ReplaceAll(sign(t, releaseText, ours), []byte("\n"), []byte("\r\n")),
	} {
		r, err := verifyRelease(data, "bookworm", openpgp.EntityList{ours}, today)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := r.files["main/binary-amd64/Packages.xz"]; got != (fileSum{someHash, 1234}) || len(r.files) != 1 {
			t.Errorf("%s: files %v", name, r.files)
		}
		if !r.date.Equal(time.Date(2026, 11, 28, 14, 9, 31, 0, time.UTC)) || !strings.HasPrefix(r.hash, "sha256:") {
			t.Errorf("%s: date %v, hash %q", name, r.date, r.hash)
		}
	}
}

// NVIDIA/cuda-repo-management#1: an archive that signs with another key is an error that names it.
func TestVerifyReleaseRefuses(t *testing.T) {
	ours, other, brief := newKey(t, "ours", 0), newKey(t, "other", 0), newKey(t, "brief", 3600)
	known := openpgp.EntityList{ours, brief}
	good := sign(t, releaseText, ours)
	edit := func(old, new string) []byte { return sign(t, strings.Replace(releaseText, old, new, 1), ours) }
	otherID := strings.ToUpper(other.PrimaryKey.KeyIdString())
	for _, tc := range []struct {
		name string
		data []byte
		want string
	}{
		{"tampered text", bytes.Replace(good, []byte("1234"), []byte("9234"), 1), "bad signature by "},
		{"unknown key", sign(t, releaseText, other), "signed by "},
		{"unknown key is named", sign(t, releaseText, other), otherID},
		{"expired key", sign(t, releaseText, brief), "expired"},
		{"expired file", edit("05 Dec 2026", "29 Nov 2026"), "it expired on 2026-11-29T14:09:31Z"},
		{"another suite", edit("Codename: bookworm", "Codename: trixie"), `is the Release file of "trixie", not of "bookworm"`},
		{"no date", edit("Date: Sat", "Dote: Sat"), `date ""`},
		{"bad date", edit("Sat, 28 Nov 2026 14:09:31 UTC\nV", "yesterday\nV"), `date "yesterday"`},
		{"bad hash", edit(someHash, "0123"), "is not `hash size path`"},
		{"bad size", edit("1234 main", "-4 main"), "bad size"},
		{"not signed", []byte(releaseText), "not a signed Release file"},
		{"a web page", []byte("<html>log in to the hotel</html>"), "not a signed Release file"},
		{"empty", nil, "not a signed Release file"},
		{"cut short", good[:len(good)/2], "the signed Release file is damaged"},
		{"more behind it", append(bytes.Clone(good), "\nSHA256: evil"...), "text after the signature"},
		{"signature removed", append(bytes.Clone(good[:bytes.Index(good, []byte("-----BEGIN PGP SIGNATURE"))]), emptySignature...), "signed by nobody"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := verifyRelease(tc.data, "bookworm", known, today)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

const emptySignature = "-----BEGIN PGP SIGNATURE-----\n\n=twTO\n-----END PGP SIGNATURE-----\n"

// The embedded keys are those the README names, each by its fingerprint, and
// still good at the time the lock is made.
func TestKeyrings(t *testing.T) {
	readme, err := os.ReadFile("keyrings/README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, suite := range suites() {
		keys, err := keyring(suite)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range keys {
			rows++
			row := suite + ".asc | "
			fpr := fingerprints(openpgp.EntityList{k})
			if !strings.Contains(string(readme), row) || !strings.Contains(string(readme), " | "+fpr+" |\n") {
				t.Errorf("%s: key %s is not in the README", suite, fpr)
			}
		}
		want := 3
		if slices.Contains(compat.Suites("ubuntu"), suite) {
			want = 1 // Ubuntu signs all with one
		}
		if len(keys) != want {
			t.Errorf("%s has %d keys", suite, len(keys))
		}
	}
	if rows != strings.Count(string(readme), ".asc |") {
		t.Errorf("%d keys, %d rows in the README", rows, strings.Count(string(readme), ".asc |"))
	}
	if _, err := keyring("potato"); err == nil || !strings.Contains(err.Error(), `suite "potato"; known suites: bookworm, bullseye, focal, jammy, noble, trixie`) {
		t.Errorf("got %v", err)
	}
}

func FuzzVerifyRelease(f *testing.F) {
	key := newKey(f, "ours", 0)
	f.Add(sign(f, releaseText, key))
	f.Add([]byte(releaseText))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := verifyRelease(data, "bookworm", openpgp.EntityList{key}, today)
		if err == nil && r.date.IsZero() {
			t.Error("verified, yet without a date")
		}
	})
}

func FuzzParseRelease(f *testing.F) {
	f.Add([]byte(releaseText))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parseRelease(data, today)
		if err != nil {
			return
		}
		for _, s := range r.files {
			if !sha256Hex.MatchString(s.sha256) || s.size < 0 {
				t.Errorf("took %v", s)
			}
		}
	})
}
