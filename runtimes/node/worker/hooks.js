// Runs the hooks that a function registered with `snapshot_restore_node`.
"use strict";

const path = require.resolve("../node_modules/snapshot_restore_node");

// A function that never loaded the module has no hooks and no overhead.
const registered = (kind) => require.cache[path]?.exports[kind]() ?? [];

/** In the template, when the function has been imported: last registered first, as AWS documents. */
async function beforeSnapshot() {
  for (const [hook, args] of registered("get_before_snapshot").toReversed()) {
    await hook(...args);
  }
}

/** Whether something is to run in a child before its first request. */
function hasAfterRestore() {
  return registered("get_after_restore").length > 0;
}

/** In the child, before it takes a request: first registered first. Returns a promise only if there are hooks. */
function afterRestore() {
  return hasAfterRestore() ? runAll(registered("get_after_restore")) : undefined;
}

async function runAll(hooks) {
  for (const [hook, args] of hooks) {
    await hook(...args);
  }
}

module.exports = { beforeSnapshot, hasAfterRestore, afterRestore };
