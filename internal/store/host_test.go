package store

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/store/storetest"
)

// machine is a made-up machine: files below its root, variables, and what its
// own pip says of the index it falls back to.
type machine struct {
	files map[string]string
	vars  map[string]string
	pip   string // empty: there is no Python
}

func (m machine) host(t *testing.T) Profile {
	t.Helper()
	root := t.TempDir()
	for name, text := range m.files {
		at := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	vars := map[string]string{"HOME": "/home/ada"}
	maps.Copy(vars, m.vars)
	run := func(_ context.Context, name string, _ ...string) ([]byte, error) {
		if m.pip == "" || name != "python3" {
			return nil, errors.New("no such program")
		}
		return []byte(m.pip + "\n"), nil
	}
	profiles, err := LoadProfiles([]diag.Str{{Value: "host"}}, nil, Environment{Env: vars, Root: root, Run: run})
	if err != nil || len(profiles) != 1 {
		t.Fatalf("LoadProfiles: %v, %d profiles", err, len(profiles))
	}
	return *profiles[0].found()
}

func TestHostApt(t *testing.T) {
	tests := map[string]struct {
		files map[string]string
		want  map[string]string
	}{
		"one line": {
			map[string]string{"etc/apt/sources.list": `
# deb http://old.example/debian bookworm main
deb-src http://source.example/debian bookworm main
deb [arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://apt.example/debian/ bookworm main contrib # ours
deb	http://apt.example/debian-security   bookworm-security main
`},
			map[string]string{"debian": "http://apt.example/debian", "debian-security": "http://apt.example/debian-security"},
		},
		"stanzas with comments inside": {
			map[string]string{"etc/apt/sources.list.d/debian.sources": `# made by the installer
Types: deb deb-src
# http://dated.example/debian/20250520T000000Z
URIs: https://apt.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
uris: https://apt.example/debian-security/
Suites: bookworm-security
Components: main
`},
			map[string]string{"debian": "https://apt.example/debian", "debian-security": "https://apt.example/debian-security"},
		},
		"what is switched off or for sources is no archive": {
			map[string]string{"etc/apt/sources.list.d/debian.sources": `Enabled: no
Types: deb
URIs: https://off.example/debian
Suites: bookworm
Components: main

Types: deb-src
URIs: https://source.example/debian
Suites: bookworm
Components: main
`},
			map[string]string{},
		},
		"other vendors are not Debian": {
			map[string]string{
				"etc/apt/sources.list.d/docker.list": "deb https://vendor.example/linux/debian bookworm stable\n",
				"etc/apt/sources.list.d/node.list":   "deb https://vendor.example/node_20.x/debian nodistro main\n",
				"etc/apt/sources.list.d/pg.list":     "deb https://vendor.example/debian bookworm-pgdg main\n",
				"etc/apt/sources.list":               "deb http://archive.example/ubuntu jorik main universe\n",
			},
			map[string]string{},
		},
		"Ubuntu": {
			map[string]string{
				"etc/apt/sources.list":                  "deb http://archive.example/ubuntu jammy main universe\ndeb http://ports.example/ubuntu-ports jammy main\n",
				"etc/apt/sources.list.d/ubuntu.sources": "Types: deb\nURIs: http://other.example/ubuntu\nSuites: jammy jammy-updates\nComponents: main\n",
			},
			map[string]string{"ubuntu": "http://archive.example/ubuntu", "ubuntu-ports": "http://ports.example/ubuntu-ports"},
		},
		"a password for https alone, unless the entry says http": {
			map[string]string{
				"etc/apt/sources.list":         "deb https://apt.example/debian bookworm main\ndeb http://apt.example/debian-security bookworm-security main\n",
				"etc/apt/auth.conf":            "machine apt.example/ubuntu login no password no\nmachine other.example login no password no\n",
				"etc/apt/auth.conf.d/own.conf": "machine apt.example/debian\n  login ada\n  password s3cret\n",
			},
			map[string]string{"debian": "https://ada:s3cret@apt.example/debian", "debian-security": "http://apt.example/debian-security"},
		},
		"a password for http and a port": {
			map[string]string{
				"etc/apt/sources.list": "deb http://apt.example:8080/debian bookworm main\ndeb http://apt.example/debian-security bookworm-security main\n",
				"etc/apt/auth.conf":    "# ours\nmachine http://apt.example:8080 login ada password \"two words\"\n",
			},
			map[string]string{"debian": "http://ada:two%20words@apt.example:8080/debian", "debian-security": "http://apt.example/debian-security"},
		},
		"a proxy's own names, told apart by suite": {
			map[string]string{"etc/apt/sources.list": `
deb https://nexus.example/repository/apt-fixes/ bookworm-security main
deb https://nexus.example/repository/apt-proxy/ bookworm main
deb https://old.example/ buster/updates main
`},
			map[string]string{"debian": "https://nexus.example/repository/apt-proxy", "debian-security": "https://nexus.example/repository/apt-fixes"},
		},
		"a list of mirrors": {
			map[string]string{
				"etc/apt/sources.list":        "deb mirror+file:///etc/apt/mirrors/debian.list bookworm main\n",
				"etc/apt/mirrors/debian.list": "# nearest first\nhttps://near.example/debian\tpriority:1\nhttps://far.example/debian\n",
			},
			map[string]string{"debian": "https://near.example/debian"},
		},
		"not over http": {
			map[string]string{"etc/apt/sources.list": "deb cdrom:[Debian 12]/ bookworm main\ndeb file:///srv/debian bookworm main\n"},
			map[string]string{},
		},
		"files in order of name, the first root wins": {
			map[string]string{
				"etc/apt/sources.list.d/20-far.list":  "deb https://far.example/debian bookworm main\n",
				"etc/apt/sources.list.d/10-near.list": "deb https://near.example/debian bookworm main\n",
				"etc/apt/sources.list.d/00-off.save":  "deb https://saved.example/debian bookworm main\n",
			},
			map[string]string{"debian": "https://near.example/debian"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := machine{files: test.files}.host(t)
			if !maps.Equal(got.Archives, test.want) {
				t.Errorf("archives are %v, want %v", got.Archives, test.want)
			}
			missing := strings.Join(got.Missing, "\n")
			if told := strings.Contains(missing, "apt on this machine"); told != (len(test.want) < 4) {
				t.Errorf("that apt has no archive is told: %v, in %q", told, missing)
			}
		})
	}
}

func TestHostPip(t *testing.T) {
	tests := map[string]struct {
		machine machine
		want    []string
		missing string // in the reasons
	}{
		"what pip falls back to": {machine: machine{pip: "https://default.example/simple"}, want: []string{"https://default.example/simple"}},
		"variables win": {
			machine: machine{
				pip:   "https://default.example/simple",
				vars:  map[string]string{"PIP_INDEX_URL": "https://var.example/simple/", "PIP_EXTRA_INDEX_URL": "https://one.example/simple https://two.example/simple"},
				files: map[string]string{"etc/pip.conf": "[global]\nindex-url = https://etc.example/simple\n"},
			},
			want: []string{"https://var.example/simple", "https://one.example/simple", "https://two.example/simple"},
		},
		"the user's file over the machine's": {
			machine: machine{files: map[string]string{
				"etc/xdg/pip/pip.conf":            "[global]\nindex-url = https://xdg.example/simple\n",
				"etc/pip.conf":                    "[global]\nindex-url = https://etc.example/simple\n",
				"home/ada/.pip/pip.conf":          "[global]\nindex_url: https://legacy.example/simple\n",
				"home/ada/.config/pip/pip.conf":   "; mine\n[global]\nindex-url = https://user.example/simple\n\n[list]\nindex-url = https://other.example/simple\n",
				"home/grace/.config/pip/pip.conf": "[global]\nindex-url = https://grace.example/simple\n",
			}},
			want: []string{"https://user.example/simple"},
		},
		"the environment's own file over the user's": {
			machine: machine{
				vars: map[string]string{"VIRTUAL_ENV": "/srv/venv"},
				files: map[string]string{
					"home/ada/.config/pip/pip.conf": "[global]\nindex-url = https://user.example/simple\n",
					"srv/venv/pip.conf":             "[global]\nindex-url = https://venv.example/simple\n",
				},
			},
			want: []string{"https://venv.example/simple"},
		},
		"PIP_CONFIG_FILE over all files, and instead of the user's": {
			machine: machine{
				vars: map[string]string{"PIP_CONFIG_FILE": "/srv/pip.conf"},
				files: map[string]string{
					"srv/pip.conf":                  "[global]\nindex-url = https://own.example/simple\n",
					"etc/pip.conf":                  "[global]\nindex-url = https://etc.example/simple\n",
					"home/ada/.config/pip/pip.conf": "[global]\nextra-index-url = https://user.example/simple\n",
				},
			},
			want: []string{"https://own.example/simple"},
		},
		"PIP_CONFIG_FILE=/dev/null means no file": {
			machine: machine{
				pip:   "https://default.example/simple",
				vars:  map[string]string{"PIP_CONFIG_FILE": "/dev/null"},
				files: map[string]string{"etc/pip.conf": "[global]\nindex-url = https://etc.example/simple\n"},
			},
			want: []string{"https://default.example/simple"},
		},
		"the command's section over global, wherever it stands": {
			machine: machine{files: map[string]string{
				"etc/pip.conf":                  "[install]\nindex-url = https://install.example/simple\n",
				"home/ada/.config/pip/pip.conf": "[global]\nindex-url = https://user.example/simple\n",
			}},
			want: []string{"https://install.example/simple"},
		},
		"a value over several lines": {
			machine: machine{files: map[string]string{
				"etc/pip.conf": "[global]\nindex-url = https://main.example/simple\nextra-index-url =\n    https://one.example/simple\n    # not this\n    https://two.example/simple\ntimeout = 60\n",
			}},
			want: []string{"https://main.example/simple", "https://one.example/simple", "https://two.example/simple"},
		},
		"no index wanted": {
			machine: machine{pip: "https://default.example/simple", vars: map[string]string{"PIP_NO_INDEX": "1"}},
			missing: "told to use no index",
		},
		"an index that is no URL": {
			machine: machine{vars: map[string]string{"PIP_INDEX_URL": "ada:s3cret@py.example/simple"}},
			missing: `pypi: "(not a URL)", set by PIP_INDEX_URL, is no http or https URL`,
		},
		"an index of files, and a good one": {
			machine: machine{files: map[string]string{"etc/pip.conf": "[global]\nindex-url = file:///srv/simple\nextra-index-url = https://py.example/simple\n"}},
			want:    []string{"https://py.example/simple"},
			missing: `"file:///srv/simple", set by /etc/pip.conf, is no http`,
		},
		"a password in netrc": {
			machine: machine{
				vars: map[string]string{"PIP_INDEX_URL": "https://py.example/simple", "PIP_EXTRA_INDEX_URL": "https://bob:own@py.example/x https://free.example/simple"},
				files: map[string]string{
					"home/ada/.netrc": "machine py.example login ada password s3cret\nmacdef init\nmachine free.example login no password no\n\n",
				},
			},
			want: []string{"https://ada:s3cret@py.example/simple", "https://bob:own@py.example/x", "https://free.example/simple"},
		},
		"no pip at all": {missing: "this machine has no pip"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := test.machine.host(t)
			if !slices.Equal(got.Indexes, test.want) {
				t.Errorf("indexes are %q, want %q", got.Indexes, test.want)
			}
			if missing := strings.Join(got.Missing, "\n"); !strings.Contains(missing, test.missing) {
				t.Errorf("missing says %q, want %q in it", missing, test.missing)
			}
		})
	}
}

