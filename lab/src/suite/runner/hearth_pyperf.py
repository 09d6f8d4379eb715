"""Runs a script whose benchmarks are pyperf's: lists them, or runs one of them in this process and ends.

pyperf would start a process for calibration and one for each few values. Here each execution is a process of its own already: it calibrates
and measures as pyperf's worker processes do, and writes pyperf's JSON.
"""

import json
import os
import runpy
import sys
import traceback

import pyperf
from pyperf._runner import Runner

# As many values as there is time for, but at least pyperf's own number for a process.
VALUES = 20
VALUES_MIN = 3

REQUEST = json.loads(os.environ.pop("HEARTH_SUITE"))
TIME_S = REQUEST.get("time_s", 1)
FOUND = []


def main(runner, task):
    """In place of `Runner._main`, to which each benchmark comes."""
    runner.parse_args()
    if REQUEST["do"] == "list":
        FOUND.append(task.name)
    elif task.name == REQUEST["select"]:
        pyperf.Benchmark([measured(task)]).dump(REQUEST["report"])
        # What follows in the script are other benchmarks.
        raise SystemExit(0)


def measured(task):
    args = task.args
    # Doubles the number of loops until a value takes long enough, which is the warm-up, too.
    args.calibrate_loops, args.warmups, args.values = True, 0, 1
    task.create_run()
    loops, value = task.warmups[-1]
    took_s = value * loops * (task.inner_loops or 1)
    args.calibrate_loops = False
    args.values = min(VALUES, max(VALUES_MIN, round(TIME_S / took_s)))
    task.metadata.pop("calibrate_loops", None)
    return task.create_run()


Runner._main = main
script = REQUEST["script"]
# As a worker: without --worker a script could start processes of its own for it. --loops is replaced by the calibration.
sys.argv = [script, "--worker", "--loops=1", "--warmups=0", "--quiet", f"--min-time={TIME_S / VALUES}"]
sys.path[0] = os.path.dirname(os.path.abspath(script))
try:
    runpy.run_path(script, run_name="__main__")
except SystemExit as end:
    if end.code not in (None, 0):
        raise
except Exception as error:
    # The reason first, because of a long error the beginning is shown; then the script's own frames.
    frames = [line for line in traceback.format_tb(error.__traceback__) if "runpy" not in line and __file__ not in line]
    sys.exit("".join([*traceback.format_exception_only(error), *frames]))
if REQUEST["do"] == "list":
    with open(REQUEST["report"], "w", encoding="utf-8") as report:
        json.dump(FOUND, report)
elif not os.path.exists(REQUEST["report"]):
    sys.exit(f"{script} has no benchmark {REQUEST['select']!r} now")
