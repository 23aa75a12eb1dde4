package main

import "context"

type Rebuild struct{}
type Plan struct{}

func (b *bench) rebuild(context.Context) error { return nil }
func (b *bench) plan(context.Context) error    { return nil }
