// Worker threads: refused where instances fork, since a fork would not have them, and notified when their process
// becomes an instance.
//
// Each has an isolate of its own, with random state that only it can renew: siblings restored from one image would draw the
// same. So Node is started with `--require thread.js`, which every worker inherits.
"use strict";

const { syncBuiltinESMExports } = require("node:module");
const path = require("node:path");
const threads = require("node:worker_threads");
const { BECAME } = require("./thread.js");

const NO_THREADS =
  'worker_threads.Worker is not available in an instance that is a fork: set the function\'s "start" to "restore" or "boot", ' +
  "or use child_process";
const IN_THREAD = path.join(__dirname, "thread.js");

/** An error that says so, with the stack of whoever tried. */
class Unsupported extends Error {
  name = "Runtime.Unsupported";
  code = "ERR_WORKER_UNSUPPORTED_OPERATION";
}

let isFork = false;
let became;

/** In the template, before the import. What that starts itself is counted, and the template then not forked. */
function prepare() {
  became = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  threads.setEnvironmentData(BECAME, became);
  threads.Worker = class Worker extends threads.Worker {
    constructor(file, options, ...rest) {
      if (isFork) {
        throw new Unsupported(NO_THREADS);
      }
      super(file, withPreload(options), ...rest);
    }
  };
  syncBuiltinESMExports();
}

/** A worker with options of its own for Node does not inherit them. */
function withPreload(options) {
  if (!Array.isArray(options?.execArgv)) {
    return options;
  }
  return { ...options, execArgv: [...options.execArgv, "--require", IN_THREAD] };
}

/** In a fork: it has not got the threads of V8's that another isolate may need. */
function refuse() {
  isFork = true;
}

/** In a process that becomes an instance itself, before anything of the function's runs in it. */
function renew() {
  Atomics.store(became, 0, 1);
}

module.exports = { prepare, refuse, renew };
