// Resets what forks must not share: random state, identifiers, clocks that count from the start of the process.
//
// `prepare` runs in the template before the import and replaces what could not be reset later; `renew` runs in a child.
// `crypto.randomBytes`, `getRandomValues` and keys need nothing: OpenSSL (1.1.1 and later) reseeds its generators in a
// new process.
"use strict";

const { createHook } = require("node:async_hooks");
const drawn = require("./drawn.js");
const native = require("./native.js");
const random = require("./random.js");
const { UUID_CACHE, INTEGER_CACHE, useUpCaches } = require("./caches.js");

// What `async_hooks` calls the request that refills one.
const REFILL = "RANDOMBYTESREQUEST";

/** In the template: leaves both caches empty, so that a child fills its own. Returns whether that worked. */
function emptyCaches() {
  const crypto = require("node:crypto");
  let refills = 0;
  const hook = createHook({
    init(_id, type) {
      refills += type === REFILL ? 1 : 0;
    },
  });
  const empty = (take, size) => {
    const before = refills;
    for (let left = size; left >= 0 && refills === before; left -= 1) {
      take();
    }
    for (let left = size - 1; left > 0; left -= 1) {
      take();
    }
    return refills === before + 1;
  };
  hook.enable();
  try {
    return empty(() => crypto.randomUUID(), UUID_CACHE) && empty(() => crypto.randomInt(2), INTEGER_CACHE);
  } finally {
    hook.disable();
  }
}

/** In the child, where the template could not tell. */
function useUpOwn() {
  const { randomUUID, randomInt } = require("node:crypto");
  useUpCaches(randomUUID, randomInt);
}

/**
 * A clock that begins anew in a child, at what it showed last in the template: a time that was taken during the import is
 * never later than one that is taken in a handler.
 */
function renewable(read) {
  let behind = 0;
  let last = 0;
  return {
    read() {
      last = read() - behind;
      return last;
    },
    behind: () => behind,
    renew() {
      behind = read() - last;
    },
  };
}

/** Lets `performance` and `process.uptime` leave out the time between the import and the child's start. */
function prepareClocks() {
  const { now } = performance;
  const origin = performance.timeOrigin;
  const time = renewable(() => now.call(performance));
  const uptime = renewable(process.uptime);
  define(performance, "now", { value: time.read });
  define(performance, "timeOrigin", { get: () => origin + time.behind() });
  define(process, "uptime", { value: uptime.read });
  return () => {
    time.renew();
    uptime.renew();
  };
}

function define(object, name, descriptor) {
  const base = { configurable: true, enumerable: true };
  if ("value" in descriptor) {
    base.writable = true;
  }
  Object.defineProperty(object, name, { ...base, ...descriptor });
}

let restartClocks;
let steps = [];

// What `process.pid` says: Node keeps the number that it started with.
let ownPid = process.pid;

/** In the template, before the import. */
function prepare() {
  random.prepare();
  define(process, "pid", { get: () => ownPid });
  restartClocks = prepareClocks();
  // Node's own way out waits for threads that a fork does not have. What runs before it (`exit` listeners) still does.
  process.reallyExit = native.exitNow;
}

/** In the template, after the import: finds out what there is to renew. */
function plan() {
  const isLoaded = process.moduleLoadList.includes("NativeModule internal/crypto/random");
  steps = isLoaded && !emptyCaches() ? [useUpOwn] : [];
}

/** In the child, when it begins to serve: no time has passed since the import. */
function renewClocks() {
  restartClocks();
}

/** In the child, before it says that it is ready; and in the template, to rehearse it. */
function renew(pid, isRehearsal) {
  ownPid = pid;
  random.renew(isRehearsal);
  renewClocks();
  if (!isRehearsal) {
    drawn.renew();
  }
  for (const step of steps) {
    step();
  }
}

module.exports = { prepare, plan, renew, renewClocks };
