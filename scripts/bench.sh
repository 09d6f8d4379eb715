#!/usr/bin/env bash
# Measures a release build: one result file for each suite in target/bench, and a report with tables and plots.
#
#   SUITE="ring warm"  only these; without it all, and the report goes to docs/benchmarks
#   QUICK=1            takes few samples of an unoptimised build: it shows that every suite works and that its result file
#                      is a good one, and yields no figure to quote
#   BEFORE=REVISION    with SUITE=compare: builds that revision, too, below target/before, and measures both in turns; or
#                      the path of another build's `hearth`, which has hearth-init and runtimes beside it.
#   ROWS=WORDS         with SUITE=compare ROWS="first request" takes those rows only, with SUITE=busy ROWS="echo" those, and with
#                      SUITE=lab ROWS="duets tail" those of its parts: generator, open, duets, tail, go
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

# build_before REVISION: prints the path of its server. Built once for each commit.
build_before() {
  local commit dir
  commit=$(git rev-parse --verify --quiet "$1^{commit}") || die "BEFORE=$1: no such revision; name a commit, branch or tag"
  dir=$TARGET/before/$commit
  if [[ ! -x $dir/target/release/hearth ]]; then
    say "building $1 in $dir (about 10 minutes of CPU time)"
    rm -rf "$dir"
    mkdir -p "$dir"
    git archive "$commit" | tar -x -C "$dir"
    # The same tools, so that both differ in their code only.
    [[ ! -d $TOOLS ]] || ln -s "$TOOLS" "$dir/.tools"
    env -u CARGO_TARGET_DIR "$dir/scripts/build.sh" release >&2
  fi
  printf '%s\n' "$dir/target/release/hearth"
}

before=
if [[ -x ${BEFORE:-} && -f ${BEFORE:-} ]]; then
  before=$(realpath "$BEFORE")
elif [[ -n ${BEFORE:-} ]]; then
  [[ -z ${QUICK:-} ]] || die "BEFORE=$BEFORE: a quick run compares no builds; leave QUICK out"
  before=$(build_before "$BEFORE")
fi

report=$out/report
if [[ -z ${QUICK:-}${SUITE:-} ]]; then
  report=docs/benchmarks
fi
mkdir -p "$out"
# What the build has written goes to the disk now, and not in the middle of what is measured first.
sync
# Sandboxes need root. SUITE holds names without spaces, separated by some.
# shellcheck disable=SC2086
as_root env TMPDIR="${TMPDIR:-/tmp}" HEARTH_BENCH_NODE="$NODE" HEARTH_BENCH_BEFORE="$before" \
  HEARTH_BENCH_ROWS="${ROWS:-}" "$program" "${flags[@]}" --out "$out" ${SUITE:-}
"$program" check "$out"/*.json
"$program" report "$out" "$report"
say "report: $report/README.md"
