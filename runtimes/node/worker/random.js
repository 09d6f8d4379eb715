// `Math.random` over a state that can be renewed, which V8's own cannot: in the function's own realm, and in every context
// that it makes with `node:vm`.
"use strict";

const vm = require("node:vm");
const native = require("./native.js");

// Run in a realm: replaces its `Math.random`, and returns it with what seeds it. Generator: sfc32 (Chris Doty-Humphrey,
// PractRand), three words and a counter; a result is 53 random bits in [0, 1).
const REPLACE = new vm.Script(
  `(() => {
  "use strict";
  let a = 0;
  let b = 0;
  let c = 0;
  let counter = 0;
  const next = () => {
    const sum = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  };
  const { random } = {
    random() {
      return ((next() >>> 5) * 0x4000000 + (next() >>> 6)) / 0x20000000000000;
    },
  };
  Object.defineProperty(Math, "random", { value: random, writable: true, configurable: true });
  const seed = (x, y, z) => {
    a = x;
    b = y;
    c = z;
    counter = 1;
    // The first results still show the seed's pattern.
    for (let round = 0; round < 12; round += 1) {
      next();
    }
  };
  return [random, seed];
})()`,
  { filename: __filename },
);

// Seeds what was made before the fork: the function's own realm, and contexts, if they are still in use.
let seedOwn;
let contexts = [];
// By their `Math.random`, with which they live and die.
const seeds = new WeakMap();

function seed(take) {
  take(native.randomWord(), native.randomWord(), native.randomWord());
}

/** In the template, before the import. */
function prepare() {
  [, seedOwn] = REPLACE.runInThisContext();
  seed(seedOwn);
  const { createContext, runInNewContext, isContext } = vm;
  const { runInNewContext: runScript } = vm.Script.prototype;
  const make = (object, options) => {
    const isNew = typeof object !== "object" || object === null || !isContext(object);
    const context = createContext(object, options);
    if (isNew) {
      const [random, take] = REPLACE.runInContext(context);
      seed(take);
      if (contexts !== null) {
        seeds.set(random, take);
        contexts.push(new WeakRef(random));
      }
    }
    return context;
  };
  replace(vm, "createContext", {
    createContext(contextObject, options) {
      return make(contextObject, options);
    },
  });
  replace(vm, "runInNewContext", {
    runInNewContext(code, contextObject, options) {
      return runInNewContext(code, make(contextObject, contextOptions(options)), options);
    },
  });
  replace(vm.Script.prototype, "runInNewContext", {
    runInNewContext(contextObject, options) {
      return runScript.call(this, make(contextObject, contextOptions(options)), options);
    },
  });
}

function replace(owner, name, { [name]: value }) {
  Object.defineProperty(owner, name, { value, writable: true, enumerable: true, configurable: true });
}

/** What `createContext` calls the options of `runInNewContext`. */
function contextOptions(options) {
  if (typeof options !== "object" || options === null) {
    return undefined;
  }
  const { contextName, contextOrigin, contextCodeGeneration, microtaskMode } = options;
  const named = { name: contextName, origin: contextOrigin, codeGeneration: contextCodeGeneration, microtaskMode };
  return Object.fromEntries(Object.entries(named).filter(([, value]) => value !== undefined));
}

/** In the child. A rehearsal is followed by more of the template's life, which makes more contexts. */
function renew(isRehearsal) {
  seed(seedOwn);
  if (isRehearsal || contexts === null) {
    return;
  }
  for (const context of contexts) {
    const random = context.deref();
    if (random !== undefined) {
      seed(seeds.get(random));
    }
  }
  // Contexts made from now on are this process' alone.
  contexts = null;
}

module.exports = { prepare, renew };
