package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts holds the command line to testdata/script: help, errors, exit codes.
// None needs an engine or a network.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("FLOW", repository("testdata", "flow", "small"))
			env.Setenv("MATRICES", repository("testdata", "err"))
			env.Setenv("HOME", env.WorkDir)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"code": code, "keys": keys},
	})
}

// code N ARG... runs imgforge and checks its exit code.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: code N ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec("imgforge", args[1:]...); err != nil {
		var exit interface{ ExitCode() int }
		if !asExit(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func asExit(err error, target *interface{ ExitCode() int }) bool {
	exit, ok := err.(interface{ ExitCode() int })
	if ok {
		*target = exit
	}
	return ok
}

// keys FILE prints the names that the JSON of a file is made of.
func keys(ts *testscript.TestScript, neg bool, args []string) {
	var value any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &value))
	found := map[string]bool{}
	walk("", value, found)
	fmt.Fprintln(ts.Stdout(), strings.Join(slices.Sorted(maps.Keys(found)), "\n"))
}

func walk(at string, value any, found map[string]bool) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			walk(at+"[]", item, found)
		}
	case map[string]any:
		for name, item := range v {
			if strings.HasSuffix(at, "labels") {
				name = "*" // the labels' names are the matrix's
			}
			walk(at+"."+name, item, found)
		}
	default:
		found[at] = true
	}
}
