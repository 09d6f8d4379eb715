// What a fork cannot have, refused by name instead of hanging or crashing.
"use strict";

const { syncBuiltinESMExports } = require("node:module");
const threads = require("node:worker_threads");

const NO_THREADS =
  'worker_threads.Worker is not available in an instance that is a fork: set the function\'s "start" to "restore" or "boot", ' +
  "or use child_process";

/** An error that says so, with the stack of whoever tried. */
class Unsupported extends Error {
  name = "Runtime.Unsupported";
  code = "ERR_WORKER_UNSUPPORTED_OPERATION";
}

let isFork = false;

/** In the template, before the import. What that starts itself is counted, and the template then not forked. */
function prepare() {
  threads.Worker = class Worker extends threads.Worker {
    constructor(...parameters) {
      if (isFork) {
        throw new Unsupported(NO_THREADS);
      }
      super(...parameters);
    }
  };
  syncBuiltinESMExports();
}

/** In a fork: it has not got the threads of V8's that another isolate may need. */
function refuse() {
  isFork = true;
}

module.exports = { prepare, refuse };
