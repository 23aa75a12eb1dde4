package recipe

import (
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/yamlpos"
)

// closed directories are not part of an image: the engine mounts over them.
var closed = []string{"/proc", "/sys", "/dev", "/tmp", "/run", "/var/run", "/var/tmp"}

// merged directories are links in Debian; a layer that holds one as a directory
// would hide the link and break the image.
var merged = []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

var octal = regexp.MustCompile(`^0?[0-7]{3,4}$`)

func (p *parser) files(n *yaml.Node) []File {
	var out []File
	for _, item := range p.Items(n, "files", listHelp) {
		f, ok := p.entry(item)
		if !ok {
			continue
		}
		for _, other := range out {
			switch {
			case other.Path == f.Path:
				p.Bad.Add(f.Pos, "keep one", "%s is written twice; first on line %d", f.Path, other.Pos.Line)
			case within(f.Path, other.Path) && !other.Dir:
				p.Bad.Add(f.Pos, "", "%s lies below %s, which is no directory", f.Path, other.Path)
			case within(other.Path, f.Path) && !f.Dir:
				p.Bad.Add(f.Pos, "", "%s is no directory, yet %s lies below it", f.Path, other.Path)
			}
		}
		out = append(out, f)
	}
	return out
}

// entry reads one entry of files; false when it has no usable path.
func (p *parser) entry(item *yaml.Node) (File, bool) {
	f := p.Fields(item, "a file", fileKeys)
	out := File{Pos: p.Pos(item)}
	p.source(item, f, &out)
	p.mode(f["mode"], &out)
	where, ok := p.need(item, f["path"], "path", "a file")
	if !ok {
		return out, false
	}
	out.Path, out.Pos = where.Value, where.Pos
	return out, p.checkPath(where)
}

// source reads the one of from, content, link and dir that is there.
func (p *parser) source(item *yaml.Node, f map[string]*yaml.Node, out *File) {
	if yamlpos.Deref(item).Kind != yaml.MappingNode {
		return
	}
	var given []string
	for _, kind := range []string{"from", "content", "link", "dir"} {
		if f[kind] != nil {
			given = append(given, kind)
		}
	}
	if len(given) != 1 {
		what := "nothing to write"
		if len(given) > 1 {
			what = strings.Join(given, " and ")
		}
		p.Fail(item, "give exactly one of from, content, link, dir", "a file has %s", what)
		return
	}
	n := f[given[0]]
	switch given[0] {
	case "from":
		out.Content = p.ship(n)
	case "content":
		s, _ := p.String(n, "content")
		out.Content = []byte(s.Value)
	case "link":
		s, _ := p.Filled(n, "link")
		if out.Link = s.Value; strings.Contains(s.Value, "\n") {
			p.Fail(n, "", "link holds a line break")
		}
	case "dir":
		if out.Dir = n.Tag == "!!bool" && n.Value == "true"; !out.Dir {
			p.Fail(n, "write `dir: true`", "dir can only be true")
		}
	}
}

// ship reads a file that the recipe brings along.
func (p *parser) ship(n *yaml.Node) []byte {
	s, ok := p.Filled(n, "from")
	if !ok {
		return nil
	}
	if !fs.ValidPath(s.Value) || !strings.HasPrefix(s.Value, "files/") || strings.ContainsAny(s.Value, "\n\\") {
		p.Fail(n, "write it as files/"+p.stem+"/NAME, beside the recipe", "from %q leads out of files/", s.Value)
		return nil
	}
	info, err := fs.Stat(p.layer, s.Value)
	if err == nil && !info.Mode().IsRegular() {
		p.Fail(n, "list its files one by one", "from %q is not a regular file", s.Value)
		return nil
	}
	var data []byte
	if err == nil {
		data, err = fs.ReadFile(p.layer, s.Value)
	}
	if err != nil {
		p.Fail(n, "", "from %q cannot be read: the recipe ships no such file", s.Value)
		return nil
	}
	p.shipped[s.Value] = data
	return data
}

// mode reads permissions: 0644, or 0755 for a directory, unless said otherwise.
func (p *parser) mode(n *yaml.Node, f *File) {
	switch {
	case f.Link != "":
		if n != nil {
			p.Fail(n, "remove mode", "a link has no permissions of its own")
		}
		return
	case f.Dir:
		f.Mode = 0o755
	default:
		f.Mode = 0o644
	}
	if n == nil {
		return
	}
	s, ok := p.Filled(n, "mode")
	if !ok {
		return
	}
	bits, err := strconv.ParseUint(s.Value, 8, 16)
	switch {
	case !octal.MatchString(s.Value) || err != nil:
		p.Fail(n, `write it in octal, such as "0644"`, "mode %q is not octal", s.Value)
	case bits&0o6000 != 0:
		p.Fail(n, "", "mode %s sets the user or group id, which a recipe may not", s.Value)
	case bits&0o1000 != 0: // BuildKit keeps nine bits
		p.Fail(n, "make the directory without it, and chmod 1777 it in a run step", "mode %s is sticky", s.Value)
	case bits&0o002 != 0:
		p.Fail(n, "only a sticky directory may be so, made by a run step", "mode %s lets every user write", s.Value)
	default:
		f.Mode = fs.FileMode(bits)
	}
}

func (p *parser) checkPath(s diag.Str) bool {
	where := s.Value
	switch {
	case !strings.HasPrefix(where, "/") || path.Clean(where) != where || where == "/" || strings.ContainsAny(where, "\n\r"):
		p.Bad.Add(s.Pos, "write it absolute, without .., doubled or trailing slashes", "path %q cannot be used", where)
		return false
	}
	for _, dir := range closed {
		if within(where, dir) {
			p.Bad.Add(s.Pos, "create it when the container starts", "path %s is below %s, which is not kept in an image", where, dir)
			return false
		}
	}
	for _, dir := range merged {
		if within(where, dir) {
			p.Bad.Add(s.Pos, "write /usr"+where, "path %s goes through %s, which is a link to /usr%s", where, dir, dir)
			return false
		}
	}
	return true
}

// within tells whether where is dir or below it.
func within(where, dir string) bool {
	return where == dir || strings.HasPrefix(where, dir+"/")
}
