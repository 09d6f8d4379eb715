#!/usr/bin/env bash
# Builds Hearth and lays the runtimes beside the server, where the server looks for them.
#
#   scripts/build.sh release|bench|debug
#
# release: what users run.
# bench:   the same and the benchmarks.
# debug:   all targets of all members at once: one set of features, so that the tests which follow find every
#          dependency built already.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

profile=release
case ${1:-} in
  release) cargo build --locked --release -p hearth -p hearth-init -p hearth-python -p hearth-node ;;
  bench) cargo build --locked --release -p hearth -p hearth-init -p hearth-python -p hearth-node -p hearth-bench ;;
  debug)
    profile=debug
    cargo build --locked --workspace --all-targets
    ;;
  *) die "usage: scripts/build.sh release|bench|debug" ;;
esac

runtimes/python/package.sh "$TARGET/$profile" "$TARGET/$profile/runtimes/python"
HEARTH_NODE=$NODE runtimes/node/package.sh "$TARGET/$profile" "$TARGET/$profile/runtimes/node"
