package storetest

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// Proxy is a company's proxy: it wants a name and a password, and opens every TLS
// connection to look inside, with certificates of its own authority.
type Proxy struct {
	URL string // with the name and the password
	CA  []byte // PEM of its authority

	ca       *x509.Certificate
	key      *ecdsa.PrivateKey
	user     *url.Userinfo
	upstream http.Handler
	mu       sync.Mutex
	hosts    []string
}

// NewProxy starts a proxy that ends with the test. Whatever host is asked for, it
// passes requests on, over TLS, to upstream, which has a certificate of its own.
func NewProxy(t testing.TB, upstream *Mirror, user *url.Userinfo) *Proxy {
	t.Helper()
	origin := httptest.NewTLSServer(upstream)
	t.Cleanup(origin.Close)
	to, err := url.Parse(origin.URL)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(to)
	forward.Transport = origin.Client().Transport
	p := &Proxy{user: user, upstream: forward}
	if p.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	p.ca = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Office Proxy CA"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	raw, err := x509.CreateCertificate(rand.Reader, p.ca, p.ca, p.key.Public(), p.key)
	if err != nil {
		t.Fatal(err)
	}
	p.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.URL = strings.Replace(server.URL, "://", "://"+user.String()+"@", 1)
	return p
}

// Hosts are the hosts that were asked for, in order.
func (p *Proxy) Hosts() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.hosts...)
}

// ServeHTTP opens a tunnel, and answers what comes through it.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	check := http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}
	name, password, _ := check.BasicAuth()
	if want, _ := p.user.Password(); name != p.user.Username() || password != want {
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	if r.Method != http.MethodConnect {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	p.mu.Lock()
	p.hosts = append(p.hosts, r.Host)
	p.mu.Unlock()
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		return
	}
	inside := tls.Server(conn, &tls.Config{GetCertificate: p.certificate})
	p.answer(inside)
}

// answer serves one connection.
func (p *Proxy) answer(conn net.Conn) {
	requests := bufio.NewReader(conn)
	for {
		r, err := http.ReadRequest(requests)
		if err != nil {
			return
		}
		rec := httptest.NewRecorder()
		p.upstream.ServeHTTP(rec, r)
		resp := rec.Result()
		resp.Request = r
		if err := resp.Write(conn); err != nil {
			return
		}
	}
}

// certificate is one for the host that is asked for, by the proxy's authority.
func (p *Proxy) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{hello.ServerName}, NotBefore: p.ca.NotBefore, NotAfter: p.ca.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, leaf, p.ca, p.key.Public(), p.key)
	return &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: p.key}, err
}
