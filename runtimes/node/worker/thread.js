// Runs in every worker thread before its own code: once the process has become an instance, existing random state is
// reset on first use. Does nothing in the main thread.
"use strict";

const threads = require("node:worker_threads");

// Shared flag that tells workers that their process is an instance now: a message could be late.
const BECAME = "hearth.became";

if (!threads.isMainThread) {
  const became = threads.getEnvironmentData(BECAME);
  if (became !== undefined && Atomics.load(became, 0) === 0) {
    renewLater(() => Atomics.load(became, 0) !== 0);
  }
}

function renewLater(isInstance) {
  const crypto = require("node:crypto");
  const { syncBuiltinESMExports } = require("node:module");
  const { random } = Math;
  const { randomUUID, randomInt } = crypto;
  const web = Object.getPrototypeOf(crypto.webcrypto);
  const { randomUUID: webRandomUUID } = web;

  let seeded;
  const renew = () => {
    if (seeded !== undefined || !isInstance()) {
      return;
    }
    const { REPLACE } = require("./sfc32.js");
    const { useUpCaches } = require("./caches.js");
    const current = Math.random;
    const [own, seed] = REPLACE.runInThisContext();
    seeded = own;
    // What the function has put there stays.
    Math.random = current;
    seed(...crypto.getRandomValues(new Int32Array(3)));
    useUpCaches(randomUUID, randomInt);
  };

  Object.defineProperty(Math, "random", {
    value: {
      random() {
        renew();
        return (seeded ?? random)();
      },
    }.random,
    writable: true,
    configurable: true,
  });
  const renewed = (original) =>
    Object.defineProperties(
      function draw(...args) {
        renew();
        return Reflect.apply(original, this, args);
      },
      { name: { value: original.name }, length: { value: original.length } },
    );
  crypto.randomUUID = renewed(randomUUID);
  crypto.randomInt = renewed(randomInt);
  web.randomUUID = renewed(webRandomUUID);
  syncBuiltinESMExports();
}

module.exports = { BECAME };