// A run that has every file must not start the machine's Python.
func TestHostIsReadWhenAFileIsMissing(t *testing.T) {
	data := content(100)
	asked := 0
	env := Environment{Env: map[string]string{"HOME": "/home/ada"}, Root: t.TempDir(), Run: func(context.Context, string, ...string) ([]byte, error) {
		asked++
		return []byte("https://default.example/simple\n"), nil
	}}
	profiles, err := LoadProfiles([]diag.Str{{Value: "host"}}, nil, env)
	if err != nil {
		t.Fatal(err)
	}
	f := newFetcher(t, profiles...)
	if err := os.WriteFile(f.Store.Path(debBlob(data).SHA256), data, 0o644); err != nil {
		t.Fatal(err)
	}
	mustFetch(t, f, debBlob(data))
	if asked != 0 {
		t.Errorf("pip was asked %d times though nothing was missing", asked)
	}
	for range 2 {
		if got := f.Indexes(); len(got) != 1 || got[0] != (Index{"host", "https://default.example/simple"}) {
			t.Errorf("indexes are %v", got)
		}
	}
	if asked != 1 {
		t.Errorf("pip was asked %d times, want once", asked)
	}
}

func TestProxyOfTheEnvironment(t *testing.T) {
	data := content(1000)
	proxy := storetest.New(t) // what it is asked as a proxy, it answers as a mirror
	proxy.Add(debPath, data)
	f := newFetcher(t, mirrorProfile("far", "http://mirror.invalid"))
	f.Env = Environment{Env: map[string]string{"http_proxy": proxy.URL}}
	mustFetch(t, f, debBlob(data))
	mustHave(t, f, data)

	for name, env := range map[string]map[string]string{
		"no proxy for the host": {"http_proxy": proxy.URL, "no_proxy": "mirror.invalid"},
		"none set":              {},
	} {
		request := httptest.NewRequest(http.MethodGet, "http://mirror.invalid/", nil)
		if got, err := (Environment{Env: env}).proxy()(request); got != nil || err != nil {
			t.Errorf("%s: goes through %v, %v", name, got, err)
		}
	}
}
