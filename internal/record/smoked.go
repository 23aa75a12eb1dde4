package record

// Smoked: the image's checks have run, or were skipped. What may be promoted is
// decided by this record alone.
type Smoked struct {
	Image    string    `json:"image"`  // digest that was tested
	Runner   string    `json:"runner"` // what ran the checks: buildkit, podman, kubernetes, ...
	Policy   string    `json:"policy"` // for GPU checks: require, skip or auto
	Floor    string    `json:"floor,omitempty"`
	Host     Host      `json:"host"`
	Checks   []Check   `json:"checks"`
	Findings []Finding `json:"findings,omitempty"`
	Seconds  float64   `json:"seconds"` // wall time of all checks
}

// Host is where GPU checks ran.
type Host struct {
	Driver string `json:"driver,omitempty"` // NVIDIA's
	GPUs   []GPU  `json:"gpus,omitempty"`
}

// GPU is one GPU of a host.
type GPU struct {
	Name       string `json:"name"`
	UUID       string `json:"uuid,omitempty"`
	Capability string `json:"capability,omitempty"` // 8.9
	Memory     int64  `json:"memory,omitempty"`     // MiB
}

// Status is how one check ended.
type Status string

// The statuses.
const (
	CheckPassed  Status = "passed"
	CheckFailed  Status = "failed"
	CheckWarned  Status = "warned"  // failed, and its severity is warning
	CheckSkipped Status = "skipped" // not run, and why is its summary
)

// Check is one check's result.
type Check struct {
	Name     string         `json:"name"`
	Kind     string         `json:"kind"` // static, cpu or gpu
	Status   Status         `json:"status"`
	Summary  string         `json:"summary"`
	Problems []Problem      `json:"problems,omitempty"`
	Facts    map[string]any `json:"facts,omitempty"`
	Seconds  float64        `json:"seconds"`
}

// Problem is one thing that is wrong, what it means and what to do.
type Problem struct {
	Problem string   `json:"problem"`
	Meaning string   `json:"meaning,omitempty"`
	Do      []string `json:"do,omitempty"`
}

// Finding is a judgement about the test itself.
type Finding struct {
	Rule string `json:"rule"` // such as floor-unproven
	Text string `json:"text"`
}

// Verdict is what the checks say of an image as a whole.
type Verdict string

// The verdicts. Only a tested image may be promoted.
const (
	Tested   Verdict = "tested"
	Untested Verdict = "untested" // a check was skipped, or none ran
	Broken   Verdict = "failed"
)

// Verdict folds the checks. A status that is not known is one that did not pass.
func (s *Smoked) Verdict() Verdict {
	passed, all := 0, true
	for _, c := range s.Checks {
		switch c.Status {
		case CheckFailed:
			return Broken
		case CheckPassed:
			passed++
		case CheckWarned:
		default:
			all = false
		}
	}
	if passed == 0 || !all {
		return Untested
	}
	return Tested
}

// Failures names the checks that failed.
func (s *Smoked) Failures() []string {
	var out []string
	for _, c := range s.Checks {
		if c.Status == CheckFailed {
			out = append(out, c.Name)
		}
	}
	return out
}
