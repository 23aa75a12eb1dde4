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
	Tag      string   `json:"tag"`
	Platform string   `json:"platform"`              // linux/amd64
	Epoch    int64    `json:"epoch"`                 // SOURCE_DATE_EPOCH, seconds
	Python   string   `json:"python"`                // 3.11
	Base     []Blob   `json:"base"`                  // .debs of the base layer, when the base is made of them
	Image    *Image   `json:"image,omitempty"`       // the base, when it is a registry's image
	Rootfs   *Blob    `json:"rootfs,omitempty"`      // the base, when it is a tarball
	Strip    []string `json:"strip,omitempty"`       // paths of the base that the image must not have
	Python3  *Python  `json:"interpreter,omitempty"` // what the environment is made with; nil: Debian's python3
	Debs     []Blob   `json:"debs"`                  // .debs of the apt layer, none of the base's
	Tools    []Blob   `json:"tools"`                 // wheels that install wheels; not in the image
	Wheels   []Layer  `json:"wheels"`
	Steps    []Step   `json:"steps"`
	Config   Config   `json:"config"`

	blobs  []Blob // what Blobs and Digest answer, once it is known
	digest string
}

// Image is a base image by digest. Its layers are reused as they are.
type Image struct {
	Repository string `json:"repository"` // docker.io/library/debian
	Parts      []Blob `json:"parts"`      // manifest, configuration, then layers, base first
}

// Digest is the digest of the image's manifest.
func (i *Image) Digest() string { return "sha256:" + i.Parts[0].SHA256 }

// Layers is how many layers the image has.
func (i *Image) Layers() int { return len(i.Parts) - 2 }

// Python is an interpreter that a base brings along.
type Python struct {
	Path string `json:"path"`
	Keep bool   `json:"keep,omitempty"` // the environment sees the packages it has, such as its torch
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
