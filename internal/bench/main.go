// Command bench measures imgforge on the machine it runs on and writes what it
// found to a Markdown page: `make bench`. Everything runs in a directory of its
// own; what is compared is measured in turns, so that other load hits all alike.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// options are the command line.
type options struct {
	state   string // directory for the store, the engines and the programs' own state
	mirrors string // profile that the store is filled from
	page    string // Markdown file to write; its hand-written part stays
	json    string // JSON file to write
	only    string // run one part alone and write nothing
	rounds  int
	keep    bool

	contenders string // of the wheels part
	verbose    bool
}

// bench is one run.
type bench struct {
	options
	result Result
}

// part is a group of measurements.
type part struct {
	name string
	run  func(*bench, context.Context) error
}

var parts = []part{{"wheels", (*bench).wheels}, {"rebuild", (*bench).rebuild}, {"plan", (*bench).plan}}

func main() {
	var o options
	flag.StringVar(&o.state, "state", ".cache/bench", "directory to work in; its store is kept for the next run")
	flag.StringVar(&o.mirrors, "mirrors", "host", "mirror profile to download from")
	flag.StringVar(&o.page, "page", "docs/benchmarks.md", "Markdown page whose table is rewritten")
	flag.StringVar(&o.json, "json", ".cache/bench.json", "JSON file to write")
	flag.StringVar(&o.only, "only", "", "wheels, rebuild or plan: run that part alone, and write no file")
	flag.IntVar(&o.rounds, "rounds", 3, "repetitions of everything")
	flag.BoolVar(&o.keep, "keep", false, "keep the prepared engine state for the next run with -keep")
	flag.StringVar(&o.contenders, "contenders", "ABCD", "those of the wheels part that run")
	flag.BoolVar(&o.verbose, "v", false, "show the steps of contender A as they run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	b := &bench{options: o}
	var err error
	if b.state, err = filepath.Abs(o.state); err != nil {
		return err
	}
	b.result.Machine = describeMachine(b.state)
	for _, p := range parts {
		if o.only != "" && o.only != p.name {
			continue
		}
		if err := p.run(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	table := b.result.table()
	fmt.Print(table)
	if o.only != "" {
		return nil
	}
	data, err := json.MarshalIndent(b.result, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(o.json, append(data, '\n'), 0o644); err != nil {
		return err
	}
	return rewrite(o.page, table)
}

// Everything between the marks of the page is generated.
const (
	beginMark = "<!-- begin: written by make bench -->\n"
	endMark   = "<!-- end -->\n"
)

// rewrite replaces the generated part of a page.
func rewrite(path, table string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(page, []byte(beginMark))
	_, after, ok2 := bytes.Cut(rest, []byte(endMark))
	if !ok || !ok2 {
		return fmt.Errorf("%s lacks the lines %q and %q, between which the table goes", path, beginMark, endMark)
	}
	page = bytes.Join([][]byte{before, []byte(beginMark), []byte(table), []byte(endMark), after}, nil)
	return os.WriteFile(path, page, 0o644)
}

// say reports progress.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...) }
