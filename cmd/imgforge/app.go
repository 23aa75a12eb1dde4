package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/imgforge/imgforge/internal/diag"
)

// app is what every command shares: the world as it was handed to run.
type app struct {
	env            map[string]string
	stdin          io.Reader
	stdout, stderr io.Writer
	state          string // --state
}

// run is the whole program as a function: nothing of it is global.
func run(ctx context.Context, env []string, stdin io.Reader, stdout, stderr io.Writer, args []string) int {
	a := &app{env: map[string]string{}, stdin: stdin, stdout: stdout, stderr: stderr}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		a.env[name] = value
	}
	root := a.command()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err != nil && err.Error() != "" {
		var text bytes.Buffer
		diag.Print(&text, err, os.ReadFile)
		stderr.Write(hideLogins(text.Bytes()))
		if codeOf(err) == exitInput {
			fmt.Fprintln(stderr, "\nSee `imgforge --help`, or the command's own.")
		}
	}
	return codeOf(err)
}

// login is the name and the password in a URL, or before a registry's name. A digest
// after it makes it a reference: debian:12@sha256:...
var login = regexp.MustCompile(`(://|[^/@:\s"]+:)[^/@:\s"]+(:[^/@\s"]*)?@(sha\d+:)?`)

// hideLogins covers names and passwords in what is printed, such as a line of a
// file of mirrors. Columns stay where they are.
func hideLogins(text []byte) []byte {
	return login.ReplaceAllFunc(text, func(m []byte) []byte {
		if bytes.HasSuffix(m, []byte(":")) {
			return m
		}
		scheme := ""
		if bytes.HasPrefix(m, []byte("://")) {
			scheme = "://"
		}
		return fmt.Appendf(nil, "%s%s@", scheme, strings.Repeat("*", utf8.RuneCount(m)-len(scheme)-1))
	})
}

func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "imgforge",
		Short: "Build reproducible CUDA/PyTorch base images",
		Long: `imgforge builds reproducible CUDA/PyTorch base images.

A matrix (YAML) says which CUDA, PyTorch, Python and NVIDIA driver floors to
build, and which recipes to layer. A lock says, to the last byte, what goes in.
A build reads nothing else and runs with no network inside: equal locks give
equal digests, on any machine, from any mirror.

  imgforge plan  --matrix matrix/universal.yaml     what would be built
  imgforge lock  --matrix matrix/universal.yaml     resolve what is not locked yet
  imgforge build --matrix matrix/universal.yaml --only 'cuda=12.1,torch=2.4.1'

Exit codes: 0 done; 1 a step or check failed; 2 bad input or usage;
3 the machine, the network, an engine or a registry, or interrupted.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.PersistentFlags().StringVar(&a.state, "state", "", "directory for the store and the embedded engine (default $IMGFORGE_STATE, else the user's state directory)")
	root.AddCommand(a.buildCommand(), a.planCommand(), a.lockCommand(), a.mirrorsCommand(), a.vendorCommand(), a.compatCommand(),
		a.smokeCommand(), a.builderCommand(), a.doctorCommand(), a.schemaCommand(), a.versionCommand())
	return root
}

// stateDir is where downloads and the embedded engine live.
func (a *app) stateDir() (string, error) {
	dir := a.state
	if dir == "" {
		dir = a.env["IMGFORGE_STATE"]
	}
	if dir == "" && a.env["XDG_STATE_HOME"] != "" {
		dir = filepath.Join(a.env["XDG_STATE_HOME"], "imgforge")
	}
	if dir == "" && a.env["HOME"] != "" {
		dir = filepath.Join(a.env["HOME"], ".local", "state", "imgforge")
	}
	if dir == "" {
		return "", infra(fmt.Errorf("no state directory: neither HOME nor XDG_STATE_HOME is set; name one with --state"))
	}
	return filepath.Abs(dir)
}
