"""Runs microbenchmarks of two source trees, each execution in a process of its own: the function that `hearth lab suite` deploys.

An event is {"do": "list", "tree", "unit"} or {"do": "run", "benchmark", "order", ...}. What the tool has printed is returned as it is; the lab
reads it.
"""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time

TASK = os.environ.get("LAMBDA_TASK_ROOT", "/var/task")
# What this function writes. Instances of one sandbox share it.
PLACE = "/tmp/hearth-suite"
# Longest compilation of one package's benchmarks.
BUILD_LIMIT_S = 240
# As much of the output is returned: the end, where results and errors are.
OUTPUT_MAX = 256 << 10
# Left of the function's time when no further execution is begun.
SPARE_MS = 10_000

with open(os.path.join(TASK, "suite.json"), encoding="utf-8") as described:
    SUITE = json.load(described)


def handler(event, context):
    os.makedirs(PLACE, exist_ok=True)
    if event["do"] == "list":
        return TOOL.list(event["tree"], event["unit"], event["limit_s"])
    return run(TOOL, event, context)


def run(tool, event, context):
    """Executes both versions of a benchmark in the order given, on one processor."""
    limit_s = event["limit_s"]
    began = time.monotonic()
    for tree in sorted({tree for repeat in event["order"] for tree in repeat}):
        error = tool.prepare(tree, event["benchmark"])
        if error:
            return {"error": error}
    prepared_s = time.monotonic() - began
    allowed = sorted(os.sched_getaffinity(0))
    # From the last one: the server's own work is as likely on any, and a host's interrupts are on the first more often than not.
    processor = allowed[-1 - event["slot"] % len(allowed)]
    os.sched_setaffinity(0, {processor})
    try:
        repeats = []
        for order in event["order"]:
            executions = []
            for tree in order:
                left_ms = context.get_remaining_time_in_millis() - SPARE_MS
                if left_ms < limit_s * 1000:
                    executions.append({"interrupted": True, "took_s": 0})
                    continue
                executions.append(tool.execute(tree, event["benchmark"], event["time_s"], limit_s))
            repeats.append(executions)
    finally:
        os.sched_setaffinity(0, allowed)
    return {"processor": processor, "prepared_s": prepared_s, "repeats": repeats}


