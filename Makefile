# Hearth's commands. Each one installs what it needs first; `make` alone lists them.
# The work is done in scripts/, one script per command.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup build run test test-debian13 test-container lint audit bench install fuzz fmt clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile

setup: ## install build and runtime dependencies (compiler, python3, node)
	@scripts/setup.sh build

build: setup ## build the release (server, init, runtimes)
	@scripts/build.sh release

run: build ## start the server in the foreground; passes on ARGS="--flag" and HEARTH_*
	@exec scripts/run.sh $(ARGS)

test: ## run all tests: lints, units, integration, browser, models
	@scripts/setup.sh build lint test
	@exec scripts/test.sh

test-debian13: ## run the restore, randomness and attack tests on Debian 13 with Debian 12 builds (part of `make test`)
	@scripts/setup.sh build test
	@scripts/build.sh debug
	@exec scripts/debian13.sh

test-container: ## build the image, run docker-compose.yml with podman and check it (20 minutes, 5 GB in .tools; not part of `make test`)
	@exec scripts/container.sh

lint: ## check format, clippy, dependencies, queries, console assets and scripts
	@scripts/setup.sh build lint
	@exec scripts/lint.sh

audit: ## check dependencies against published advisories (needs network)
	@scripts/setup.sh build lint
	@.tools/bin/cargo-deny check advisories

bench: ## benchmark a release build; SUITE="ring warm" selects suites, QUICK=1 a short trial run; SUITE=compare BEFORE=REVISION compares
	@scripts/setup.sh build $(if $(QUICK),,bench)
	@QUICK=$(QUICK) SUITE="$(SUITE)" BEFORE="$(BEFORE)" ROWS="$(ROWS)" scripts/bench.sh

install: ## install what `make build` built under PREFIX (default /opt/hearth); packaging/hearth.service starts it
	@scripts/install.sh $(PREFIX)
	@scripts/user.sh

fuzz: setup ## fuzz the channel's reader, the messages of host process and gateway, and the resolver for DURATION seconds per target (default 60)
	@scripts/fuzz.sh $(DURATION)

fmt: ## format the Rust code
	@cargo fmt --all

clean: ## remove build output and downloads; keeps data/
	@[[ ! -e .tools/debian13/root || $$EUID -eq 0 ]] || sudo rm -rf .tools/debian13
	@[[ ! -e .tools/container || $$EUID -eq 0 ]] || sudo rm -rf .tools/container
	@rm -rf target .tools node_modules
