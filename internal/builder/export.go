package builder

import (
	"errors"
	"fmt"
	"strings"
)

// PushError is an image that was built and that its registry did not take.
type PushError struct {
	Repository string
	Err        error // what the engine said
}

// Error names the repository and the reason.
func (e *PushError) Error() string { return fmt.Sprintf("cannot push to %s: %s", e.Repository, e.Err) }

// Unwrap gives the engine's error.
func (e *PushError) Unwrap() error { return e.Err }

// exportError tells apart what fails once an image is built: its registry, or
// else the engine. Neither is a step that the plan names.
func exportError(job Job, err error) error {
	var step *StepError
	switch {
	case !errors.As(err, &step) || !strings.HasPrefix(step.Step, "exporting to "):
		return err
	case job.Push != "" && step.Step == "exporting to image":
		return &PushError{Repository: job.Push, Err: step.Err}
	}
	return fmt.Errorf("%s: %w", step.Step, step.Err)
}
