#!/usr/bin/env bash
# Runs the benchmarks (server/benches/hearth.rs) and leaves JSON and a table in target/bench/.
#
# QUICK=1 runs few repetitions of an unoptimised build: it shows that the harness works and yields no figure to quote.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

run_as_root_what_cargo_runs
if [[ -n ${QUICK:-} ]]; then
  scripts/build.sh debug
  exec cargo bench --locked --profile dev -p hearth --bench hearth -- --quick "$@"
fi
scripts/build.sh release
exec cargo bench --locked -p hearth --bench hearth -- "$@"
