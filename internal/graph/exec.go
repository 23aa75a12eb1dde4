package graph

import (
	"strconv"
	"time"

	"github.com/moby/buildkit/client/llb"
)

// hostname is every step's own.
const hostname = "imgforge"

// hosts is every step's /etc/hosts.
const hosts = "127.0.0.1\tlocalhost " + hostname + "\n::1\tlocalhost ip6-localhost ip6-loopback\n"

// traced are what BuildKit adds to the environment of every step: where to send
// traces, and the trace the step belongs to, which is another one each time. A
// definition cannot take them away, since they are added last; a program can.
var traced = []string{
	"TRACEPARENT", "TRACESTATE",
	"OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
}

// exec is what every step has in common: no network, no clock, no place.
func (c *compiler) exec(name string, args []string, more ...llb.RunOption) []llb.RunOption {
	return append([]llb.RunOption{
		llb.Args(untraced(args)),
		llb.WithCustomName(name),
		llb.Network(llb.NetModeNone),
		llb.Hostname(hostname),
		llb.AddMount("/tmp", llb.Scratch(), llb.Tmpfs()),
		llb.AddMount("/run", llb.Scratch(), llb.Tmpfs()),
		c.etc("hosts", hosts),
		llb.AddEnv("SOURCE_DATE_EPOCH", strconv.FormatInt(c.plan.Epoch, 10)),
		llb.AddEnv("PYTHONHASHSEED", "0"),
		llb.AddEnv("PYTHONDONTWRITEBYTECODE", "1"),
		llb.AddEnv("LC_ALL", "C.UTF-8"),
		llb.AddEnv("HOME", "/root"),
		llb.AddEnv("PATH", systemPath),
	}, more...)
}

// offline is exec for steps whose results are kept: they do not see where the
// engine's machine asks for names.
func (c *compiler) offline(name string, args []string, more ...llb.RunOption) []llb.RunOption {
	return append(c.exec(name, args, c.etc("resolv.conf", "")), more...)
}

// untraced runs a command without what traced names.
func untraced(args []string) []string {
	line := []string{"env"}
	for _, name := range traced {
		line = append(line, "-u", name)
	}
	return append(line, args...)
}

// etc mounts our own file over one that BuildKit writes for every step: it drops
// its mount for one of the step's at the same place. Each is a state of its own,
// for BuildKit cannot tell of a failed step that mounts one twice.
func (c *compiler) etc(name, content string) llb.RunOption {
	when := llb.WithCreatedTime(time.Unix(c.plan.Epoch, 0).UTC())
	file := llb.Scratch().File(llb.Mkfile("/"+name, 0o644, []byte(content), when), llb.WithCustomName("etc: "+name))
	return llb.AddMount("/etc/"+name, file, llb.SourcePath("/"+name), llb.Readonly)
}
