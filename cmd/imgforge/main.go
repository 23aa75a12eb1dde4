// Command imgforge builds reproducible CUDA/PyTorch base images.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals) // a second one ends the program at once
		cancel(errInterrupted)
	}()
	os.Exit(run(ctx, os.Environ(), os.Stdin, os.Stdout, os.Stderr, os.Args[1:]))
}

// errInterrupted is why a run stopped when a signal asked it to.
var errInterrupted = errors.New("interrupted; downloads and built layers are kept, so the same command goes on from here")

// Exit codes.
const (
	exitDone  = 0
	exitCheck = 1 // a step or a check failed, or there are findings
	exitInput = 2 // bad input or usage
	exitInfra = 3 // the machine, the network, an engine or a registry; or interrupted
)

// exitError is an error that knows the exit code it deserves.
type exitError struct {
	code int
	err  error // nil when everything has been said already
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func infra(err error) error { return &exitError{exitInfra, err} }

// orInfra is for errors that do not say another code themselves.
func orInfra(err error) error {
	var exit *exitError
	if err == nil || errors.As(err, &exit) {
		return err
	}
	return infra(err)
}

// codeOf is the exit code for an error; what does not say otherwise is bad input.
func codeOf(err error) int {
	var exit *exitError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &exit):
		return exit.code
	case errors.Is(err, context.Canceled), errors.Is(err, errInterrupted):
		return exitInfra
	}
	return exitInput
}
