package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/imgforge/imgforge/internal/builder"
)

// look is one thing the doctor looks at.
type look struct {
	name string
	look func(ctx context.Context, p *patient) []finding
}

// looks are all of them, in the order they are shown.
var looks = []look{
	{"matrix", checkMatrix},
	{"builder", checkRemote},
	{"root", checkRoot},
	{"runtime", checkRuntime},
	{"buildkitd", checkBuildkitd},
	{"cgroups", checkCgroups},
	{"overlayfs", checkOverlay},
	{"disk", checkDisk},
	{"clock", checkClock},
	{"proxy", checkProxy},
	{"dns", checkDNS},
	{"mirrors", checkMirrors},
	{"nvidia", checkNVIDIA},
}

func fine(format string, args ...any) []finding {
	return []finding{{Level: levelOK, What: fmt.Sprintf(format, args...)}}
}

func found(level, what, cure string) []finding {
	return []finding{{Level: level, What: what, Cure: cure}}
}

// onEngine is an error where our own engine builds, and nothing to know elsewhere.
func (p *patient) onEngine(what, cure string) []finding {
	if p.remote != "" {
		return found(levelNote, what+"; the engine at "+p.remote+" needs none of it here", "")
	}
	return found(levelError, what, cure+", or name an engine elsewhere with --builder or BUILDKIT_HOST")
}

func checkMatrix(_ context.Context, p *patient) []finding {
	if p.inputs != nil {
		return found(levelWarning, "no matrix to look at: "+p.inputs.Error(), "name one with --matrix; until then disk, mirrors and cells are not judged by it")
	}
	return fine("%d cells", len(p.cells))
}

func checkRemote(ctx context.Context, p *patient) []finding {
	if p.remote == "" {
		return fine("our own buildkitd, in %s", filepath.Join(p.state, "engine"))
	}
	if err := p.machine.dial(ctx, p.remote, p.tls); err != nil {
		return found(levelError, err.Error(), "start it, or unset BUILDKIT_HOST to use our own; see docs/engine.md for URLs and TLS")
	}
	return fine("the engine at %s answers", p.remote)
}

func checkRoot(_ context.Context, p *patient) []finding {
	if p.machine.uid != 0 {
		return p.onEngine(fmt.Sprintf("this is user %d, not root", p.machine.uid), "run as root")
	}
	if ids, err := p.machine.read("/proc/self/uid_map"); err == nil {
		if f := strings.Fields(string(ids)); len(f) == 3 && (f[1] != "0" || f[2] != "4294967295") {
			return found(levelWarning, "root here is root of a user namespace only", "if overlayfs is refused below, run outside of it, or name an engine elsewhere with --builder")
		}
	}
	return fine("root")
}

func checkRuntime(ctx context.Context, p *patient) []finding {
	path := p.machine.find(p.machine.env["IMGFORGE_RUNC"], "runc")
	if path == "" {
		return p.onEngine("there is no runc, neither beside imgforge nor on PATH", "install it (apt-get install runc)")
	}
	banner, err := p.machine.output(ctx, path, "--version")
	if err != nil {
		return p.onEngine(fmt.Sprintf("%s --version: %v", path, err), "install runc anew")
	}
	if err := builder.CheckRuntime(path, banner); err != nil {
		return p.onEngine(strings.TrimPrefix(err.Error(), builder.ErrNoEngine.Error()+": "), "install runc 1.1.5 or newer")
	}
	first, _, _ := strings.Cut(banner, "\n")
	return fine("%s is %s", path, first)
}

func checkBuildkitd(ctx context.Context, p *patient) []finding {
	path := p.machine.find(p.machine.env["IMGFORGE_BUILDKITD"], "buildkitd")
	if path == "" {
		return p.onEngine("there is no buildkitd, neither beside imgforge nor on PATH", "run `make build`, which makes both")
	}
	out, err := p.machine.output(ctx, path, "--version")
	if err != nil {
		return p.onEngine(fmt.Sprintf("%s --version: %v", path, err), "run `make build`")
	}
	if fields := strings.Fields(out); len(fields) < 3 || fields[2] != p.machine.engine {
		return found(levelWarning, fmt.Sprintf("%s is %s, and imgforge is made with BuildKit %s: layers may be compressed in another way",
			path, strings.TrimSpace(out), p.machine.engine), "run `make build` for both, so that digests are the same as elsewhere")
	}
	return fine("%s is BuildKit %s", path, p.machine.engine)
}

func checkCgroups(_ context.Context, p *patient) []finding {
	mounts, err := p.machine.read("/proc/self/mountinfo")
	if err != nil || !strings.Contains(string(mounts), " - cgroup") {
		return p.onEngine("no cgroups are mounted, and runc starts nothing without", "mount them: mount -t cgroup2 none /sys/fs/cgroup")
	}
	return fine("mounted")
}

func checkOverlay(_ context.Context, p *patient) []finding {
	if kinds, err := p.machine.read("/proc/filesystems"); err == nil && !strings.Contains(string(kinds), "\toverlay\n") {
		return p.onEngine("the kernel has no overlayfs", "load it: modprobe overlay")
	}
	if p.machine.uid != 0 || p.remote != "" {
		return fine("the kernel has it")
	}
	if err := p.machine.overlay(p.state); err != nil {
		return p.onEngine(fmt.Sprintf("overlayfs does not work in %s: %v", p.state, err), "put --state on a disk with ext4 or xfs (overlayfs does not lie on overlayfs)")
	}
	return fine("works in %s", p.state)
}

