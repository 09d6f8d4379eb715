# shellcheck shell=bash
# What the logs of test suites say. Sourced, never run.

# count LOG: prints "passed failed skipped", as cargo test ("test result: ok. 3 passed; …") and unittest ("Ran 3 tests",
# "FAILED (failures=1, errors=1, skipped=1)") and node --test ("# pass 3") report them.
count() {
  awk '
    function field(name,   text) {
      if (!match($0, name "=[0-9]+")) return 0
      text = substr($0, RSTART, RLENGTH)
      sub(/.*=/, "", text)
      return text + 0
    }
    /^test result: / { passed += $4; failed += $6; skipped += $8 }
    /^Ran [0-9]+ tests? in / { ran += $2 }
    /^(OK|FAILED)( \(|$)/ {
      unittest_failed += field("failures") + field("errors") + field("unexpected successes")
      unittest_skipped += field("skipped")
    }
    /^# pass / { passed += $3 }
    /^# fail / { failed += $3 }
    /^# skipped / { skipped += $3 }
    END {
      print passed + ran - unittest_failed - unittest_skipped, failed + unittest_failed, skipped + unittest_skipped
    }
  ' "$1"
}

# told LOG: what the failing tests of a suite said, as cargo and unittest print it: of each the lines around its first
# panic, else its first ones. Of a suite that names none, its end.
told() {
  local found
  found=$(awk '
    function end(   first, last, line) {
      first = panic > 8 ? panic - 8 : 1
      last = first + 24 < lines ? first + 24 : lines
      for (line = first; line <= last; line++) print substr(said[line], 1, 600)
      lines = panic = on = 0
    }
    /^---- .* stdout ----$/ || /^(FAIL|ERROR): / { end(); print; on = 1; next }
    /^failures:$/ || /^Ran [0-9]+ tests? in / { end() }
    # A backtrace is in the log.
    on && !/^ +([0-9]+: |at )/ {
      said[++lines] = $0
      if (!panic && / panicked at /) panic = lines
    }
    END { end() }
  ' "$1")
  [[ -n $found ]] || found=$(tail -n 25 "$1" | cut -c1-600)
  printf '%s\n' "$found"
}
