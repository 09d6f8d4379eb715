// The `uuid` package's node and clock sequence of version 1, which it draws once and keeps in variables that nobody else can
// reach. V8's inspector can, in this very process.
"use strict";

const inspector = require("node:inspector");
const native = require("./native.js");

const NODE_BYTES = 6;

/**
 * In the template: has the package draw its state anew, where it keeps it in an object (version 11 and later), and returns the
 * lists that hold a node where it does not. Of every copy of the package, whatever kind of module it is.
 */
function nodeIds() {
  const session = new inspector.Session();
  session.connect();
  try {
    return statesIn(session).flatMap((state) => {
      if (Array.isArray(state)) {
        return [state];
      }
      // Without a node, both are drawn.
      delete state.node;
      delete state.clockseq;
      return [];
    });
  } catch {
    // An inspector that answers otherwise: then it is as it was.
    return [];
  } finally {
    session.disconnect();
  }
}

function statesIn(session) {
  const ask = (method, parameters) => {
    let answer = {};
    session.post(method, parameters, (error, result) => {
      answer = error ? {} : result;
    });
    return answer;
  };
  const properties = (objectId) => ask("Runtime.getProperties", { objectId, ownProperties: true });
  const prototype = ask("Runtime.evaluate", { expression: "Function.prototype" }).result;
  const { objects } = ask("Runtime.queryObjects", { prototypeObjectId: prototype.objectId });
  const makers = ask("Runtime.callFunctionOn", {
    objectId: objects.objectId,
    functionDeclaration: `function () {
      const source = Function.prototype.toString;
      return this.filter((made) => /^v[16]/.test(made.name) && source.call(made).includes("clockseq"));
    }`,
  }).result;
  const states = [];
  globalThis[HANDOVER] = (state) => states.push(state);
  try {
    for (const { name, value } of properties(makers.objectId).result) {
      if (/^\d+$/.test(name)) {
        const scopes = properties(value.objectId).internalProperties.find((inner) => inner.name === "[[Scopes]]");
        for (const scope of properties(scopes.value.objectId).result) {
          if (scope.value?.description?.startsWith("Global") === false) {
            handOver(properties(scope.value.objectId).result, ask);
          }
        }
      }
    }
  } finally {
    delete globalThis[HANDOVER];
  }
  return [...new Set(states)];
}

// Under this name the inspector finds the function that takes what it found, for a moment.
const HANDOVER = "hearthTakesUuidState";

function handOver(variables, ask) {
  for (const { name, value } of variables) {
    if (/^_(nodeId|state)/.test(name) && value?.objectId !== undefined) {
      ask("Runtime.callFunctionOn", {
        objectId: value.objectId,
        functionDeclaration: `function () { globalThis.${HANDOVER}(this); }`,
      });
    }
  }
}

/** In the child: another node, with the bit of those that are no address of a network card (RFC 9562, section 6.10). */
function renew(nodeId) {
  const drawn = native.randomBytes(NODE_BYTES);
  drawn[0] |= 1;
  for (let at = 0; at < NODE_BYTES; at += 1) {
    nodeId[at] = drawn[at];
  }
}

module.exports = { nodeIds, renew };
