// Runs microbenchmarks of two source trees, each execution in a process of its own: the function that `hearth lab suite` deploys for
// JavaScript. Events and answers are those of suite.py.
import { spawn } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";

const TASK = process.env.LAMBDA_TASK_ROOT ?? "/var/task";
// What this function writes. Instances of one sandbox share it.
const PLACE = "/tmp/hearth-suite";
// As much of the output is returned: the end, where results and errors are.
const OUTPUT_MAX = 256 << 10;
// Left of the function's time when no further execution is begun.
const SPARE_MS = 10_000;
const SUITE = JSON.parse(readFileSync(join(TASK, "suite.json"), "utf8"));
const TASKSET = "/usr/bin/taskset";

let files = 0;

/** The processors that this process may use, ascending: "0-2,7" of /proc/self/status. */
function processors() {
  const status = readFileSync("/proc/self/status", "utf8");
  const list = /^Cpus_allowed_list:\s*(\S+)$/m.exec(status)?.[1] ?? "0";
  return list.split(",").flatMap((range) => {
    const [first, last = first] = range.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
}

/** A process of its own group, ended with all that it has started. */
function call(tree, limitS, processor, request) {
  mkdirSync(PLACE, { recursive: true });
  files += 1;
  const report = join(PLACE, `${process.pid}-${files}.json`);
  const log = join(PLACE, `${process.pid}-${files}.log`);
  const descriptor = openSync(log, "w");
  // Without a collector to call, mitata makes garbage of 1 GiB before it measures.
  const flags = SUITE.tool === "mitata" ? ["--expose-gc"] : [];
  const node = [process.execPath, ...flags, "--import", join(TASK, "hearth", "register.mjs"), join(TASK, "hearth", "benchmark.mjs")];
  const command = processor === null ? node : [TASKSET, "-c", String(processor), ...node];
  const root = join(TASK, tree);
  const began = process.hrtime.bigint();
  return new Promise((resolve, reject) => {
    const child = spawn(command[0], command.slice(1), {
      cwd: root,
      detached: true,
      stdio: ["ignore", descriptor, descriptor],
      env: {
        PATH: "/usr/local/bin:/usr/bin:/bin",
        HOME: PLACE,
        TMPDIR: "/tmp",
        LANG: "C.UTF-8",
        TZ: "UTC",
        HEARTH_SUITE: JSON.stringify({ ...request, tool: SUITE.tool, root, report }),
      },
    });
    let isOver = true;
    const end = () => {
      try {
        process.kill(-child.pid, "SIGKILL");
      } catch {
        // It has ended with all that it had started.
      }
    };
    const timer = setTimeout(() => {
      isOver = false;
      end();
    }, limitS * 1000);
    child.on("error", reject);
    child.on("exit", (code) => {
      clearTimeout(timer);
      const tookS = Number(process.hrtime.bigint() - began) / 1e9;
      end();
      closeSync(descriptor);
      const output = tail(log);
      const text = existsSync(report) ? readFileSync(report, "utf8") : "";
      rmSync(report, { force: true });
      rmSync(log, { force: true });
      resolve(isOver ? { status: code ?? -1, output, report: text, took_s: tookS } : { interrupted: true, took_s: tookS });
    });
  });
}

function tail(path) {
  const content = readFileSync(path);
  return content.subarray(Math.max(0, statSync(path).size - OUTPUT_MAX)).toString("utf8");
}

export async function handler(event, context) {
  if (event.do === "list") {
    const { interrupted, status, output, report } = await call(event.tree, Math.max(event.limit_s, 60), null, { do: "list", file: event.unit });
    if (interrupted) return { error: `${event.unit}: loading it takes too long` };
    if (status !== 0 || report === "") return { error: `${event.unit}: status ${status}: ${output}` };
    return { tasks: JSON.parse(report) };
  }
  const allowed = processors();
  // From the last one, as suite.py does.
  const processor = existsSync(TASKSET) ? allowed[allowed.length - 1 - (event.slot % allowed.length)] : null;
  const repeats = [];
  for (const order of event.order) {
    const executions = [];
    for (const tree of order) {
      if (context.getRemainingTimeInMillis() - SPARE_MS < event.limit_s * 1000) {
        executions.push({ interrupted: true, took_s: 0 });
        continue;
      }
      const { benchmark } = event;
      const request = { do: "run", file: benchmark.unit, select: JSON.parse(benchmark.select), time_s: event.time_s };
      const { report, ...done } = await call(tree, event.limit_s, processor, request);
      executions.push(report ? { ...done, output: report } : done);
    }
    repeats.push(executions);
  }
  return { processor, prepared_s: 0, repeats };
}
