package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/matrix"
	"github.com/imgforge/imgforge/internal/recipe"
	"github.com/imgforge/imgforge/internal/registry"
	"github.com/imgforge/imgforge/internal/store"
	matrices "github.com/imgforge/imgforge/matrix"
	"github.com/imgforge/imgforge/recipes"
)

// inputFlags name the files a command reads.
type inputFlags struct {
	matrices []string
	lock     string
	recipes  []string
	only     []string
	mirrors  []string
	profile  string
	hubs     []string // mirrors of registries

	matrix string // the one of matrices that is being loaded

	locks bool // the lock may be missing: the command is about making it
	mend  bool // and may hold the conflicts of a merge
}

func (f *inputFlags) register(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&f.matrices, "matrix", "m", []string{"matrix/universal.yaml"}, "matrix file, or the name of one that is shipped (repeatable, where a command takes several)")
	flags.StringVar(&f.lock, "lock", "", "lock file (default: beside the matrix, with .lock for .yaml)")
	flags.StringArrayVar(&f.recipes, "recipes", nil, "directory of your own recipes; one of a built-in's name replaces it (repeatable)")
	flags.StringArrayVar(&f.only, "only", nil, "build only the cells that match, such as 'cuda=12.1,torch=~2.3' (repeatable: any may match)")
	flags.StringSliceVar(&f.mirrors, "mirrors", nil, "mirror profiles to download from, best first; also vendor:DIR and oci://REGISTRY/REPOSITORY (default: the matrix's)")
	flags.StringArrayVar(&f.hubs, "registry-mirror", nil, "where to ask before a registry for base images, as REGISTRY=HOST[/PREFIX], such as docker.io=hub.example.cn (repeatable)")
	flags.StringVar(&f.profile, "mirror-file", "", "YAML file of your own mirror profiles, used before all others unless --mirrors orders them")
}

// inputs is a matrix with everything it is joined with.
type inputs struct {
	matrix   *matrix.Matrix
	cells    []matrix.Cell // selected
	all      []matrix.Cell
	holes    []matrix.Hole // cells that cannot work, which the matrix skips
	recipes  *recipe.Set
	mirrors  []store.Profile // best first; then where the bases lie
	chosen   int             // of mirrors; the rest are where the matrix's own bases lie
	images   *registry.Client
	lock     *lock.File // empty when there is none yet
	shipped  bool       // the lock is built in, so it cannot be written
	lockPath string
	sources  map[string][]byte // recipe files by name
}

// load reads and checks all inputs; the problems of all are reported together.
// env is what mirror profiles are read from.
func (f *inputFlags) load(env store.Environment) (*inputs, error) {
	if err := f.single(); err != nil {
		return nil, err
	}
	data, shipped, err := f.readMatrix()
	if err != nil {
		return nil, err
	}
	in := &inputs{lock: &lock.File{}, sources: map[string][]byte{}}
	var bad diag.List
	bad.AddErr(diag.Pos{File: f.matrix}, in.parseMatrix(f.matrix, data))
	bad.AddErr(diag.Pos{}, in.loadRecipes(f.recipes))
	in.mirrors, err = f.loadMirrors(in.matrix, env)
	bad.AddErr(diag.Pos{}, err)
	bad.AddErr(diag.Pos{}, in.loadLock(f, shipped))
	if err := bad.Err(); err != nil {
		return nil, err
	}
	if err := in.findBases(f.hubs, env); err != nil {
		return nil, err
	}
	if in.cells, err = f.choose(in.all); err != nil || f.locks {
		return in, err // locking may mend what does not fit
	}
	return in, in.inspect()
}

// parseMatrix makes the cells of a matrix file.
func (in *inputs) parseMatrix(file string, data []byte) (err error) {
	if in.matrix, err = matrix.Parse(file, data); err != nil {
		return err
	}
	made, err := in.matrix.Expand()
	if err != nil {
		return err
	}
	in.all, in.holes = made.Cells, made.Holes
	return nil
}

// loadRecipes reads the built-in recipes and those of directories, which go before.
func (in *inputs) loadRecipes(dirs []string) (err error) {
	var bad diag.List
	layers := []recipe.Layer{{Name: "recipes", FS: recipes.FS}}
	for _, dir := range dirs {
		root, err := os.OpenRoot(dir) // no link in it leads out of it
		if err != nil {
			bad.AddErr(diag.Pos{}, fmt.Errorf("--recipes: %w", err))
			continue
		}
		defer root.Close()
		layers = append(layers, recipe.Layer{Name: dir, FS: root.FS()})
	}
	in.recipes, err = recipe.Load(layers...)
	bad.AddErr(diag.Pos{}, err)
	in.readSources(layers)
	return bad.Err()
}

