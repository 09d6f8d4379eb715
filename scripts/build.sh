#!/usr/bin/env bash
# Builds Hearth and lays the Python runtime beside the server, where the server looks for it.
#
#   scripts/build.sh release|debug
#
# debug builds all targets of all members at once: one set of features, so that the tests which follow find every
# dependency built already.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

case ${1:-} in
  release) cargo build --locked --release -p hearth -p hearth-init -p hearth-python ;;
  debug) cargo build --locked --workspace --all-targets ;;
  *) die "usage: scripts/build.sh release|debug" ;;
esac

runtimes/python/package.sh "$TARGET/$1" "$TARGET/$1/runtimes/python"
