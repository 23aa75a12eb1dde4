package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
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
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"code": code, "keys": keys, "spoil": spoil, "lose": loseLines, "graph": readGraph},
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

// spoil FILE makes a lock what a merge would leave: both sides of its epoch and
// of a recipe, with marks.
func spoil(ts *testscript.TestScript, neg bool, args []string) {
	old := ts.ReadFile(args[0])
	text := regexp.MustCompile(`(?m)^epoch .*\n`).ReplaceAllString(old, "<<<<<<< HEAD\nepoch source-date-epoch 1600000000 - -\n=======\n$0>>>>>>> topic\n")
	text = regexp.MustCompile(`(?m)^recipe torch .*\n`).ReplaceAllString(text, "<<<<<<< HEAD\n$0||||||| base\nrecipe torch - - h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n=======\nrecipe torch - - h1:BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA=\n>>>>>>> topic\n")
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o644))
}

// lose FILE NAME takes every line of a package out of a lock.
func loseLines(ts *testscript.TestScript, neg bool, args []string) {
	kept := ""
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		if !strings.Contains(line, " "+args[1]+"-") {
			kept += line
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(kept), 0o644))
}

var (
	dotNode = regexp.MustCompile(`^  "((?:[^"\\]|\\.)*)" \[label="(?:[^"\\]|\\.)*"(, \w+=\w+)*\];$`)
	dotEdge = regexp.MustCompile(`^  "((?:[^"\\]|\\.)*)" -> "((?:[^"\\]|\\.)*)";$`)
)

// readGraph is graph FILE: it reads what `plan --format dot` writes: every node once, every edge
// between two of them.
func readGraph(ts *testscript.TestScript, neg bool, args []string) {
	lines := strings.Split(strings.TrimSuffix(ts.ReadFile(args[0]), "\n"), "\n")
	if !strings.HasPrefix(lines[0], `digraph "`) || lines[len(lines)-1] != "}" {
		ts.Fatalf("no graph: %q to %q", lines[0], lines[len(lines)-1])
	}
	nodes, edges, cells := map[string]bool{}, map[string]bool{}, 0
	for _, line := range lines[1 : len(lines)-1] {
		if m := dotNode.FindStringSubmatch(line); m != nil && !nodes[m[1]] {
			nodes[m[1]] = true
			if strings.HasPrefix(m[1], "cell ") {
				cells++
			}
		} else if m := dotEdge.FindStringSubmatch(line); m != nil && nodes[m[1]] && nodes[m[2]] && !edges[line] {
			edges[line] = true
		} else if line != "  rankdir=LR;" && line != "  node [shape=box, style=rounded];" {
			ts.Fatalf("not understood, twice, or between unknown nodes: %s", line)
		}
	}
	fmt.Fprintf(ts.Stdout(), "%d cells, %d layers, %d edges\n", cells, len(nodes)-cells, len(edges))
}