// loadLock reads the lock that is named, else the one beside the matrix or shipped
// with it. That one, or one about to be made, may be missing.
func (in *inputs) loadLock(f *inputFlags, shipped bool) error {
	read := os.ReadFile
	switch in.lockPath = f.lock; {
	case f.lock != "":
	case shipped:
		in.shipped = true
		in.lockPath, read = shippedName(f.matrix)+".lock", matrices.FS.ReadFile
	default:
		in.lockPath = strings.TrimSuffix(f.matrix, filepath.Ext(f.matrix)) + ".lock"
	}
	var bad diag.List
	data, err := read(in.lockPath)
	switch {
	case err == nil:
		parse := lock.Parse
		if f.mend {
			parse = lock.Mend
		}
		in.lock, err = parse(in.lockPath, data)
		bad.AddErr(diag.Pos{File: in.lockPath}, err)
	case !errors.Is(err, fs.ErrNotExist) || f.lock != "" && !f.locks:
		bad.Add(diag.Pos{}, "name another, or make it: `imgforge lock --matrix "+f.matrix+" --lock "+in.lockPath+"`", "cannot read the lock: %s", err)
	}
	return bad.Err()
}

// findBases notes where the files of bases made elsewhere lie.
func (in *inputs) findBases(hubs []string, env store.Environment) error {
	mirrors, err := parseRegistryMirrors(hubs)
	if err != nil {
		return err
	}
	in.images = &registry.Client{Mirrors: mirrors, Base: env.Transport()}
	places, err := basePlaces(in.all, in.images)
	if err != nil {
		return err
	}
	in.chosen = len(in.mirrors)
	in.mirrors = append(in.mirrors, places...)
	return nil
}

// readMatrix reads the matrix: a file, else the one that was shipped under its name.
func (f *inputFlags) readMatrix() (data []byte, shipped bool, err error) {
	data, err = os.ReadFile(f.matrix)
	if errors.Is(err, fs.ErrNotExist) {
		if built, ferr := matrices.FS.ReadFile(shippedName(f.matrix) + ".yaml"); ferr == nil {
			return built, true, nil
		}
	}
	if err != nil {
		return nil, false, fmt.Errorf("cannot read the matrix: %w; name a file with --matrix, or one that is shipped: universal", err)
	}
	return data, false, nil
}

// shippedName is universal for universal, universal.yaml and matrix/universal.yaml.
func shippedName(matrix string) string {
	return strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(matrix), "matrix/"), ".yaml")
}

// readSources keeps recipe files for excerpts in build errors.
func (in *inputs) readSources(layers []recipe.Layer) {
	for _, layer := range layers {
		names, _ := fs.Glob(layer.FS, "*.yaml")
		for _, name := range names {
			if data, err := fs.ReadFile(layer.FS, name); err == nil {
				in.sources[layer.Name+"/"+name] = data
			}
		}
	}
}

// choose keeps the cells that any --only selects.
func (f *inputFlags) choose(all []matrix.Cell) ([]matrix.Cell, error) {
	if len(f.only) == 0 {
		return all, nil
	}
	var selectors []matrix.Selector
	for _, text := range f.only {
		s, err := matrix.ParseSelector(text)
		if err != nil {
			return nil, fmt.Errorf("--only %q: %w", text, err)
		}
		if err := s.Check(all); err != nil {
			return nil, fmt.Errorf("--only %q: %w", text, err)
		}
		selectors = append(selectors, s)
	}
	var out []matrix.Cell
	for _, cell := range all {
		for _, s := range selectors {
			if s.Match(cell) {
				out = append(out, cell)
				break
			}
		}
	}
	if len(out) == 0 {
		tags := make([]string, len(all))
		for i, c := range all {
			tags[i] = c.Tag
		}
		return nil, fmt.Errorf("--only %s matches none of the %d cells:\n  %s", strings.Join(f.only, " "), len(all), strings.Join(tags, "\n  "))
	}
	return out, nil
}

// loadMirrors reads the profiles to use: those the flag names, else one's own and
// then the matrix's. The matrix is nil when it could not be read.
func (f *inputFlags) loadMirrors(m *matrix.Matrix, env store.Environment) ([]store.Profile, error) {
	var own []store.Profile
	if f.profile != "" {
		data, err := os.ReadFile(f.profile)
		if err != nil {
			return nil, fmt.Errorf("cannot read --mirror-file: %w", err)
		}
		if own, err = store.ParseProfiles(f.profile, data); err != nil {
			return nil, err
		}
	}
	var names []diag.Str
	switch {
	case len(f.mirrors) > 0:
		names = named(f.mirrors, "--mirrors")
	case m == nil:
		return own, nil
	default:
		names = m.Mirrors
		for i := len(own) - 1; i >= 0; i-- {
			names = append(named([]string{own[i].Name}, f.profile), names...)
		}
	}
	kept, err := keptProfiles(names, env)
	if err != nil {
		return nil, err
	}
	return store.LoadProfiles(names, append(own, kept...), env)
}

func named(values []string, where string) []diag.Str {
	out := make([]diag.Str, len(values))
	for i, value := range values {
		out[i] = diag.Str{Value: value, Pos: diag.Pos{File: where}}
	}
	return out
}
