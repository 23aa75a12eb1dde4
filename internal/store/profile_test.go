package store

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/imgforge/imgforge/internal/diag"
	"github.com/imgforge/imgforge/internal/golden"
)

func TestBuiltinProfiles(t *testing.T) {
	profiles, err := builtin()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range profiles {
		if len(p.Archives)+len(p.Indexes)+len(p.Wheels) == 0 {
			t.Errorf("%s carries nothing", p.Name)
		}
		said := strings.Join(p.Missing, "\n")
		for what, has := range map[string]bool{
			"debian: ": p.Archives["debian"] != "", "debian-security: ": p.Archives["debian-security"] != "",
			"pypi: it has": len(p.Indexes) > 0, "it does not mirror torch": len(p.Wheels) > 0,
		} {
			if has && strings.Contains(said, what) {
				t.Errorf("%s has %s and says why not", p.Name, what)
			}
		}
		for _, raw := range slices.Concat(p.Indexes, values(p.Archives), values(p.Wheels)) {
			if !strings.HasPrefix(raw, "https://") {
				t.Errorf("%s: %s is not https", p.Name, raw)
			}
		}
	}
	want := []string{"aliyun", "host", "huawei", "pytorch", "sjtu", "snapshot", "tencent", "tsinghua", "ustc"}
	if got := profileNames(); !slices.Equal(got, want) {
		t.Errorf("names %q", got)
	}
}

func values(m map[string]string) []string {
	var out []string
	for _, v := range m {
		out = append(out, v)
	}
	return out
}

func TestLoadProfiles(t *testing.T) {
	str := func(s string, line int) diag.Str {
		return diag.Str{Value: s, Pos: diag.Pos{File: "m.yaml", Line: line, Col: 5}}
	}
	got, err := LoadProfiles([]diag.Str{str("aliyun", 1), str("tsinghua", 2), str("aliyun", 3)}, nil, Environment{})
	if err != nil || len(got) != 2 || got[0].Name != "aliyun" || got[1].Name != "tsinghua" {
		t.Errorf("got %+v, %v", got, err)
	}
	_, err = LoadProfiles([]diag.Str{str("tsingua", 1), str("aliyun", 2), str("qqqqqqqqqqqqq", 3)}, nil, Environment{})
	var list diag.List
	if !errors.As(err, &list) || len(list) != 2 {
		t.Fatalf("got %v", err)
	}
	want := `m.yaml:1:5: unknown mirror profile "tsingua"; did you mean tsinghua? one of: aliyun, host, `
	if !strings.HasPrefix(list[0].Error(), want) {
		t.Errorf("got %s", list[0])
	}
	if _, err := LoadProfiles(nil, nil, Environment{}); err == nil {
		t.Error("no profile at all is no error")
	}
}

func TestParseProfiles(t *testing.T) {
	got, err := ParseProfiles("m.yaml", []byte(`
- name: ours
  archives: {debian: "http://deb.example:8080/debian"}
  indexes: [https://user:pass@py.example/simple]
  wheels: {cu118: https://py.example/whl/, cpu: https://py.example/cpu/}
  hosts: [Files.Example]
  any-host: true
  missing: ["pypi: little"]
`))
	if err != nil {
		t.Fatal(err)
	}
	p := got[0]
	if p.Name != "ours" || p.Archives["debian"] == "" || len(p.Indexes) != 1 || len(p.Wheels) != 2 || p.Hosts[0] != "files.example" || !p.AnyHost || len(p.Missing) != 1 {
		t.Errorf("got %+v", p)
	}
}

// Each testdata/profiles/<case>.yaml is refused with the text in <case>.out.
func TestParseProfilesErrors(t *testing.T) {
	cases, err := filepath.Glob("testdata/profiles/*.yaml")
	if err != nil || len(cases) < 3 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, file := range cases {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, err = ParseProfiles(filepath.Base(file), data)
		if err == nil {
			t.Errorf("%s is accepted", file)
			continue
		}
		golden.Check(t, strings.TrimSuffix(file, ".yaml")+".out", err.Error()+"\n")
	}
}

func FuzzParseProfiles(f *testing.F) {
	f.Add(mirrorTable)
	f.Add([]byte("- name: [x]\n  archives: 1\n  wheels: {cu118: {}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		profiles, err := ParseProfiles("m.yaml", data)
		for _, p := range profiles {
			if err == nil && p.Name == "" {
				t.Error("a profile without a name is accepted")
			}
		}
	})
}
