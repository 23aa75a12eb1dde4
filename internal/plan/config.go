package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/matrix"
	"github.com/imgforge/imgforge/internal/recipe"
)

// configOf is the image configuration: the planner's own environment, then what
// recipes add. Two recipes that set one variable differently are a mistake.
func configOf(cell matrix.Cell, d *draft, bad *diag.List) Config {
	vars := d.vars(cell)
	env := baseEnv(cell)
	search := cmp.Or(env["PATH"], "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, map[string]string{
		"PATH":                       "/opt/venv/bin:" + search,
		"VIRTUAL_ENV":                "/opt/venv",
		"LANG":                       "C.UTF-8",
		"NVIDIA_VISIBLE_DEVICES":     "all",
		"NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
		"NVIDIA_REQUIRE_CUDA":        "driver>=" + cell.Driver,
	})
	c := Config{Cmd: []string{"bash"}, WorkingDir: "/workspace"}
	setBy := map[string]string{}
	for _, rec := range d.list.recipes {
		for _, v := range rec.Env {
			value, err := recipe.Expand(diag.Str{Pos: v.Pos, Value: v.Value}, vars)
			bad.AddErr(v.Pos, err)
			if other := setBy[v.Name]; other != "" && env[v.Name] != value {
				bad.Add(v.Pos, "keep one of the two", "recipes %s and %s set %s differently", other, rec.Name, v.Name)
			}
			env[v.Name], setBy[v.Name] = value, rec.Name
		}
		if len(rec.Cmd) > 0 {
			c.Cmd = rec.Cmd
		}
		c.Ports = append(c.Ports, rec.Ports...)
	}
	for name, value := range env {
		c.Env = append(c.Env, name+"="+value)
	}
	slices.Sort(c.Env)
	c.Ports = sortedSet(c.Ports)
	return c
}

// RecipesLabel holds the names of the recipes an image was made with, so that its
// checks are known without its matrix.
const RecipesLabel = "io.imgforge.recipes"

// planLabel holds the plan's digest in the image.
const planLabel = "io.imgforge.plan"

// labels describe the image in its own configuration. The lock's digest covers
// the cell's own lines, so that a cell added beside it changes nothing here.
func (p *Plan) labels(cell matrix.Cell, d *draft) map[string]string {
	out := map[string]string{
		"io.imgforge.cuda":                 cell.CUDA,
		"io.imgforge.torch":                cell.Torch,
		"io.imgforge.python":               cell.Python,
		"io.imgforge.base":                 cell.BaseName,
		"io.imgforge.driver":               ">=" + cell.Driver,
		RecipesLabel:                       strings.Join(d.list.all(), " "),
		"io.imgforge.gpu-archs":            d.archs,
		"io.imgforge.lock":                 d.lock,
		"org.opencontainers.image.title":   "imgforge " + cell.Tag,
		"org.opencontainers.image.version": cell.Tag,
		"org.opencontainers.image.created": d.created,
	}
	for name, value := range cell.Free {
		out["io.imgforge.axis."+name] = value
	}
	if p.Image != nil {
		out["org.opencontainers.image.base.name"] = cell.Base.Image.Ref.Value
		out["org.opencontainers.image.base.digest"] = p.Image.Digest()
	}
	return out
}

// lockDigest covers the lock's entries for the blobs of this plan.
func (p *Plan) lockDigest(locked *lock.File) string {
	used := map[string]bool{}
	for _, b := range p.Blobs() {
		used["sha256:"+b.SHA256] = true
	}
	var lines []string
	for _, e := range locked.Entries {
		if used[e.Hash] {
			lines = append(lines, fmt.Sprintf("%s %s %s %s", e.Kind, e.Key, e.Value, e.Hash))
		}
	}
	slices.SortFunc(lines, cmp.Compare[string])
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return "sha256:" + hex.EncodeToString(sum[:])
}
