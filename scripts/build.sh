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

programs=(-p hearth -p hearth-init -p hearth-python -p hearth-node -p hearth-provided)

# A first build is long, and nobody should wonder whether it hangs. cargo itself shows what it compiles.
say_how_long() {
  [[ -d $TARGET/$1 ]] ||
    say "first build: SQLite and about 300 crates, about 10 minutes of CPU time; later builds are incremental"
}

case ${1:-} in
  release | bench)
    profile=release
    say_how_long "$profile"
    [[ $1 == release ]] || programs+=(-p hearth-bench)
    cargo build --locked --release "${programs[@]}"
    # Functions that are measured.
    [[ $1 == release ]] || cargo build --locked --release -p hearth-native --examples
    ;;
  debug)
    profile=debug
    say_how_long "$profile"
    cargo build --locked --workspace --all-targets
    ;;
  *) die "usage: scripts/build.sh release|bench|debug" ;;
esac

runtimes/python/package.sh "$TARGET/$profile" "$TARGET/$profile/runtimes/python"
HEARTH_NODE=$NODE runtimes/node/package.sh "$TARGET/$profile" "$TARGET/$profile/runtimes/node"
runtimes/native/package.sh "$TARGET/$profile/runtimes/native"
runtimes/provided/package.sh "$TARGET/$profile" "$TARGET/$profile/runtimes/provided"
