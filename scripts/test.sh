#!/usr/bin/env bash
# Runs every suite, also after one has failed, and ends with the sum of their tests alone on the last line.
# Full logs: target/test-logs/.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source scripts/report.sh

readonly LOGS=$TARGET/test-logs
# How long Rust's tests may take, seconds: 20 minutes on two processors with nothing else to do.
readonly RUST_LIMIT=${HEARTH_TEST_RUST_LIMIT:-2700}
# Both humans and `count` read the logs: no colours.
export CARGO_TERM_COLOR=never

passed=0
failed=0
skipped=0
bad_suites=()

# suite NAME COMMAND...: a suite that counts no tests of its own counts as one. Tests that cargo counts as passed but that
# found the host lacking something (testkit/src/skipped.rs) are counted as skipped.
suite() {
  local name=$1 status=0 began=$SECONDS ok bad skip lacking
  local log=$LOGS/$name.log
  export HEARTH_TEST_SKIPPED=$LOGS/$name.skipped
  shift
  say "suite $name"
  "$@" </dev/null 2>&1 | tee "$log" || status=$?
  read -r ok bad skip < <(count "$log")
  if [[ -s $HEARTH_TEST_SKIPPED ]]; then
    sort -u "$HEARTH_TEST_SKIPPED"
    lacking=$(cut -f1 "$HEARTH_TEST_SKIPPED" | sort -u | wc -l)
    ok=$((ok - lacking)) skip=$((skip + lacking))
  fi
  if ((status != 0 && bad == 0)); then
    bad=1
  elif ((status == 0 && ok + bad + skip == 0)); then
    ok=1
  fi
  if ((bad > 0)); then
    bad_suites+=("$name")
  fi
  passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
  say "suite $name: $ok passed, $bad failed, $skip skipped in $((SECONDS - began)) s"
  ((bad == 0))
}

# At the end once more, where it is looked for.
finish() {
  local name
  for name in "${bad_suites[@]}"; do
    say "suite $name failed:"
    told "$LOGS/$name.log"
  done
  if ((failed > 0)); then
    say "failed: ${bad_suites[*]} (logs in $LOGS)"
  fi
  printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
  ((failed == 0)) || exit 1
}

# `--cfg loom` changes every crate's flags, so the model lives in a target directory of its own, where it is also
# optimised: it runs millions of interleavings.
loom() {
  RUSTFLAGS="--cfg loom" CARGO_PROFILE_DEV_OPT_LEVEL=2 \
    cargo test --locked --target-dir "$TARGET/loom" -p hearth-abi -p hearth-chain --test loom
}

# With the native half beside it, as it is installed.
python_runtime() { PYTHONPATH="$TARGET/debug/runtimes/python" "$PYTHON" -B -m unittest discover -s runtimes/python/tests/python; }

node_runtime() { "$NODE" --test --test-reporter=tap runtimes/node/tests/javascript; }

# Nothing that a suite made may stay behind. The names of what did are the failure.
leftovers() {
  local left
  left=$(find "$TMPDIR" -mindepth 1 -maxdepth 2 -printf '%P (%u, %t)\n')
  [[ -n $left ]] || return 0
  printf 'left in the temporary directory:\n%s\n' "$left"
  return 1
}

run_as_root_what_cargo_runs
rm -rf "$LOGS"
mkdir -p "$LOGS"
# A directory for temporary files that is this run's own. Its name is short, because paths of Unix sockets are made from
# it; and the user who builds and root, who runs the tests, both write there.
TMPDIR=$(mktemp -d /tmp/hth.XXXX)
export TMPDIR
chmod 1777 "$TMPDIR"
trap 'as_root rm -rf "$TMPDIR"' EXIT

suite lint scripts/lint.sh || true
suite scripts as_root scripts/tests.sh || true
suite build scripts/build.sh debug || finish
# The tests wait most of their time, for timeouts and other processes: two for each processor keep it busy.
RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((2 * $(nproc)))}
export RUST_TEST_THREADS
# A test that never ends costs this suite, not what the others have to say.
suite rust timeout --kill-after=10 "$RUST_LIMIT" cargo test --locked --workspace --no-fail-fast || true
suite debian13 scripts/debian13.sh || true
suite loom loom || true
suite python python_runtime || true
suite node node_runtime || true
suite bench env QUICK=1 scripts/bench.sh || true
suite leftovers leftovers || true
finish
