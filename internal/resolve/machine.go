package resolve

import (
	"fmt"
	"os"
	"strings"
)

// systemCAs are where distributions keep the bundle of trusted CAs.
var systemCAs = []string{
	"/etc/ssl/certs/ca-certificates.crt", // Debian, Alpine
	"/etc/pki/tls/certs/ca-bundle.crt",   // Fedora, RHEL
	"/etc/ssl/ca-bundle.pem",             // openSUSE
	"/etc/ssl/cert.pem",                  // macOS
}

// MachineCA reads the CA bundle that this machine's programs trust: what
// SSL_CERT_FILE or REQUESTS_CA_BUNDLE names, else the system's. A bundle that is
// named but cannot be read is an error; none at all is no error.
func MachineCA(getenv func(string) string) ([]byte, error) {
	for _, name := range []string{"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"} {
		if file := getenv(name); file != "" {
			data, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("%s names a CA bundle that cannot be read: %w", name, err)
			}
			return data, nil
		}
	}
	for _, file := range systemCAs {
		if data, err := os.ReadFile(file); err == nil {
			return data, nil
		}
	}
	return nil, nil
}

// MachineProxy reads the proxy settings of this machine, by their names in
// lower case: http_proxy, https_proxy, ftp_proxy, all_proxy, no_proxy.
func MachineProxy(getenv func(string) string) map[string]string {
	out := map[string]string{}
	for _, name := range []string{"http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy"} {
		for _, spelling := range []string{name, strings.ToUpper(name)} {
			if value := getenv(spelling); value != "" && out[name] == "" {
				out[name] = value
			}
		}
	}
	return out
}