// checkDisk reckons with what was measured: a locked file takes about four times
// its size as cached layers and as an image.
func checkDisk(_ context.Context, p *patient) []finding {
	free := p.machine.free(p.state)
	least, good := p.need.download, p.need.download
	if p.remote == "" {
		good += 4 * p.need.all
	}
	what := fmt.Sprintf("%s are free in %s; these cells take about %s from nothing, %s of it downloads", human(free), p.state, human(good), human(least))
	cure := "make room (imgforge builder prune --all), choose cells with --only, or name another disk with --state"
	switch {
	case free < least || free < 1<<28:
		return found(levelError, what, cure)
	case free < good:
		return found(levelWarning, what, cure)
	}
	return fine("%s", what)
}

func checkClock(_ context.Context, p *patient) []finding {
	now, epoch := p.machine.now(), time.Unix(p.epoch, 0)
	if now.Before(epoch) {
		return found(levelError, fmt.Sprintf("the clock says %s, before the lock's epoch %s", now.UTC().Format(time.RFC3339), epoch.UTC().Format(time.RFC3339)), "set the clock")
	}
	return fine("%s", now.UTC().Format(time.RFC3339))
}

func checkProxy(_ context.Context, p *patient) (out []finding) {
	for _, name := range []string{"http_proxy", "https_proxy", "all_proxy"} {
		for _, name := range []string{name, strings.ToUpper(name)} {
			value := p.machine.env[name]
			if value == "" {
				continue
			}
			u, err := url.Parse(value)
			if err != nil || u.Host == "" {
				out = append(out, found(levelError, name+" is no URL of a proxy", "write it as http://HOST:PORT")...)
				continue
			}
			out = append(out, fine("%s is %s", name, u.Redacted())...)
		}
	}
	if file := p.machine.env["SSL_CERT_FILE"]; file != "" {
		switch data, err := p.machine.read(file); {
		case err != nil:
			out = append(out, found(levelError, "SSL_CERT_FILE: "+err.Error(), "name a file with your certificate authorities, or unset it")...)
		case !certificates(data):
			out = append(out, found(levelError, "SSL_CERT_FILE: "+file+" has no certificate in PEM", "name a file with your certificate authorities, or unset it")...)
		default:
			out = append(out, fine("certificate authorities are those of %s", file)...)
		}
	}
	if len(out) == 0 {
		return fine("none, and the system's certificate authorities")
	}
	return out
}

// addresses are one page of each host of each mirror, by profile.
func (p *patient) addresses() map[string][]*url.URL {
	out := map[string][]*url.URL{}
	seen := map[string]bool{}
	add := func(mirror, raw string) {
		u, err := url.Parse(raw)
		if err == nil && u.Host != "" && !seen[mirror+" "+u.Host] {
			seen[mirror+" "+u.Host] = true
			out[mirror] = append(out[mirror], u)
		}
	}
	for _, m := range p.mirrors {
		for _, name := range slices.Sorted(maps.Keys(m.Archives)) {
			add(m.Name, m.Archives[name])
		}
	}
	for _, i := range p.indexes {
		add(i.Mirror, i.URL)
	}
	return out
}

func checkDNS(ctx context.Context, p *patient) []finding {
	for _, name := range []string{"https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY"} {
		if p.machine.env[name] != "" {
			return fine("the proxy looks names up")
		}
	}
	var last error
	hosts := map[string]bool{}
	for _, urls := range p.addresses() {
		for _, u := range urls {
			hosts[u.Hostname()] = true
		}
	}
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		if last = p.machine.resolve(ctx, host); last == nil {
			return fine("%s is found", host)
		}
	}
	if last == nil {
		return fine("no mirror's name to look up")
	}
	return found(levelError, "no mirror's name is found: "+last.Error(), "look at /etc/resolv.conf, or set https_proxy")
}

func checkMirrors(ctx context.Context, p *patient) (out []finding) {
	good := 0
	all := p.addresses()
	for _, m := range p.mirrors {
		var bad []string
		for _, u := range all[m.Name] {
			if err := p.machine.answers(ctx, u.String()); err != nil {
				var wrapped *url.Error
				if errors.As(err, &wrapped) {
					err = wrapped.Err // it repeats the address
				}
				bad = append(bad, u.Host+": "+err.Error())
			}
		}
		switch {
		case len(bad) > 0:
			out = append(out, found(levelWarning, m.Name+": "+strings.Join(bad, "; "), "choose others with --mirrors; `imgforge mirrors` looks closer")...)
		case len(all[m.Name]) == 0:
			out = append(out, found(levelWarning, m.Name+" names no server", "see docs/mirrors.md, or choose others with --mirrors")...)
		default:
			good++
			out = append(out, fine("%s answers", m.Name)...)
		}
	}
	if good == 0 && len(p.mirrors) > 0 && p.need.download > 0 {
		out = append(out, found(levelError, fmt.Sprintf("no mirror answers in full, and %s are to be downloaded", human(p.need.download)), "choose mirrors with --mirrors, or set https_proxy")...)
	}
	return out
}
