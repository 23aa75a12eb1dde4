package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/imgforge/imgforge/internal/plan"
)

// contender is one way to make the same bytes into layers.
type contender struct {
	name string
	what string
	run  func(context.Context, *yard) error
}

var contenders = []contender{
	{"A", "wheel layers, zstd", func(ctx context.Context, y *yard) error { _, err := y.layers(ctx, y.in.plan); return err }},
	{"B", "one `RUN pip install`, gzip", func(ctx context.Context, y *yard) error { return y.plain(ctx, "gzip") }},
	{"C", "one `RUN pip install`, zstd", func(ctx context.Context, y *yard) error { return y.plain(ctx, "zstd") }},
	{"D", "`unzip -p | zstd`, to nowhere", stream},
}

// wheels measures the contenders in turns. Each starts from a copy of one engine
// state in which the base, a virtual environment and pip are there already.
func (b *bench) wheels(ctx context.Context) error {
	for _, name := range []string{"unzip", "zstd"} {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("%w; `make setup` installs it", err)
		}
	}
	in, err := b.prepareInputs(ctx)
	if err != nil {
		return err
	}
	warm := filepath.Join(b.state, "warm")
	if !b.keep || !reuse(warm, in) {
		if err := prepareEngine(ctx, warm, in); err != nil {
			return err
		}
	}
	if !b.keep {
		defer os.RemoveAll(warm)
	}
	w := &Wheels{Names: measured, Packed: in.packed, Unpacked: in.unpacked, Seconds: map[string][]float64{}, CPU: map[string][]float64{}}
	for round := range b.rounds {
		for i := range contenders {
			c := contenders[(i+round)%len(contenders)] // nobody always comes after the same one
			if !strings.Contains(b.contenders, c.name) {
				continue
			}
			took, cpu, err := b.measure(ctx, c, warm, in)
			if err != nil {
				return fmt.Errorf("%s: %w", c.what, err)
			}
			w.Seconds[c.name] = append(w.Seconds[c.name], took.Seconds())
			w.CPU[c.name] = append(w.CPU[c.name], cpu.Seconds())
			say("round %d: %s: %.1f s, %.1f s of CPU", round+1, c.what, took.Seconds(), cpu.Seconds())
		}
	}
	b.result.Wheels = w
	return nil
}

// prepareEngine makes the state that every contender starts from, and
// remembers the digest of the image in it.
func prepareEngine(ctx context.Context, dir string, in *inputs) (err error) {
	say("preparing the base")
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	y, err := openYard(ctx, dir, in)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, y.close()) }()
	small := *in.plan
	small.Wheels = []plan.Layer{{Name: "pip", Wheels: []plan.Blob{in.pip}}}
	img, err := y.layers(ctx, &small)
	if err != nil {
		return err
	}
	in.base = img.Manifest.Digest.String()
	for _, compression := range []string{"zstd", "gzip"} {
		if err := y.export(ctx, compression, []string{"true"}); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "base"), []byte(in.base), 0o644)
}

// reuse takes the prepared state of an earlier run.
func reuse(warm string, in *inputs) bool {
	data, err := os.ReadFile(filepath.Join(warm, "base"))
	in.base = string(data)
	return err == nil
}

// measure times one contender from a fresh copy of the prepared state: by the
// clock, and by the processors, which other load on the machine moves less. The
// latter includes the engine's start and end.
func (b *bench) measure(ctx context.Context, c contender, warm string, in *inputs) (took, cpu time.Duration, err error) {
	dir := filepath.Join(b.state, "run")
	if err := os.RemoveAll(dir); err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(dir)
	if out, err := exec.CommandContext(ctx, "cp", "-a", warm, dir).CombinedOutput(); err != nil {
		return 0, 0, fmt.Errorf("cp: %w: %s", err, out)
	}
	before := cpuTime()
	y, err := openYard(ctx, dir, in)
	if err != nil {
		return 0, 0, err
	}
	y.verbose = b.verbose
	syscall.Sync() // what others left unwritten is not on this one's time
	start := time.Now()
	err = c.run(ctx, y)
	took = time.Since(start)
	err = errors.Join(err, y.close()) // a child's time counts once it has ended
	return took, cpuTime() - before, err
}

// cpuTime is what this process and its ended children have used.
func cpuTime() time.Duration {
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
}

// stream is what any tool must at least do: inflate every wheel and compress
// the whole, once, with nothing written. Level 3 is what BuildKit uses.
func stream(ctx context.Context, y *yard) error {
	script := "set -e; for w; do unzip -p \"$w\"; done | zstd -q -3 -c > /dev/null"
	args := []string{"-c", script, "sh"}
	for _, w := range y.in.wheelsOf() {
		args = append(args, y.in.store.Path(w.SHA256))
	}
	out, err := exec.CommandContext(ctx, "sh", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
