// V8's garbage collector, on demand.
"use strict";

const v8 = require("node:v8");
const vm = require("node:vm");

/** Returns a function that collects all garbage. Nothing of it is visible to the function's code. */
function collector() {
  v8.setFlagsFromString("--expose-gc");
  // Only contexts made from now on have it.
  const gc = vm.runInNewContext("gc");
  v8.setFlagsFromString("--no-expose-gc");
  return gc;
}

module.exports = { collector };
