#!/usr/bin/env bash
# Measures a release build: one result file for each suite in target/bench, and a report with tables and plots.
#
#   SUITE="ring warm"  only these; without it all, and the report goes to docs/benchmarks
#   QUICK=1            takes few samples of an unoptimised build: it shows that every suite works and that its result file
#                      is a good one, and yields no figure to quote
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

if [[ -n ${QUICK:-} ]]; then
  profile=debug
  out=$TARGET/bench/quick
  flags=(--quick)
else
  profile=bench
  out=$TARGET/bench
  flags=()
fi
scripts/build.sh "$profile"
program=$TARGET/${profile/bench/release}/hearth-bench

report=$out/report
if [[ -z ${QUICK:-}${SUITE:-} ]]; then
  report=docs/benchmarks
fi
mkdir -p "$out"
# What the build has written goes to the disk now, and not in the middle of what is measured first.
sync
# Sandboxes need root. SUITE holds names without spaces, separated by some.
# shellcheck disable=SC2086
as_root env TMPDIR="${TMPDIR:-/tmp}" HEARTH_BENCH_NODE="$NODE" "$program" "${flags[@]}" --out "$out" ${SUITE:-}
"$program" check "$out"/*.json
"$program" report "$out" "$report"
say "report: $report/README.md"
