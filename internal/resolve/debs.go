package resolve

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/plan"
)

//go:embed files/debs.sh
var debsScript []byte

// ask is one question to apt.
type ask struct {
	packages []string
	status   string       // of dpkg: what is installed already
	upgrades bool         // what is installed may be replaced by a newer version
	keep     []lock.Entry // to be chosen again where the archive still has them
}

// debs answers base and debs needs: bases first, then what goes on top of them.
func (s *session) debs(ctx context.Context, needs []lock.Need) {
	if needs[0].Request.On != "" {
		s.onTop(ctx, needs, ask{status: s.archive.status, upgrades: true})
		return
	}
	bases := s.basesOf(needs)
	if len(bases) == 0 {
		return
	}
	// All bases of one Debian hold the same packages.
	base, err := s.apt(ctx, "apt: the base", []ask{{packages: append(s.archive.minimal(), "debian-archive-keyring", "python3"), keep: bases[0].Keep}})
	if err == nil {
		err = base[0].err
	}
	if err != nil {
		s.failAll(slices.DeleteFunc(slices.Clone(needs), func(n lock.Need) bool { return n.Request.Kind == "wheels" }), err)
		return
	}
	for _, n := range bases {
		s.answer(n, entriesOf(base[0].debs))
	}
	s.out.Requires = append(s.out.Requires, requiresOfDebs(base[0].debs)...)
	s.onTop(ctx, needs, ask{status: statusOf(base[0].debs)})
}

// onTop answers debs needs on a base: on is what all their asks have in common.
func (s *session) onTop(ctx context.Context, needs []lock.Need, on ask) {
	var top []lock.Need
	var asks []ask
	for _, n := range needs {
		if n.Request.Kind == "debs" {
			top = append(top, n)
			on.packages, on.keep = n.Request.Packages, n.Keep
			asks = append(asks, on)
		}
	}
	if len(top) == 0 {
		return
	}
	solved, err := s.apt(ctx, "apt: packages on the base", asks)
	if err != nil {
		s.failAll(top, err)
		return
	}
	for i, n := range top {
		if solved[i].err != nil {
			s.fail(n, "is the package in "+n.Request.Suite+" "+strings.Join(components(n.Request), " ")+"?", solved[i].err)
			continue
		}
		if name := virtual(n.Request.Packages, statusOf(solved[i].debs)+on.status); name != "" {
			s.fail(n, "name the package that is wanted", fmt.Errorf("%s is no package of its own: others provide it", name))
			continue
		}
		s.answer(n, entriesOf(solved[i].debs))
		s.out.Requires = append(s.out.Requires, requiresOfDebs(solved[i].debs)...)
	}
}

// virtual is the first name that apt answered with a package of another name, or
// "". A lock shows by its names that it is complete, so it takes real ones alone.
func virtual(names []string, status string) string {
	for _, name := range names {
		if !strings.Contains("\n"+status, "\nPackage: "+name+"\n") {
			return name
		}
	}
	return ""
}

// basesOf lists the base needs, and those that debs needs imply.
func (s *session) basesOf(needs []lock.Need) []lock.Need {
	var out []lock.Need
	seen := map[string]bool{}
	for _, n := range needs {
		if n.Request.Kind == "debs" {
			r := lock.Request{Kind: "base", Base: n.Request.Base, Suite: n.Request.Suite, Components: n.Request.Components, Arch: n.Request.Arch}
			n = lock.Need{Set: r.Set(), Request: r, Cells: n.Cells, Pos: n.Pos}
		}
		if n.Request.Kind == "base" && !seen[n.Set] {
			seen[n.Set] = true
			out = append(out, n)
		}
	}
	return out
}

func entriesOf(debs []*deb) []lock.Entry {
	out := make([]lock.Entry, len(debs))
	for i, d := range debs {
		out[i] = d.entry()
	}
	return out
}

// solved is apt's answer to one ask.
type solved struct {
	debs []*deb
	err  error
}

// apt asks all questions in one container.
func (s *session) apt(ctx context.Context, name string, asks []ask) ([]solved, error) {
	s.say("%s", name)
	job := s.archive.job(name)
	job.Args = []string{"sh", "/in/debs.sh", s.archive.arch}
	job.Files = map[string][]byte{"debs.sh": debsScript}
	for dir, blob := range s.archive.indexes {
		job.Blobs["archive/"+dir+"/Packages.xz"] = blob
	}
	for i, a := range asks {
		dir := "ask/" + strconv.Itoa(i) + "/"
		job.Files[dir+"packages"] = []byte(strings.Join(a.packages, "\n") + "\n")
		job.Files[dir+"status"] = []byte(a.status)
		job.Files[dir+"preferences"] = []byte(preferencesOf(a.keep))
	}
	files, err := s.Runner.Run(ctx, job)
	if err != nil {
		return nil, fmt.Errorf("apt could not run: %w", err)
	}
	out := make([]solved, len(asks))
	for i := range asks {
		out[i].debs, out[i].err = readApt(files, strconv.Itoa(i), s.archive.universe, asks[i].upgrades)
	}
	return out, nil
}

// statusOf is a dpkg status in which debs are installed.
func statusOf(debs []*deb) string {
	var b strings.Builder
	for _, d := range debs {
		b.WriteString(d.stanza + "\nStatus: install ok installed\n\n")
	}
	return b.String()
}

// install is a line of `apt-get -s`: what would be installed, over what.
var install = regexp.MustCompile(`(?m)^Inst (\S+) (\[\S*\] )?\((\S+) .*\[(\S+)\]\)`)

// readApt maps one answer of the script back to verified packages.
func readApt(files map[string][]byte, name string, u *universe, upgrades bool) ([]*deb, error) {
	if files[name+".end"] == nil {
		return nil, errors.New(aptReason(string(files[name+".err"]), string(files[name+".out"])))
	}
	var out []*deb
	for _, m := range install.FindAllStringSubmatch(string(files[name+".out"]), -1) {
		pkg, old, version, arch := m[1], m[2], m[3], m[4]
		if old != "" && !upgrades {
			return nil, fmt.Errorf("%s %s would replace the base's %s", pkg, version, strings.Trim(old, "[] "))
		}
		d := u.byKey[pkg+"_"+version+"_"+arch]
		if d == nil {
			return nil, fmt.Errorf("apt chose %s %s %s, which no verified index holds", pkg, version, arch)
		}
		out = append(out, d)
	}
	return out, nil
}

// aptReason picks the words of apt that say what is wrong.
func aptReason(stderr, stdout string) string {
	var out []string
	for line := range strings.Lines(stderr) {
		if reason, ok := strings.CutPrefix(strings.TrimSpace(line), "E: "); ok {
			out = append(out, reason)
		}
	}
	if _, unmet, ok := strings.Cut(stdout, "The following packages have unmet dependencies:\n"); ok {
		for line := range strings.Lines(unmet) {
			if !strings.HasPrefix(line, " ") {
				break
			}
			out = append(out, strings.Join(strings.Fields(line), " "))
		}
	}
	if len(out) == 0 {
		return "apt failed and did not say why"
	}
	return strings.Join(slices.Compact(out), "; ")
}

// job is a container of the archive's distribution, or of the base.
func (a *archive) job(name string) Job {
	return Job{Name: name, Root: a.root, Blobs: map[string]plan.Blob{}}
}
