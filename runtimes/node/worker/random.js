// `Math.random` with a state that can be reseeded, unlike V8's own: in the function's realm and in every context it
// creates with `node:vm`.
"use strict";

const vm = require("node:vm");
const native = require("./native.js");
const { REPLACE } = require("./sfc32.js");

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
