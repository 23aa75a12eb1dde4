// Package recipes holds the recipes that come with imgforge: the YAML and, under
// files/, what they place in images.
package recipes

import "embed"

// FS has *.yaml at its root and the shipped files below files/.
//
//go:embed *.yaml all:files
var FS embed.FS
