package resolve

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/imgforge/imgforge/internal/lock"
	"github.com/imgforge/imgforge/internal/plan"
)

//go:embed files/wheels.py
var wheelsScript []byte

// wheelAnswer is what wheels.py says of one ask.
type wheelAnswer struct {
	Index  string // that answered; empty when none did
	Pylock string
	Via    string // requirements with comments saying who wants them
	Tried  []struct{ Index, Reason string }
}

// wheelAnswers are all its answers.
type wheelAnswers struct {
	Tags    []string // of wheels the container's Python takes, best first
	Answers []wheelAnswer
}

// wheels answers wheels needs, all in one container with one cache.
func (s *session) wheels(ctx context.Context, needs []lock.Need) {
	var asked []lock.Need
	var known [][]indexWheel
	for _, n := range needs {
		stand, help, err := s.standIns(n.Request)
		if err != nil {
			s.fail(n, help, err)
			continue
		}
		asked, known = append(asked, n), append(known, stand)
	}
	if len(asked) == 0 {
		return
	}
	job, err := s.wheelJob(ctx, asked, known)
	var solved wheelAnswers
	if err == nil {
		s.say("uv: %d sets of wheels", len(asked))
		solved, err = runWheels(ctx, s.Runner, job, len(asked))
	}
	if err != nil {
		s.failAll(asked, err)
		return
	}
	for i, n := range asked {
		for _, t := range solved.Answers[i].Tried {
			s.say("index %s: %s", t.Index, t.Reason)
		}
		entries, help, err := s.lockWheels(ctx, solved.Answers[i], solved.Tags, known[i])
		if err != nil {
			s.fail(n, help, err)
			continue
		}
		s.answer(n, entries)
		s.out.Requires = append(s.out.Requires, requiresOfWheels(entries, solved.Answers[i].Via)...)
	}
}

// standIns are the wheels of a request that only an index out of reach holds.
func (s *session) standIns(req lock.Request) (known []indexWheel, help string, err error) {
	if has := s.archive.python(); req.Python != has && req.Interpreter == "" {
		return nil, "use python " + has, fmt.Errorf("%s has Python %s, not %s", req.Suite, has, req.Python)
	}
	for _, requirement := range req.Requirements {
		if _, local, ok := strings.Cut(requirement, "+"); !ok || local == "" {
			continue
		}
		w, err := knownWheel(requirement, req)
		switch {
		case err != nil && req.Arch != "amd64":
			return nil, fmt.Sprintf("exclude the cells of linux/%s, or list the recipe that asks for it with when: {platform: linux/amd64}", req.Arch), err
		case err != nil:
			return nil, "leave the cell out, or use a torch whose wheel is known", err
		}
		known = append(known, w)
	}
	return known, "", nil
}

func (s *session) wheelJob(ctx context.Context, needs []lock.Need, known [][]indexWheel) (Job, error) {
	job := s.archive.job("uv: resolve wheels")
	python, err := s.withPython(ctx, needs[0].Request, &job)
	if err != nil {
		return job, err
	}
	pinned, err := tools("resolve", archOf(job.Root.Platform), "")
	if err != nil {
		return job, err
	}
	var blobs []plan.Blob
	for _, t := range pinned {
		job.Blobs[t.file] = t.blob()
		blobs = append(blobs, t.blob())
	}
	if err := s.Fetcher.Fetch(ctx, blobs); err != nil {
		return job, err
	}
	indexes, err := json.Marshal(s.indexes())
	if err != nil {
		return job, err
	}
	job.Args = []string{python, "/in/wheels.py"}
	if archOf(job.Root.Platform) != s.archive.arch {
		other, err := target(needs[0].Request)
		if err != nil {
			return job, err
		}
		job.Args = append(job.Args, other...)
	}
	job.Network, job.Proxy = true, s.Proxy
	job.Secrets = map[string][]byte{"indexes": indexes}
	if len(s.CA) > 0 {
		job.Secrets["ca"] = s.CA
	}
	job.Files = map[string][]byte{"wheels.py": wheelsScript}
	for i, n := range needs {
		dir := "ask/" + strconv.Itoa(i) + "/"
		job.Files[dir+"requirements"] = lines(n.Request.Requirements)
		job.Files[dir+"constraints"] = lines(n.Request.Constraints)
		job.Files[dir+"preferences"] = lines(pins(n.Keep))
		job.Files[dir+"excludes"] = lines(n.Request.Excluded)
		job.Files[dir+"links/README"] = []byte("Wheels with metadata alone, for the solver.\n")
		for _, w := range known[i] {
			if job.Files[dir+"links/"+w.file], err = w.standIn(); err != nil {
				return job, err
			}
		}
	}
	return job, nil
}

