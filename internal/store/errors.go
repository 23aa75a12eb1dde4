package store

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"

	"github.com/imgforge/imgforge/internal/plan"
)

// FetchError says of each file that no mirror gave what each mirror answered.
type FetchError struct{ Files []FileFailure }

// FileFailure is one file that no mirror gave.
type FileFailure struct {
	Blob     plan.Blob
	Attempts []Attempt
}

// Attempt is what came of one mirror for one file. URL has no credentials; it is
// empty when the mirror was not asked.
type Attempt struct{ Mirror, URL, Reason string }

// Error names each file, and each mirror with its reason. Files that failed for
// the same reasons share them; the addresses are then those of the first.
func (e *FetchError) Error() string {
	var b strings.Builder
	plural := "s"
	if len(e.Files) == 1 {
		plural = ""
	}
	fmt.Fprintf(&b, "no mirror gave %d file%s:", len(e.Files), plural)
	for _, group := range e.groups() {
		for _, f := range group {
			fmt.Fprintf(&b, "\n  %s (%s)", f.Blob.Name, f.Blob.Origin)
		}
		for _, a := range group[0].Attempts {
			fmt.Fprintf(&b, "\n    %s: %s", a.Mirror, a.Reason)
			if a.URL != "" {
				fmt.Fprintf(&b, ": %s", a.URL)
			}
		}
	}
	isDeb := func(f FileFailure) bool { return strings.HasSuffix(f.Blob.Name, ".deb") }
	if slices.ContainsFunc(e.Files, isDeb) {
		b.WriteString("\nPoint releases and security updates remove old .debs from mirrors; `imgforge lock --upgrade` refreshes the lock.")
	}
	if i := slices.IndexFunc(e.Files, func(f FileFailure) bool { return strings.HasPrefix(f.Blob.Origin, "image:") }); i >= 0 {
		fmt.Fprintf(&b, "\nThe lock holds %s by digest. Where its registry has removed that, only a kept copy has it (`imgforge vendor`); else choose another base and run `imgforge lock`.",
			strings.TrimPrefix(e.Files[i].Blob.Origin, "image:"))
	}
	return b.String()
}

// groups are the files by what went wrong, in the order of each one's first file.
func (e *FetchError) groups() [][]FileFailure {
	var out [][]FileFailure
	place := map[string]int{}
	for _, f := range e.Files {
		var key strings.Builder
		for _, a := range f.Attempts {
			key.WriteString(a.Mirror + "\x00" + a.Reason + "\x00")
		}
		i, known := place[key.String()]
		if !known {
			i = len(out)
			place[key.String()] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], f)
	}
	return out
}

// SizeError is a file of the right sha256 whose size the lock has wrong.
type SizeError struct {
	Blob plan.Blob
	Size int64 // bytes, in truth
}

// Error names the file and both sizes.
func (e *SizeError) Error() string {
	return fmt.Sprintf("%s (%s) is %d bytes long, not %d as the lock says; correct that line, or lock the file anew", e.Blob.Name, e.Blob.Origin, e.Size, e.Blob.Size)
}

// SpaceError is a store whose disk is full, or whose quota is used up.
type SpaceError struct {
	Dir  string // of the store
	File string // that was being written
	Need int64  // bytes that file still takes; 0 when unknown
	All  int64  // bytes that all files of the fetch still take, as far as known
	err  error
}

// Error names the directory and how much it needs.
func (e *SpaceError) Error() string {
	need := ""
	var errno syscall.Errno
	errors.As(e.err, &errno)
	if e.All > 0 {
		need = fmt.Sprintf(": %s needs %s more, all that is to come %s", e.File, megabytes(e.Need), megabytes(e.All))
	}
	return fmt.Sprintf("no space for the store in %s%s; free some there, or name another directory with --state; what is there is kept and gone on from (%v)", e.Dir, need, errno)
}

func (e *SpaceError) Unwrap() error { return e.err }

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// effect is what a failure means for what is tried next.
type effect int

const (
	next  effect = iota // this mirror does not have this file
	retry               // the same again may well work
	slow                // next mirror, and trust this one less
	down                // this host will not work in this run
)

// failure is one failed exchange with a mirror.
type failure struct {
	effect effect
	reason string
	url    string // without credentials
	status int    // that was answered; 0 for none
	wait   string // of Retry-After

	gained  bool   // a good piece of the file came before it
	lasting bool   // host will not work in this run, if repeating does not help
	host    string // that failed
}

func (f *failure) Error() string { return f.reason }

var errStall = errors.New("stalled")

// classifyNet turns an error of the network into a failure.
func classifyNet(err error) *failure {
	var fail *failure
	if errors.As(err, &fail) {
		return fail
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) { // its text holds the URL, with the user's name
		err = wrapped.Err
	}
	var op *net.OpError
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && !dns.IsNotFound:
		return &failure{effect: retry, lasting: true, reason: "cannot look up " + dns.Name + ": " + dns.Err}
	case errors.As(err, &dns):
		return &failure{effect: down, reason: "host name not found: " + dns.Name}
	case isUntrusted(err):
		return &failure{effect: down, reason: "TLS: " + short(err) + " (where a company's proxy signs certificates, name a file with its own in SSL_CERT_FILE)"}
	case isTLS(err):
		return &failure{effect: down, reason: "TLS: " + err.Error()}
	case strings.Contains(err.Error(), http.StatusText(http.StatusProxyAuthRequired)):
		return &failure{effect: down, reason: "the proxy wants another name and password; they go into https_proxy, as in http://NAME:PASSWORD@HOST:PORT"}
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return &failure{effect: down, reason: "the proxy: " + short(op.Err)}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &failure{effect: down, reason: "connection refused"}
	case errors.As(err, &op) && op.Op == "dial" && op.Timeout():
		return &failure{effect: retry, lasting: true, reason: "cannot connect: timed out"}
	case errors.As(err, &op) && op.Op == "dial":
		return &failure{effect: down, reason: "cannot connect: " + short(op.Err)}
	case errors.Is(err, syscall.ECONNRESET):
		return &failure{effect: retry, reason: "connection reset"}
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return &failure{effect: retry, reason: "the connection ended early"}
	}
	return &failure{effect: retry, reason: short(err)}
}

func isUntrusted(err error) bool {
	var authority x509.UnknownAuthorityError
	return errors.As(err, &authority)
}

func isTLS(err error) bool {
	var verify *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	return errors.As(err, &verify) || errors.As(err, &record) || errors.As(err, &alert) ||
		strings.Contains(err.Error(), "tls: ") || strings.Contains(err.Error(), "HTTP response to HTTPS client")
}

// short is the innermost message, which says the most in the fewest words.
func short(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}

// redact drops what may be secret from a URL: user, password and query.
func redact(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" && strings.Contains(raw, "@") {
		return "(not a URL)"
	}
	return redactURL(u)
}

func redactURL(u *url.URL) string {
	bare := *u
	bare.User, bare.RawQuery, bare.Fragment, bare.RawFragment = nil, "", "", ""
	return bare.String()
}
