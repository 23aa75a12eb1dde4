package recipe

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/version"
)

var (
	recipeName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	envName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	debName    = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+$`)
	portForm   = regexp.MustCompile(`^([0-9]{1,5})/(tcp|udp)$`)

	// requirement is PEP 508 without URLs: name, extras, versions, marker.
	requirement = regexp.MustCompile(`^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*` +
		`(\[[A-Za-z0-9._, -]*\])?\s*` +
		`(` + clause + `(?:\s*,\s*` + clause + `)*)?\s*` +
		`(;.+)?$`)
)

const clause = `(?:===|==|~=|!=|<=|>=|<|>)\s*[A-Za-z0-9.*+!_-]+`

// owned variables are not a recipe's to set; the value says why.
var owned = map[string]string{
	"PATH":                "the planner puts /opt/venv/bin before the system's own directories; place commands in /usr/local/bin",
	"VIRTUAL_ENV":         "the Python environment is always /opt/venv",
	"LD_LIBRARY_PATH":     "it would hide the libraries that wheels bring and the driver that is mounted at run time",
	"CUDA_VERSION":        "by itself it makes the NVIDIA runtime demand a driver of that very CUDA",
	"NVIDIA_REQUIRE_CUDA": "the cell's driver floor is written there",
}

func (p *parser) checkDeb(s diag.Str) string {
	name := skeleton(s, &p.Bad)
	if !debName.MatchString(name) {
		p.Bad.Add(s.Pos, "give the bare name, such as libglib2.0-0; the lock chooses version and architecture",
			"%q is no name of a Debian package", s.Value)
		return ""
	}
	return s.Value
}

func (p *parser) checkWheel(s diag.Str) string {
	name, _ := p.requirement(s)
	return name
}

func (p *parser) checkLimit(s diag.Str) string {
	name, m := p.requirement(s)
	switch {
	case m == nil:
	case m[2] != "":
		p.Bad.Add(s.Pos, "extras belong under wheels", "limit %q has extras", s.Value)
	case m[3] == "":
		p.Bad.Add(s.Pos, "write one, such as numpy<2", "limit %q bounds no version", s.Value)
	}
	return name
}

// requirement checks a PEP 508 requirement. It returns the distribution's
// normalized name with the marker, and the parts; nil when it is no requirement.
func (p *parser) requirement(s diag.Str) (string, []string) {
	form := strings.TrimSpace(skeleton(s, &p.Bad))
	m := requirement.FindStringSubmatch(form)
	switch {
	case strings.HasPrefix(form, "-") || strings.Contains(form, " --"):
		p.Bad.Add(s.Pos, "name distributions only: never an extra index, an index is chosen by the lock", "%q is an option of pip", s.Value)
		return "", nil
	case strings.Contains(form, "://") || strings.Contains(strings.SplitN(form, ";", 2)[0], "@"):
		p.Bad.Add(s.Pos, "name and version only: the lock finds the file, never an extra index", "%q names a URL", s.Value)
		return "", nil
	case m == nil:
		p.Bad.Add(s.Pos, "write it as name, name==1.2 or name[extra]>=1,<2", "%q is no requirement", s.Value)
		return "", nil
	case strings.Contains(s.Value, "${") && m[1] == "0":
		return s.Value, m // the name itself is a template
	}
	return version.NormalizeName(m[1]) + m[4], m
}

func (p *parser) checkPort(s diag.Str) string {
	m := portForm.FindStringSubmatch(s.Value)
	if m != nil {
		if n, _ := strconv.Atoi(m[1]); n >= 1 && n <= 65535 {
			return s.Value
		}
	}
	p.Bad.Add(s.Pos, "write it as 8888/tcp or 8888/udp, from 1 to 65535", "%q is no port", s.Value)
	return ""
}
