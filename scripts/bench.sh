#!/usr/bin/env bash
# Runs the benchmarks: the ring alone (runtimes/abi/benches/ring.rs), then the server as its users meet it
# (server/benches/hearth.rs).
#
# QUICK=1 takes few samples of an unoptimised build: it shows that the harness works and yields no figure to quote.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

run_as_root_what_cargo_runs

if [[ -n ${QUICK:-} ]]; then
  scripts/build.sh debug
  flags=(--profile dev)
  set -- --quick "$@"
else
  scripts/build.sh bench
  flags=()
fi

# The whole workspace is named so that the features, and with them the built dependencies, are those of the build above.
for name in ring hearth; do
  cargo bench --locked "${flags[@]}" --workspace --bench "$name" -- "$@"
done
