package store

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// setting is a value of pip's configuration and where it was set.
type setting struct{ value, from string }

// pipIndexes are the indexes pip uses here, best first, and the reasons why some
// cannot be used or there are none. Where no configuration names one, the
// machine's pip is asked for the one it falls back to.
func pipIndexes(env Environment) (indexes, reasons []string) {
	conf := pipConfig(env)
	if s := conf["no-index"]; isTrue(s.value) {
		return nil, []string{"pip on this machine is told to use no index, by " + s.from}
	}
	main := conf["index-url"]
	if strings.TrimSpace(main.value) == "" {
		main = setting{pipDefault(env), "pip itself"}
	}
	for _, s := range []setting{main, conf["extra-index-url"]} {
		for _, u := range strings.Fields(s.value) {
			u = strings.TrimRight(u, "/")
			switch {
			case !isWebURL(u):
				reasons = append(reasons, fmt.Sprintf("%q, set by %s, is no http or https URL", redact(u), s.from))
			case !slices.Contains(indexes, u):
				indexes = append(indexes, u)
			}
		}
	}
	if len(indexes)+len(reasons) == 0 {
		reasons = append(reasons, "this machine has no pip, and no configuration of pip that names an index")
	}
	return indexes, reasons
}

func isTrue(s string) bool {
	return slices.Contains([]string{"1", "true", "yes", "on", "y", "t"}, strings.ToLower(s))
}

// pipDefault asks the machine's pip which index it uses unless told otherwise.
func pipDefault(env Environment) string {
	const ask = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"
	for _, python := range []string{"python3", "python"} {
		out, err := env.output(python, "-c", ask)
		if u := strings.TrimSpace(string(out)); err == nil && strings.HasPrefix(u, "http") {
			return u
		}
	}
	return ""
}

// pipConfig is pip's configuration in pip's own order: files from the general to
// the particular, then the environment; the section of a command over global.
func pipConfig(env Environment) map[string]setting {
	global, install := map[string]setting{}, map[string]setting{}
	merge := func(into map[string]setting, from map[string]string, file string) {
		for k, v := range from {
			into[k] = setting{v, file}
		}
	}
	for _, file := range pipFiles(env) {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		sections := parseINI(string(data))
		name := strings.TrimPrefix(file, strings.TrimRight(env.file("/"), "/"))
		merge(global, sections["global"], name)
		merge(install, sections["install"], name)
	}
	maps.Copy(global, install)
	for _, key := range []string{"index-url", "extra-index-url", "no-index"} {
		name := "PIP_" + strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
		if v := env.get(name); v != "" {
			global[key] = setting{v, name}
		}
	}
	return global
}

// pipFiles are the files pip reads, the strongest last.
func pipFiles(env Environment) []string {
	own := env.get("PIP_CONFIG_FILE")
	if own == os.DevNull {
		return nil
	}
	var files []string
	for _, dir := range filepath.SplitList(cmp.Or(env.get("XDG_CONFIG_DIRS"), "/etc/xdg")) {
		files = append(files, env.file(filepath.Join(dir, "pip", "pip.conf")))
	}
	files = append(files, env.file("/etc/pip.conf"))
	if _, err := os.Stat(env.file(own)); own == "" || err != nil { // else pip skips the user's
		home := env.get("HOME")
		files = append(files, env.file(filepath.Join(home, ".pip", "pip.conf")),
			env.file(filepath.Join(cmp.Or(env.get("XDG_CONFIG_HOME"), filepath.Join(home, ".config")), "pip", "pip.conf")))
	}
	if venv := env.get("VIRTUAL_ENV"); venv != "" {
		files = append(files, env.file(filepath.Join(venv, "pip.conf")))
	}
	if own != "" {
		files = append(files, env.file(own))
	}
	return files
}

// parseINI reads the format of Python's configparser: sections of "key = value"
// or "key: value", where a value goes on in indented lines.
func parseINI(text string) map[string]map[string]string {
	out := map[string]map[string]string{}
	section, key := map[string]string{}, ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
		case line[0] == ' ' || line[0] == '\t':
			if key != "" {
				section[key] = strings.TrimSpace(section[key] + "\n" + trimmed)
			}
		case trimmed[0] == '[':
			name := strings.Trim(trimmed, "[]")
			if out[name] == nil {
				out[name] = map[string]string{}
			}
			section, key = out[name], ""
		default:
			i := strings.IndexAny(trimmed, "=:")
			if i < 0 {
				key = ""
				continue
			}
			key = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(trimmed[:i])), "_", "-")
			section[key] = strings.TrimSpace(trimmed[i+1:])
		}
	}
	return out
}
