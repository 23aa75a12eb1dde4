package store

import (
	"context"
	"errors"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// readHost makes a profile of what apt and pip use on this machine. Their links
// may lead anywhere, as they may for apt and pip themselves.
func readHost(env Environment) Profile {
	p := Profile{Name: hostProfile, AnyHost: true, Archives: map[string]string{}}
	for _, root := range aptArchives(env) {
		if kind := path.Base(root); p.Archives[kind] == "" {
			p.Archives[kind] = root
		}
	}
	for _, kind := range archiveNames {
		if p.Archives[kind] == "" {
			p.Missing = append(p.Missing, kind+": apt on this machine has no source whose path ends in /"+kind)
		}
	}
	var why string
	if p.Indexes, why = pipIndexes(env); why != "" {
		p.Missing = append(p.Missing, "pypi: "+why)
	}
	p.Indexes = slices.DeleteFunc(p.Indexes, func(s string) bool { return !isWebURL(s) })
	p.Missing = append(p.Missing, "pytorch: pip on this machine names no index of torch wheels by CUDA version")
	return p
}

// file is where an absolute path is below the environment's root.
func (e Environment) file(path string) string { return filepath.Join("/", e.Root, path) }

func (e Environment) get(name string) string { return e.Env[name] }

// output is what a program prints.
func (e Environment) output(name string, args ...string) ([]byte, error) {
	if e.Run == nil {
		return nil, errors.New("programs cannot be run here")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return e.Run(ctx, name, args...)
}
