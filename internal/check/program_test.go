package check

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Every program runs as it is delivered, whole in its arguments, and answers with one
// line of JSON that its exit code agrees with; where what it tests is missing it fails.
func TestPrograms(t *testing.T) {
	missing := []string{"torch-numpy", "opencv", "matplotlib-agg", "jupyter-kernel", "nvidia-smi", "torch-cuda", "torch-compile", "nccl"}
	with := map[string]map[string]string{"imports": {"distributions": "no-such-distribution"}}
	missing = append(missing, "imports")
	hostile := t.TempDir() // the directory it starts in, with modules that must not be taken for Python's own
	for _, module := range []string{"types", "json", "subprocess", "result", "torch", "numpy", "cv2"} {
		if err := os.WriteFile(filepath.Join(hostile, module+".py"), []byte("raise SystemExit('hostile')"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ran := 0
	for _, b := range Builtins() {
		if b.Kind == Static {
			continue
		}
		ran++
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			args, err := Program(b.Name, with[b.Name])
			if err != nil {
				t.Fatal(err)
			}
			for _, arg := range args {
				if len(arg) > 100<<10 {
					t.Errorf("an argument has %d bytes: Linux takes 128 KiB", len(arg))
				}
			}
			if args[0] == "python3" {
				args[0] = "/usr/bin/python3" // Debian's, which has none of what is tested
			}
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Dir = hostile
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err = cmd.Run()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			got := Check{Use: b.Name}.Judge(Output{Exit: cmd.ProcessState.ExitCode(), Stdout: stdout.Bytes(), Stderr: stderr.Bytes()})
			if strings.Contains(got.Summary, "gave no result") || strings.Contains(got.Summary, "contradicts") {
				t.Errorf("%+v\n%s", got, stderr.String())
			}
			for _, name := range missing {
				if name == b.Name && got.OK {
					t.Errorf("it passes where there is nothing to test: %+v", got)
				}
			}
			if strings.Contains(stderr.String(), "hostile") {
				t.Errorf("it runs what lies where it starts:\n%s", stderr.String())
			}
			if n := bytes.Count(stdout.Bytes(), []byte("\n")); n != 1 {
				t.Errorf("%d lines on standard output:\n%s", n, stdout.String())
			}
		})
	}
	if ran < 10 {
		t.Errorf("only %d programs", ran)
	}
}

// An option that a program does not know is wrong usage, not a result.
func TestProgramOptions(t *testing.T) {
	for _, b := range Builtins() {
		if b.Kind == Static {
			continue
		}
		args, err := Program(b.Name, map[string]string{"no-such-option": "x"})
		if err != nil || strings.HasSuffix(args[0], "sh") {
			continue
		}
		out, err := exec.Command("/usr/bin/python3", args[1:]...).Output()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 2 || len(out) > 0 {
			t.Errorf("%s: %v, %s", b.Name, err, out)
		}
		for name := range b.Options { // each that is documented is known
			args, _ := Program(b.Name, map[string]string{name: ""})
			if err := exec.Command("/usr/bin/python3", args[1:]...).Run(); errors.As(err, &exit) && exit.ExitCode() == 2 {
				t.Errorf("%s does not know --%s", b.Name, name)
			}
		}
	}
}
