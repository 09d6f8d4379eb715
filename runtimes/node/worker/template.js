// The template: imports the function once, tidies its heap, then forks, or becomes an instance itself.
"use strict";

const fs = require("node:fs");
const v8 = require("node:v8");
const awslambda = require("./awslambda.js");
const drawn = require("./drawn.js");
const errors = require("./errors.js");
const handler = require("./handler.js");
const hooks = require("./hooks.js");
const native = require("./native.js");
const renewal = require("./renewal.js");
const streams = require("./streams.js");
const threads = require("./threads.js");
const { collector } = require("./collector.js");
const { Instance } = require("./instance.js");
const { Fault } = errors;

// The control socket is the descriptor after stdin, stdout and stderr.
const CONTROL_FD = 3;
const DEFAULT_CODE_DIR = "/var/task";
// How a pre-forked instance is started of which the server expects no word.
const SILENT = "--preforked";

// Requests to libuv's thread pool and to the kernel, as `process.getActiveResourcesInfo` calls them. Their answers would
// come to the template alone.
const IN_FLIGHT = /req|request|job|zlib/i;
// Longest wait for them, in milliseconds: what an import left running may never end.
const QUIET_MS = 2000;
// Threads of libuv's pool unless `UV_THREADPOOL_SIZE` says otherwise, and most that it may have.
const POOL_SIZE = 4;
const POOL_SIZE_MAX = 1024;

/** Runs the template and, in every child it forks or when it becomes one, the instance. */
function main(mode) {
  const control = new native.Template(CONTROL_FD);
  const text = control.receiveConfig();
  if (text === null) {
    native.exitNow(0);
  }
  if (mode === "--prefork") {
    const bootstrap = process.argv[1];
    control.servePreforked(text, process.execPath, [...process.execArgv, bootstrap]);
    native.exitNow(0);
  }
  streams.setup();
  renewal.prepare();
  threads.prepare();
  awslambda.prepare();
  native.watchCollector();
  const gc = collector();
  const channel = new native.Channel();
  // A pre-forked instance draws for itself alone.
  const draws = mode.endsWith("preforked") ? undefined : { begin: drawn.begin, end: () => drawn.end(gc) };
  boot(reporter(control, mode), JSON.parse(text), channel, draws).then(({ instance, booted }) => {
    // Out of the promise: a fork shall not inherit its stack, and the collector not see it.
    setImmediate(() => {
      gc();
      // V8 sweeps lazily, page by page, which every child would do again, and so copy those pages. Counting needs them
      // swept.
      v8.getHeapCodeStatistics();
      becomeInstance(control, mode, channel, booted);
      instance.main();
    });
  });
}

/**
 * Reports that it has booted and waits until this process is an instance, with its channel open. Does not return in a
 * template that only forks. The server hears only of the first pre-forked instance.
 */
function becomeInstance(control, mode, channel, booted) {
  const become = () =>
    mode.endsWith("preforked")
      ? control.becomeInstance(channel, mode === SILENT ? undefined : booted)
      : control.serve(channel, booted);
  try {
    const how = become();
    if (!how) {
      native.exitNow(0);
    }
    if (how === "fork") {
      threads.refuse();
    } else {
      threads.renew();
    }
  } catch (error) {
    process.stderr.write(`hearth: ${error.message}\n`);
    native.exitNow(1);
  }
}

/** Imports the function. Returns the report for the server. Does not return if it failed; then `report` sends the error. */
async function boot(report, config, channel, draws) {
  const instance = new Instance(config, channel);
  // Before there is anything of the function's that it could touch.
  await instance.rehearse();
  const own = native.threadCount();
  const pool = poolSize();
  const started = performance.now();
  const watch = watchImport((error) => {
    report(errors.toJson({ type: "import_error", error: errors.describe(error) }));
    native.exitNow(1);
  });
  try {
    const code = config.code_dir ?? DEFAULT_CODE_DIR;
    draws?.begin(code);
    instance.handler = await handler.load(config.handler, code);
    await hooks.beforeSnapshot();
    removeXrayMark();
  } catch (error) {
    watch.fail(error);
  }
  const importMs = Math.round((performance.now() - started) * 1000) / 1000;
  await quiet();
  const left = await threadsLeft(own, pool);
  watch.stop();
  const drew = (await draws?.end()) ?? null;
  renewal.plan();
  instance.listen();
  // `src/preforked.rs` knows the beginning of this message.
  const runtime = process.versions.node;
  const booted = JSON.stringify({ type: "booted", runtime, import_ms: importMs, threads: left, drawn: drew });
  return { instance, booted };
}

/** The X-Ray SDK tells a daemon by a file that it is there. Here is none, and of a version whose import leaves files no
 * image is made. */
function removeXrayMark() {
  fs.rmSync("/tmp/.aws-xray/initialized", { force: true });
  try {
    fs.rmdirSync("/tmp/.aws-xray");
  } catch {
    // It is not there, or there is more in it.
  }
}

/** Threads that the import has left running and that a fork would not have. libuv's pool, which comes into being as a whole
 * and comes back in a fork by itself, is not among them: `poolBefore` is what its size was set to before the import. */
async function threadsLeft(own, poolBefore) {
  const left = native.threadsLeft(own);
  if (left.count === 0) {
    return left;
  }
  const before = native.threadCount();
  // Goes through the pool, which is there afterwards in any case.
  await fs.promises.stat("/");
  const wasThere = native.threadCount() === before;
  return wasThere ? native.threadsLeft(own + Math.min(poolBefore, poolSize())) : left;
}

/** How many threads libuv's pool has, or would have, by libuv's own rule. */
function poolSize() {
  const set = process.env.UV_THREADPOOL_SIZE;
  const size = set === undefined ? POOL_SIZE : Number.parseInt(set, 10) || 1;
  return Math.min(Math.max(size, 1), POOL_SIZE_MAX);
}

/** How the server hears of a failed import. Only the first pre-forked instance's word is waited for: the others put it into the log. */
function reporter(control, mode) {
  if (mode !== SILENT) {
    return (message) => control.send(message);
  }
  return (message) => {
    const { error } = JSON.parse(message);
    process.stderr.write(`hearth: the function did not import: ${error.stackTrace.join("\n")}\n`);
  };
}

/** While the function is imported, everything that ends the process or the event loop is an import that failed. */
function watchImport(fail) {
  const listeners = {
    uncaughtException: fail,
    unhandledRejection: fail,
    exit: (code) => fail(new Fault("Runtime.ExitError", `the module called process.exit(${code}) during the import`)),
    beforeExit: () => fail(new Fault("Runtime.ImportModuleError", "the import awaits something that never happens")),
  };
  for (const [event, listener] of Object.entries(listeners)) {
    process.on(event, listener);
  }
  return {
    fail,
    stop() {
      for (const [event, listener] of Object.entries(listeners)) {
        process.off(event, listener);
      }
    },
  };
}

/** Waits until nothing that the import began is on its way in the thread pool: a fork would never learn of its end. */
async function quiet() {
  const until = Date.now() + QUIET_MS;
  while (process.getActiveResourcesInfo().some((kind) => IN_FLIGHT.test(kind)) && Date.now() < until) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

module.exports = { main };
