package resolve

import (
	"bytes"
	"embed"
	"fmt"
	"path"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
)

//go:embed keyrings/*.asc
var keyrings embed.FS

// keyring is the keys that may sign the Release files of a suite, its updates
// and its security archive.
func keyring(suite string) (openpgp.EntityList, error) {
	data, err := keyrings.ReadFile("keyrings/" + suite + ".asc")
	if err != nil {
		return nil, fmt.Errorf("no archive keys are known for suite %q; known suites: %s", suite, strings.Join(suites(), ", "))
	}
	keys, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("embedded keyring of %s: %w", suite, err)
	}
	return keys, nil
}

// suites lists the suites with embedded keys.
func suites() []string {
	files, _ := keyrings.ReadDir("keyrings")
	out := make([]string, len(files))
	for i, f := range files {
		out[i] = strings.TrimSuffix(f.Name(), path.Ext(f.Name()))
	}
	return out
}
