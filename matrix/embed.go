// Package matrices holds the shipped matrices and their locks.
package matrices

import "embed"

// FS is the shipped files by name.
//
//go:embed *.yaml *.lock
var FS embed.FS
