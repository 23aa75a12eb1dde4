package check

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/imgforge/imgforge/recipes"
)

// programs is where those of built-ins lie.
const programs = "files/checks"

// shared are the modules that every Python program may import.
var shared = []string{"result", "diagnosis"}

// loader makes the shared modules of texts, and is followed by the program.
// No module of theirs may come from the directory the program starts in.
const loader = `import sys
if sys.path and sys.path[0] == "":
    del sys.path[0]
import types
for _name, _text in %s:
    _module = types.ModuleType(_name)
    sys.modules[_name] = _module
    exec(compile(_text, _name + ".py", "exec"), _module.__dict__)
`

// Program is the command line of a built-in, whole: the image needs no file of ours.
func Program(name string, with map[string]string) ([]string, error) {
	var options []string
	for _, key := range slices.Sorted(maps.Keys(with)) {
		options = append(options, "--"+key+"="+with[key])
	}
	stem := strings.ReplaceAll(name, "-", "_")
	if text, err := read(stem + ".sh"); err == nil {
		return append([]string{"sh", "-c", text, name}, options...), nil
	}
	text, err := read(stem + ".py")
	if err != nil {
		return nil, fmt.Errorf("the built-in check %s has no program: %w", name, err)
	}
	var modules []string
	for _, module := range shared {
		text, err := read(module + ".py")
		if err != nil {
			return nil, err
		}
		modules = append(modules, fmt.Sprintf("(%q, %s)", module, strconv.QuoteToASCII(text)))
	}
	// Both languages read Go's quotes alike, for what these texts hold.
	text = fmt.Sprintf(loader, "["+strings.Join(modules, ", ")+"]") + text
	return append([]string{"python3", "-c", text}, options...), nil
}

func read(name string) (string, error) {
	data, err := fs.ReadFile(recipes.FS, path.Join(programs, name))
	return string(data), err
}