def call(arguments, directory, environment, limit_s):
    """A process of its own group, ended with all that it has started. What it prints, its status (None: ended at the limit) and its time."""
    with tempfile.TemporaryFile(dir=PLACE) as output:
        began = time.monotonic()
        process = subprocess.Popen(
            arguments,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        # Popen.wait would poll, and be late by up to 50 ms.
        over = os.pidfd_open(process.pid)
        is_over = bool(select.select([over], [], [], limit_s)[0])
        took_s = time.monotonic() - began
        os.close(over)
        try:
            # Before its number is free for others.
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        status = process.wait()
        if not is_over:
            status = None
        output.seek(max(0, output.seek(0, os.SEEK_END) - OUTPUT_MAX))
        return output.read().decode("utf-8", "replace"), status, took_s


def outcome(called):
    output, status, took_s = called
    if status is None:
        return {"interrupted": True, "took_s": took_s}
    return {"status": status, "output": output, "took_s": took_s}


def environment(**more):
    """What a child has of the environment: nothing of the platform's."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": PLACE,
        "TMPDIR": "/tmp",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        **more,
    }


class Go:
    """A unit is a package, by its directory. Its test binary is linked once for each version in each sandbox, or was before (cgo)."""

    def __init__(self):
        self.root = os.path.join(TASK, "go")
        front = os.path.join(PLACE, "cache")
        program = [sys.executable, os.path.join(TASK, "hearth", "cacheprog.py"), front, os.path.join(TASK, "cache")]
        self.environment = environment(
            GOROOT=self.root,
            GOCACHE=os.path.join(PLACE, "gocache"),
            GOCACHEPROG=" ".join(program),
            GOPATH=os.path.join(PLACE, "gopath"),
            **SUITE["environment"],
        )

    def binary(self, tree, unit):
        if "binaries" in SUITE:
            return os.path.join(TASK, "binaries", SUITE["binaries"][f"{tree}/{unit}"])
        return os.path.join(PLACE, f"{tree}-{SUITE['units'].index(unit)}.test")

    def build(self, tree, unit):
        """An error, or None."""
        binary = self.binary(tree, unit)
        if os.path.exists(binary):
            return None
        new = f"{binary}.{os.getpid()}"
        arguments = [os.path.join(self.root, "bin/go"), "test", "-c", *SUITE["flags"], "-o", new, "./" + unit]
        output, status, _ = call(arguments, os.path.join(TASK, tree), self.environment, BUILD_LIMIT_S)
        if status is None:
            return f"go test -c took longer than {BUILD_LIMIT_S} s"
        if status != 0 or not os.path.exists(new):
            return f"go test -c: status {status}: {output}"
        os.rename(new, binary)
        return None

    def prepare(self, tree, benchmark):
        return self.build(tree, benchmark["unit"])

    def test(self, tree, unit, limit_s, *arguments):
        directory = os.path.join(TASK, tree, unit)
        command = [self.binary(tree, unit), "-test.run=^$", "-test.cpu=1", *arguments]
        return call(command, directory, {**self.environment, "GOMAXPROCS": "1"}, limit_s)

    def list(self, tree, unit, limit_s):
        """One iteration of each, because sub-benchmarks are known to no one before."""
        error = self.build(tree, unit)
        if error:
            return {"error": error}
        output, status, _ = self.test(tree, unit, limit_s, "-test.list=^Benchmark")
        if status != 0:
            return {"error": f"-test.list: status {status}: {output}"}
        runs = []
        for name in (line for line in output.split("\n") if line.startswith("Benchmark")):
            called = self.test(tree, unit, limit_s, f"-test.bench=^{name}$", "-test.benchtime=1x")
            runs.append({"name": name, **outcome(called)})
        return {"runs": runs}

    def execute(self, tree, benchmark, time_s, limit_s):
        arguments = (f"-test.bench={benchmark['select']}", f"-test.benchtime={time_s}s")
        return outcome(self.test(tree, benchmark["unit"], limit_s, *arguments))


def python(tree, limit_s, arguments, **more):
    """Python in a tree, with the tree's packages and this function's own modules."""
    root = os.path.join(TASK, tree)
    path = [root, os.path.join(TASK, SUITE["packages"][tree]), os.path.join(TASK, "hearth")]
    variables = environment(
        PYTHONPATH=os.pathsep.join(path),
        PYTHONPYCACHEPREFIX=os.path.join(PLACE, "pycache"),
        PYTHONHASHSEED="0",
        **more,
    )
    return call([sys.executable, *arguments], root, variables, limit_s)


class PytestBenchmark:
    """A unit is a path that is given to pytest. Parametrised tests are benchmarks of their own."""

    def call(self, tree, limit_s, *arguments):
        plugins = ["-p", "no:cacheprovider", "-p", "hearth_suite_plugin"]
        return python(tree, limit_s, ["-m", "pytest", *plugins, "-q", *arguments])

    def prepare(self, tree, benchmark):
        return None

    def list(self, tree, unit, limit_s):
        with tempfile.NamedTemporaryFile(dir=PLACE, suffix=".json") as found:
            # The plugin writes what pytest has collected: its printed form is for people.
            arguments = (f"--hearth-suite-found={found.name}", "--collect-only", unit)
            output, status, _ = self.call(tree, max(limit_s, 120), *arguments)
            # 5: nothing was collected.
            if status not in (0, 5):
                return {"error": f"pytest --collect-only: status {status}: {output}"}
            text = found.read()
            return {"names": json.loads(text) if text else []}

    def execute(self, tree, benchmark, time_s, limit_s):
        with tempfile.NamedTemporaryFile(dir=PLACE, suffix=".json") as report:
            arguments = ("--benchmark-only", f"--benchmark-max-time={time_s}", f"--benchmark-json={report.name}")
            done = outcome(self.call(tree, limit_s, *arguments, benchmark["select"]))
            text = report.read()
        if done.get("status") == 0 and text:
            done["output"] = json.dumps(without_data(json.loads(text)))
        return done


def without_data(report):
    """Without each round's time: the statistics have been made."""
    for one in report.get("benchmarks", []):
        one.get("stats", {}).pop("data", None)
    return {"benchmarks": report.get("benchmarks", [])}


class Pyperf:
    """A unit is a script. hearth_pyperf.py runs it."""

    def call(self, tree, limit_s, **request):
        with tempfile.TemporaryDirectory(dir=PLACE) as directory:
            path = os.path.join(directory, "report.json")
            wanted = json.dumps({**request, "report": path})
            called = python(tree, limit_s, ["-m", "hearth_pyperf"], HEARTH_SUITE=wanted)
            try:
                with open(path, encoding="utf-8") as report:
                    return called, json.load(report)
            except (FileNotFoundError, ValueError):
                return called, None

    def prepare(self, tree, benchmark):
        return None

    def list(self, tree, unit, limit_s):
        (output, status, _), names = self.call(tree, max(limit_s, 60), do="list", script=unit)
        if status is None:
            return {"error": f"{unit}: listing its benchmarks takes too long"}
        if status != 0 or names is None:
            return {"error": f"{unit}: status {status}: {output}"}
        return {"names": names}

    def execute(self, tree, benchmark, time_s, limit_s):
        request = {"do": "run", "script": benchmark["unit"], "select": benchmark["select"], "time_s": time_s}
        called, report = self.call(tree, limit_s, **request)
        done = outcome(called)
        if done.get("status") == 0 and report:
            done["output"] = json.dumps(report)
        return done


TOOLS = {"go": Go, "pyperf": Pyperf, "pytest-benchmark": PytestBenchmark}
TOOL = TOOLS[SUITE["tool"]]()
