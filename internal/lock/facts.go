package lock

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Facts are what locking found in a base that was made elsewhere. They are lines
// of the lock, so that a plan judges the base without reading it again.
type Facts struct {
	OS            string            // ID of os-release: debian, ubuntu
	Suite         string            // VERSION_CODENAME of os-release: bookworm
	Env           map[string]string // of the image's configuration
	Python        string            // path of the first python3 on PATH; empty: none
	PythonVersion string            // 3.11
	System        bool              // the Python is dpkg's
	Venv          string            // a virtual environment that Python is in, or that lies where ours goes
	TorchCUDA     string            // 12.1: what its torch is built for
	Distributions map[string]string // that this Python sees: normalized name to version
	CUDA          []string          // directories of CUDA toolkits or runtimes
	CuDNN         []string          // libcudnn outside Python's packages
	Compat        []string          // directories of cuda-compat
	AptSources    []string          // files that name NVIDIA's own archive
	Newest        string            // time of the youngest file, in seconds
}

// Epoch is the time of the youngest file, in seconds.
func (f *Facts) Epoch() int64 {
	s, _ := strconv.ParseInt(f.Newest, 10, 64) // checked when parsed
	return s
}

// single are the facts that stand once, lists those that may stand often.
func (f *Facts) single() map[string]*string {
	return map[string]*string{"os": &f.OS, "suite": &f.Suite, "python": &f.Python, "python-version": &f.PythonVersion, "venv": &f.Venv, "torch-cuda": &f.TorchCUDA, "newest": &f.Newest}
}

func (f *Facts) lists() map[string]*[]string {
	return map[string]*[]string{"cuda": &f.CUDA, "cudnn": &f.CuDNN, "compat": &f.Compat, "apt-source": &f.AptSources}
}

// Entries are the facts as lines, for the set that answers the base.
func (f Facts) Entries(set string) []Entry {
	var out []Entry
	add := func(name, value string) {
		out = append(out, Entry{Kind: Fact, Key: set, Value: name + "=" + escape(value)})
	}
	for name, value := range f.single() {
		if *value != "" {
			add(name, *value)
		}
	}
	if f.System {
		add("python-of", "dpkg")
	}
	for name, values := range f.lists() {
		for _, value := range *values {
			add(name, value)
		}
	}
	for name, value := range f.Env {
		add("env", name+"="+value)
	}
	for name, version := range f.Distributions {
		add("dist", name+"=="+version)
	}
	slices.SortFunc(out, func(a, b Entry) int { return strings.Compare(a.Value, b.Value) })
	return out
}

// Facts are those of a set; nil when the lock has none.
func (f *File) Facts(set string) *Facts {
	var out *Facts
	for _, e := range f.Entries {
		if e.Kind != Fact || e.Key != set {
			continue
		}
		if out == nil {
			out = &Facts{Env: map[string]string{}, Distributions: map[string]string{}}
		}
		out.take(e.Value)
	}
	return out
}

// take reads one line's value, which Parse has checked.
func (f *Facts) take(line string) {
	name, value, _ := strings.Cut(line, "=")
	value = unescape(value)
	if s, ok := f.single()[name]; ok {
		*s = value
		return
	}
	if l, ok := f.lists()[name]; ok {
		*l = append(*l, value)
		return
	}
	switch name {
	case "python-of":
		f.System = true
	case "env":
		key, v, _ := strings.Cut(value, "=")
		f.Env[key] = v
	case "dist":
		key, v, _ := strings.Cut(value, "==")
		f.Distributions[key] = v
	}
}

// checkFact refuses a fact that take would not understand.
func checkFact(value string) error {
	var f Facts
	known := slices.Collect(maps.Keys(f.single()))
	known = append(slices.AppendSeq(known, maps.Keys(f.lists())), "python-of", "env", "dist")
	slices.Sort(known)
	name, rest, ok := strings.Cut(value, "=")
	if !ok || rest == "" || !slices.Contains(known, name) {
		return fmt.Errorf("fact %q must be NAME=VALUE; names are %s", value, strings.Join(known, ", "))
	}
	if _, err := url.PathUnescape(rest); err != nil {
		return fmt.Errorf("fact %q has a bad escape: %w", value, err)
	}
	if s, err := strconv.ParseInt(rest, 10, 64); name == "newest" && (err != nil || s < 0 || s > lastEpoch) {
		return fmt.Errorf("fact %q must be a time in seconds, up to %d (2106)", value, lastEpoch)
	}
	if inner := unescape(rest); name == "env" && !strings.Contains(inner, "=") || name == "dist" && !strings.Contains(inner, "==") {
		return fmt.Errorf("fact %q must be env=NAME=VALUE or dist=NAME==VERSION", value)
	}
	return nil
}

// escape makes a value one field of a line that names no host.
func escape(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '%' || unicode.IsSpace(r) || unicode.IsControl(r) || r == ':' && strings.HasPrefix(s[i:], "://"):
			for _, c := range []byte(string(r)) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func unescape(s string) string {
	out, err := url.PathUnescape(s)
	if err != nil {
		return s
	}
	return out
}
