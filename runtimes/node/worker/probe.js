// Tests whether this Node can be forked, with one real fork that does what functions do. Prints one line of JSON:
// `{"fork":true}` or `{"fork":false,"reason":"…"}`.
"use strict";

const { collector } = require("./collector.js");
const native = require("./native.js");

/** Runs the probe and ends the process. */
function run() {
  // Something for the child's collections to walk over.
  const kept = Array.from({ length: 50_000 }, (_, index) => ({ index, text: `entry ${index}` }));
  const gc = collector();
  let outcome;
  try {
    const ended = native.forkAndWait();
    if (ended === "child") {
      check(gc, kept);
      return;
    }
    outcome = ended === "" ? { fork: true } : { fork: false, reason: `a forked process did not work: ${ended}` };
  } catch (error) {
    outcome = { fork: false, reason: `fork failed: ${error.message}` };
  }
  process.stdout.write(`${JSON.stringify({ version: process.versions.node, ...outcome })}\n`);
}

/** The child: collections, timers, the thread pool. Ends with status 0, or 1. */
async function check(gc, kept) {
  try {
    const fs = require("node:fs/promises");
    const { promisify } = require("node:util");
    const { gzip } = require("node:zlib");
    const { randomBytes } = require("node:crypto");
    gc();
    const more = kept.map(({ index }) => ({ index, text: "x".repeat(index % 64) }));
    gc();
    await new Promise((resolve) => setTimeout(resolve, 1));
    await new Promise(setImmediate);
    const results = await Promise.all([
      fs.readFile(__filename),
      promisify(gzip)("x".repeat(100_000)),
      promisify(randomBytes)(32),
    ]);
    native.exitNow(more.length === kept.length && results.every((bytes) => bytes.length > 0) ? 0 : 1);
  } catch {
    native.exitNow(1);
  }
}

module.exports = { run };
