// What a process that can be forked cannot have, refused by name instead of hanging or crashing.
"use strict";

const { syncBuiltinESMExports } = require("node:module");
const threads = require("node:worker_threads");

const NO_THREADS = "worker_threads.Worker is not available in functions: use child_process, or call another function";

/** An error that says so, with the stack of whoever tried. */
class Unsupported extends Error {
  name = "Runtime.Unsupported";
  code = "ERR_WORKER_UNSUPPORTED_OPERATION";
}

/** In the template, before the import: a thread would be missing in every fork, and V8 runs without what it needs. */
function prepare() {
  threads.Worker = class Worker {
    constructor() {
      throw new Unsupported(NO_THREADS);
    }
  };
  syncBuiltinESMExports();
}

module.exports = { prepare };
