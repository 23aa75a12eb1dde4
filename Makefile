# Two commands are all a newcomer needs:
#
#   make quickstart   set everything up, then build a real CUDA 12.1 PyTorch image
#   make test         set everything up, then run every test
#
# Both may be run again at any time. Root is needed where they say so: to install
# Debian packages, and because the embedded BuildKit engine mounts overlayfs and
# runs containers. With --builder or BUILDKIT_HOST the engine lives elsewhere.

BUILDKIT := $(shell go list -m -f '{{.Version}}' github.com/moby/buildkit 2>/dev/null)
VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
GOBUILD  := CGO_ENABLED=0 go build -trimpath

.PHONY: quickstart test setup build check bench clean help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

quickstart: setup build ## build a real CUDA 12.1 PyTorch image, from nothing
	scripts/quickstart

test: setup build check ## run every test
	go test -timeout 20m ./...

setup: ## install what is missing (runc and a few test programs); needs root only then
	scripts/setup

build: ## build bin/imgforge and bin/buildkitd from this go.mod
	@mkdir -p bin
	$(GOBUILD) -ldflags '-s -w -X main.version=$(VERSION)' -o bin/imgforge ./cmd/imgforge
	$(GOBUILD) -ldflags '-s -w -X github.com/moby/buildkit/version.Version=$(BUILDKIT)' -o bin/buildkitd github.com/moby/buildkit/cmd/buildkitd

bench: setup build ## measure speed and memory here, and rewrite docs/benchmarks.md
	go run ./internal/bench

check: ## format and vet
	@test -z "$$(gofmt -l cmd internal matrix recipes)" || { gofmt -l cmd internal matrix recipes; echo 'run gofmt -w on these'; exit 1; }
	go vet ./...

clean: ## remove what building left in this directory
	rm -rf bin dist .cache
