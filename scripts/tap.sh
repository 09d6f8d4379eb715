# shellcheck shell=bash
# Counts checks and prints them as scripts/test.sh reads them. Sourced, never run.

passed=0
failed=0

# check NAME COMMAND...: COMMAND succeeds.
check() {
  local name=$1
  shift
  if "$@"; then
    passed=$((passed + 1))
    echo "ok - $name"
  else
    failed=$((failed + 1))
    echo "not ok - $name"
  fi
}

# checked: prints the sums, and fails when a check did.
checked() {
  printf '# pass %d\n# fail %d\n' "$passed" "$failed"
  ((failed == 0))
}
