package recipe

import (
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/dirhash"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/yamlpos"
)

// Layer is a place recipes come from: *.yaml at its root, and what they ship
// below files/. Name stands before file names in messages: "recipes".
type Layer struct {
	Name string
	FS   fs.FS
}

// Load reads every recipe of the layers. A recipe replaces the one of the same
// name in an earlier layer as a whole. The error is a diag.List with every
// problem of every file.
func Load(layers ...Layer) (*Set, error) {
	var bad diag.List
	set := &Set{byName: map[string]*Recipe{}}
	for _, layer := range layers {
		entries, err := fs.ReadDir(layer.FS, ".")
		if err != nil {
			bad.Add(diag.Pos{File: layer.Name}, "", "cannot list recipes: %s", err)
			continue
		}
		for _, e := range entries {
			switch {
			case e.IsDir():
			case path.Ext(e.Name()) == ".yml":
				bad.Add(layer.pos(e.Name()), "rename it to .yaml", "recipe files end in .yaml")
			case path.Ext(e.Name()) == ".yaml":
				if rec := layer.load(e.Name(), &bad); rec != nil {
					set.byName[rec.Name] = rec
				}
			}
		}
	}
	set.checkNames(&bad)
	if err := bad.Err(); err != nil {
		return nil, err
	}
	return set, nil
}

func (l Layer) pos(name string) diag.Pos { return diag.Pos{File: path.Join(l.Name, name)} }

// load reads one recipe. It returns nil when there is nothing to use.
func (l Layer) load(name string, bad *diag.List) *Recipe {
	data, err := fs.ReadFile(l.FS, name)
	if err != nil {
		bad.Add(l.pos(name), "", "cannot read it: %s", err)
		return nil
	}
	p := parser{
		Reader:  yamlpos.Reader{File: l.pos(name).File},
		layer:   l.FS,
		stem:    strings.TrimSuffix(name, ".yaml"),
		shipped: map[string][]byte{name: data},
	}
	defer func() { *bad = append(*bad, p.Bad...) }()
	doc := p.Document(data, "recipe", "write at least name and summary")
	if doc == nil {
		return nil
	}
	rec := p.recipe(doc)
	rec.Hash = hash(p.shipped)
	return rec
}

// hash is dirhash's Hash1 over the contents by name, the YAML file included, so
// that neither the place nor the host of the recipe matters.
func hash(shipped map[string][]byte) string {
	names := make([]string, 0, len(shipped))
	for name := range shipped {
		names = append(names, name)
	}
	sum, err := dirhash.Hash1(names, func(name string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(string(shipped[name]))), nil
	})
	if err != nil {
		panic(err) // only a newline in a name fails, and names were checked
	}
	return sum
}

// checkNames holds requires and conflicts to recipes that exist.
func (s *Set) checkNames(bad *diag.List) {
	names := s.Names()
	for _, name := range names {
		rec := s.byName[name]
		for _, other := range slices.Concat(rec.Requires, rec.Conflicts) {
			if _, ok := s.byName[other.Value]; ok {
				continue
			}
			bad.Add(other.Pos, diag.Allowed(other.Value, names), "unknown recipe %q", other.Value)
		}
	}
}
