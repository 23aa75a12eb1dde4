package recipes_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/imgforge/imgforge/recipes"
)

// run runs a program that `make setup` installs and returns what it printed.
func run(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v (`make setup` installs what tests need)\n%s", strings.Join(cmd.Args, " "), err, out.String())
	}
	return out.String()
}

// shellOf tells which shell reads a shipped file; "" for none.
func shellOf(path string) string {
	switch {
	case strings.HasPrefix(path, "files/zsh/"):
		return "zsh"
	case filepath.Ext(path) == ".sh":
		return "sh"
	}
	return ""
}

func TestShellSyntax(t *testing.T) {
	seen := map[string]int{}
	err := fs.WalkDir(recipes.FS, "files", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		shell := shellOf(path)
		seen[shell]++
		if shell != "" {
			run(t, exec.Command(shell, "-n", path))
		}
		if shell == "sh" {
			run(t, exec.Command("shellcheck", path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// The shell of the build's own steps and of this repository.
	for _, pattern := range []string{"../internal/*/files/*.sh", "../scripts/*", "../.ci/run"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Errorf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			run(t, exec.Command("shellcheck", file))
		}
	}
	if seen["zsh"] == 0 || seen["sh"] == 0 {
		t.Errorf("checked %v: the shell files have moved", seen)
	}
}

// Longer shell belongs in a file, where shellcheck reads it.
func TestRunStepsAreShort(t *testing.T) {
	set := load(t)
	for _, name := range set.Names() {
		rec, _ := set.Get(name)
		for _, step := range rec.Run {
			if n := strings.Count(strings.TrimSpace(step.Command), "\n") + 1; n > 5 {
				t.Errorf("%s: %q has %d lines", step.Pos, step.Name, n)
			}
		}
	}
}

func TestJSONFiles(t *testing.T) {
	err := fs.WalkDir(recipes.FS, "files", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".json" {
			return err
		}
		data, err := fs.ReadFile(recipes.FS, path)
		if err == nil && !json.Valid(data) {
			t.Errorf("%s is not JSON", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestGPUCheck(t *testing.T) {
	run(t, exec.Command("python3", "testdata/gpu_check_test.py", "files/gpu-check/gpu-check.py"))
}

// Whatever this machine has, the command ends with 0 or 1, never in a traceback.
func TestGPUCheckHere(t *testing.T) {
	cmd := exec.Command("python3", "files/gpu-check/gpu-check.py", "--json", "--no-torch")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var report struct {
		OK       *bool
		Problems []struct{ Problem string }
	}
	if jsonErr := json.Unmarshal(stdout.Bytes(), &report); jsonErr != nil || report.OK == nil {
		t.Fatalf("no report: %v\n%s%s", jsonErr, stdout.String(), stderr.String())
	}
	if code := cmd.ProcessState.ExitCode(); (code == 0) != *report.OK || code > 1 || (code == 1) != (len(report.Problems) > 0) {
		t.Errorf("exit code %d (%v) for %s", code, err, stdout.String())
	}
	if stderr.Len() > 0 {
		t.Errorf("stderr: %s", stderr.String())
	}
}

func TestLoginShellKeepsTheEnvironment(t *testing.T) {
	for _, path := range []string{"/usr/bin:/bin", "/opt/venv/bin:/usr/bin:/bin", "/usr/bin:/bin:/opt/venv/bin"} {
		cmd := exec.Command("sh", "-euc", `. ./venv.sh; . ./venv.sh; echo "$PATH $VIRTUAL_ENV"`)
		cmd.Dir, cmd.Env = "files/python", []string{"PATH=" + path}
		got := strings.TrimSpace(run(t, cmd))
		if strings.Count(got, "/opt/venv/bin") != 1 || !strings.HasSuffix(got, " /opt/venv") {
			t.Errorf("PATH=%s becomes %s", path, got)
		}
	}
}

// zsh makes a command that reads the shipped files instead of the machine's.
func zsh(t *testing.T, home, script string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	for from, to := range map[string]string{"zshenv": ".zshenv", "zshrc": ".zshrc"} {
		data, err := os.ReadFile("files/zsh/" + from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			break // another's directory
		}
	}
	cmd := exec.Command("/usr/bin/zsh", "-d", "-ic", script)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/bin:/bin", "ZDOTDIR=" + dir, "LANG=C.UTF-8"}
	if home != "" {
		cmd.Env = append(cmd.Env, "HOME="+home)
	}
	return cmd
}

// asNobody runs cmd as a user without a home, where this test may do so.
func asNobody(cmd *exec.Cmd) *exec.Cmd {
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	return cmd
}

func TestZshIsQuiet(t *testing.T) {
	writable := t.TempDir()
	quiet := func(name string, cmd *exec.Cmd, env ...string) {
		cmd.Env = append(cmd.Env, env...)
		if out := run(t, cmd); out != "" {
			t.Errorf("%s: zsh prints %q", name, out)
		}
	}
	quiet("root", zsh(t, writable, "true"))
	quiet("root, second time", zsh(t, writable, "true"))
	quiet("no home", zsh(t, "", "true"))
	quiet("another user", asNobody(zsh(t, "/nonexistent", "true")))
	quiet("read-only home", asNobody(zsh(t, "/usr", "true")))
	quiet("home is /", asNobody(zsh(t, "/", "true")))
	quiet("sourced again", zsh(t, writable, ". $ZDOTDIR/.zshrc; . $ZDOTDIR/.zshrc"))
	quiet("a prompt is drawn", zsh(t, writable, "imgforge_branch; print -P $PROMPT >/dev/null"))
	for _, term := range []string{"xterm-256color", "dumb", "no-such-terminal"} {
		quiet(term, zsh(t, writable, "true"), "TERM="+term)
	}
}

func TestZshHasItsParts(t *testing.T) {
	script := `
		print suggestions $+functions[_zsh_autosuggest_start]
		print colours $+functions[_zsh_highlight]
		print completion $+functions[_main_complete] $_comps[git]
		print history $HISTFILE $SAVEHIST
		print newuser "$functions[zsh-newuser-install]"
		print -l x[y]
		bindkey '^[[A'`
	home := t.TempDir()
	got := run(t, zsh(t, home, script))
	for _, want := range []string{
		"suggestions 1\n", "colours 1\n", "completion 1 _git\n", "history " + home + "/.zsh_history 50000\n",
		"newuser \t:\n", "x[y]\n", `"^[[A" up-line-or-beginning-search`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// Highlighting wraps every widget it finds, so nothing may be loaded after it.
// zsh-autosuggestions#383, #587.
func TestHighlightingIsLastAndOnce(t *testing.T) {
	data, err := fs.ReadFile(recipes.FS, "files/zsh/zshrc")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	const plugin = "zsh-syntax-highlighting.zsh"
	if !strings.HasSuffix(lines[len(lines)-1], plugin) || strings.Count(string(data), plugin) != 1 {
		t.Errorf("%s must be sourced once, in the last line", plugin)
	}
}

func TestZshRunsNoBranchName(t *testing.T) {
	repo := t.TempDir()
	git := func(args ...string) {
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		cmd.Dir = repo
		run(t, cmd)
	}
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "x")
	git("checkout", "-q", "-b", "$(touch${IFS}pwned)")
	cmd := zsh(t, t.TempDir(), "imgforge_branch; print -P $PROMPT; setopt prompt_subst; print -P '%1v'")
	cmd.Dir = repo
	if got := run(t, cmd); !strings.Contains(got, "touch") {
		t.Errorf("no branch in the prompt: %s", got)
	}
	if _, err := os.Stat(filepath.Join(repo, "pwned")); err == nil {
		t.Error("the branch's name was run")
	}
}

// The run steps are tried on a small root, twice: they must give the same bytes.
func TestZshRunSteps(t *testing.T) {
	rec, _ := load(t).Get("zsh")
	var before string
	for range 2 {
		root := t.TempDir()
		files := map[string]string{
			"etc/passwd":          "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:n:/:/usr/sbin/nologin\n",
			"etc/default/useradd": "# defaults\nSHELL=/bin/sh\n",
		}
		for name, content := range files {
			path := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for _, step := range rec.Run {
			here := strings.NewReplacer("/etc/", root+"/etc/", "/usr/local/", root+"/usr/local/").Replace(step.Command)
			run(t, exec.Command("sh", "-euc", here))
		}
		var after string
		for _, name := range []string{"etc/passwd", "etc/default/useradd", "usr/local/share/zsh/zcompdump"} {
			data, err := os.ReadFile(filepath.Join(root, name))
			if err != nil {
				t.Fatal(err)
			}
			after += string(data)
		}
		want := "root:x:0:0:root:/root:/usr/bin/zsh\nnobody:x:65534:65534:n:/:/usr/sbin/nologin\n# defaults\nSHELL=/usr/bin/zsh\n#files: "
		if !strings.HasPrefix(after, want) || strings.Contains(after, root) {
			t.Errorf("the root became %.300s", after)
		}
		if before != "" && before != after {
			t.Error("two runs differ")
		}
		before = after
	}
}
