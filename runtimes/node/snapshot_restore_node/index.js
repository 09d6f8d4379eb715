// Hooks around the snapshot a function is started from: the twin of AWS's `snapshot_restore_py`.
//
// The snapshot is the template: "before" hooks run in it once, last registered first, when the function has been imported;
// "after" hooks run in every instance that is forked from it, first registered first, before it takes a request. A hook
// may be asynchronous.

const before = [];
const after = [];

/** Calls `hook(...args)` once, before the function is ready. What it throws fails the deployment. */
function register_before_snapshot(hook, ...args) {
  before.push([check(hook), args]);
  return hook;
}

/** Calls `hook(...args)` in every new instance. What it throws fails that start. */
function register_after_restore(hook, ...args) {
  after.push([check(hook), args]);
  return hook;
}

function check(hook) {
  if (typeof hook !== "function") {
    throw new TypeError("a hook is a function");
  }
  return hook;
}

/** The registered hooks as [function, arguments], in order of registration. */
const get_before_snapshot = () => before;

/** The registered hooks as [function, arguments], in order of registration. */
const get_after_restore = () => after;

exports.register_before_snapshot = register_before_snapshot;
exports.register_after_restore = register_after_restore;
exports.get_before_snapshot = get_before_snapshot;
exports.get_after_restore = get_after_restore;
// The same in JavaScript's own spelling.
exports.registerBeforeSnapshot = register_before_snapshot;
exports.registerAfterRestore = register_after_restore;
