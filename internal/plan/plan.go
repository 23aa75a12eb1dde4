// Package plan joins a cell, its recipes and the lock into a flat list of fully
// hashed steps. A plan names every byte that enters the image; nothing after it
// decides anything.
package plan

import "github.com/imgforge/imgforge/internal/diag"

// Blob is a locked file, named by its content.
type Blob struct {
	Name   string `json:"name"`   // file name
	Origin string `json:"origin"` // the lock entry's value: archive/pool path, or index:name==version
	SHA256 string `json:"sha256"` // hex
	Size   int64  `json:"size"`
}

// Plan is one image, to the last byte.
type Plan struct {
	Tag      string  `json:"tag"`
	Platform string  `json:"platform"` // linux/amd64
	Epoch    int64   `json:"epoch"`    // SOURCE_DATE_EPOCH, seconds
	Python   string  `json:"python"`   // 3.11
	Base     []Blob  `json:"base"`     // .debs of the base layer
	Debs     []Blob  `json:"debs"`     // .debs of the apt layer, none of the base's
	Tools    []Blob  `json:"tools"`    // wheels that install wheels; not in the image
	Wheels   []Layer `json:"wheels"`
	Steps    []Step  `json:"steps"`
	Config   Config  `json:"config"`
}

// Layer is wheels that share one image layer. A heavy wheel is alone in its own.
type Layer struct {
	Name   string `json:"name"`
	Wheels []Blob `json:"wheels"`
}

// Step is what one recipe adds beyond packages.
type Step struct {
	Recipe string `json:"recipe"`
	Files  []File `json:"files,omitempty"`
	Run    []Run  `json:"run,omitempty"`
}

// File is a regular file, a directory or a symbolic link, owned by root.
type File struct {
	Path    string `json:"path"`
	Mode    uint32 `json:"mode"`
	Content []byte `json:"content,omitempty"`
	Link    string `json:"link,omitempty"`
	Dir     bool   `json:"dir,omitempty"`
}

// Run is an offline shell command. Its position is for messages alone.
type Run struct {
	Name    string   `json:"name"`
	Command string   `json:"command"`
	Pos     diag.Pos `json:"-"`
}

// Config is the image configuration.
type Config struct {
	Env        []string          `json:"env"` // NAME=value, sorted by name
	Labels     map[string]string `json:"labels"`
	Cmd        []string          `json:"cmd"`
	WorkingDir string            `json:"workingDir"`
	Ports      []string          `json:"ports,omitempty"`
}