// withPython gives the job a root in which the image's Python runs, and names it:
// the base's own, or the distribution's, put on the base when it lacks it.
func (s *session) withPython(ctx context.Context, req lock.Request, job *Job) (string, error) {
	if req.Interpreter != "" || req.On == "" {
		return cmp.Or(req.Interpreter, "python3"), nil
	}
	solved, err := s.apt(ctx, "apt: Python on the base", []ask{{packages: []string{"python3"}, status: s.archive.status, upgrades: true}})
	if err == nil {
		err = solved[0].err
	}
	if err != nil {
		return "", fmt.Errorf("python on the base: %w", err)
	}
	root := *s.archive.root
	for _, d := range solved[0].debs {
		root.Debs = append(root.Debs, d.blob())
	}
	job.Root = &root
	return "/usr/bin/python3", s.Fetcher.Fetch(ctx, root.Debs)
}

// indexes are the indexes as wheels.py reads them.
func (s *session) indexes() []map[string]string {
	out := make([]map[string]string, len(s.Indexes))
	for i, x := range s.Indexes {
		out[i] = map[string]string{"name": x.Name, "url": x.URL}
	}
	return out
}

func lines(in []string) []byte {
	return []byte(strings.Join(append(slices.Clone(in), ""), "\n"))
}

func runWheels(ctx context.Context, runner Runner, job Job, n int) (wheelAnswers, error) {
	var out wheelAnswers
	files, err := runner.Run(ctx, job)
	if err != nil {
		return out, fmt.Errorf("uv could not run: %w", err)
	}
	if err := json.Unmarshal(files["answers.json"], &out); err != nil {
		return out, fmt.Errorf("uv's answers: %w", err)
	}
	if len(out.Answers) != n {
		return out, fmt.Errorf("uv gave %d answers to %d questions", len(out.Answers), n)
	}
	return out, nil
}

// lockWheels turns an answer into lock entries.
func (s *session) lockWheels(ctx context.Context, a wheelAnswer, tags []string, known []indexWheel) (entries []lock.Entry, help string, err error) {
	if a.Index == "" {
		if len(s.Indexes) == 0 {
			return nil, "name a mirror that has one with --mirrors", errors.New(cmp.Or(s.NoIndex, "no mirror has a Python index"))
		}
		return nil, "", errors.New(triedReasons(a))
	}
	wheels, err := parsePylock(a.Pylock, tags)
	if err != nil {
		return nil, "", err
	}
	if err := conflicts(wheels, a.Via); err != nil {
		return nil, "drop one of the two", err
	}
	for _, w := range wheels {
		if i := slices.IndexFunc(known, func(k indexWheel) bool { return k.file == w.file }); i >= 0 {
			entries = append(entries, known[i].entry())
			continue
		}
		if strings.HasPrefix(w.url, "file:") {
			return nil, "", fmt.Errorf("uv chose %s, which is no wheel of an index", w.file)
		}
		if w.size == 0 {
			if w.size, err = s.Size(ctx, w.url); err != nil {
				return nil, "", fmt.Errorf("size of %s: %w", w.file, err)
			}
		}
		entries = append(entries, w.entry(pypi))
	}
	return entries, "", nil
}

// triedReasons says why no index answered; equal reasons once.
func triedReasons(a wheelAnswer) string {
	var reasons []string
	from := map[string][]string{}
	for _, t := range a.Tried {
		if from[t.Reason] == nil {
			reasons = append(reasons, t.Reason)
		}
		from[t.Reason] = append(from[t.Reason], t.Index)
	}
	for i, r := range reasons {
		reasons[i] = strings.Join(from[r], ", ") + ": " + r
	}
	return strings.Join(reasons, "; ")
}

// wanters reads uv's comments: who wants a distribution.
func wanters(via, name string) []string {
	var out []string
	inside := false
	for line := range strings.Lines(via) {
		line = strings.TrimSpace(line)
		comment, isComment := strings.CutPrefix(line, "#")
		if !isComment {
			inside = strings.HasPrefix(line, name+"==")
			continue
		}
		comment = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(comment), "via"))
		if inside && comment != "" {
			out = append(out, strings.Replace(comment, "-r requirements", "a recipe", 1))
		}
	}
	return out
}
