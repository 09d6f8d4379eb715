// Random bytes drawn by the import, which forks would share.
//
// During the import, `begin` records which buffers `node:crypto` and `crypto.getRandomValues` fill. Buffers still in
// use at its end (pools, as in `nanoid` and `uuid`) are refilled by each instance (`renew`) where they still hold the
// drawn bytes. What else the bytes were used for is unknown: `end` reports how many were drawn and restores the
// original functions.
"use strict";

const crypto = require("node:crypto");
const { syncBuiltinESMExports } = require("node:module");
// Its own: the function may have replaced the global one.
const { setImmediate } = require("node:timers");
const native = require("./native.js");
const uuid = require("./uuid.js");

// Lines of code that a report names, and draws whose lines are looked at.
const PLACES = 3;
const STACKS = 100;
// Bytes of a UUID, and of a random integer.
const UUID_BYTES = 16;
const INTEGER_BYTES = 6;
// Larger buffers are filled anew as a whole.
const COMPARED_BYTES = 1 << 20;

let restore = () => {};
// What was filled: `{ view, start, drawn }`, the view weakly.
let fills = [];
const ranges = [];
let nodeIds = [];
let bytes = 0;
let draws = 0;
const places = new Set();

/** In the template, before the import. */
function begin(codeDir) {
  const originals = [];
  const replace = (owner, name, make) => {
    const original = owner[name];
    if (typeof original !== "function") {
      return;
    }
    const mine = make(original);
    Object.defineProperties(mine, { name: { value: original.name }, length: { value: original.length } });
    originals.push([owner, name, original]);
    owner[name] = mine;
  };
  const note = (size) => count(size, codeDir);

  replace(
    crypto,
    "randomBytes",
    (original) =>
      function randomBytes(size, callback) {
        const noted = (buffer) => {
          note(buffer.length);
          filled(buffer, 0, buffer.length);
          return buffer;
        };
        return typeof callback === "function"
          ? original(size, (error, buffer) => callback(error, error ? buffer : noted(buffer)))
          : noted(original(size));
      },
  );
  replace(
    crypto,
    "randomFillSync",
    (original) =>
      function randomFillSync(view, ...range) {
        original(view, ...range);
        note(filledRange(view, ...range));
        return view;
      },
  );
  replace(
    crypto,
    "randomFill",
    (original) =>
      function randomFill(view, ...rest) {
        const callback = rest.at(-1);
        const range = rest.slice(0, -1);
        return original(view, ...range, (error, value) => {
          if (!error) {
            note(filledRange(view, ...range));
          }
          callback(error, value);
        });
      },
  );
  const counted = (size) => (original) =>
    function draw(...args) {
      note(size);
      return Reflect.apply(original, this, args);
    };
  replace(crypto, "randomUUID", counted(UUID_BYTES));
  replace(crypto, "randomInt", counted(INTEGER_BYTES));
  const web = Object.getPrototypeOf(crypto.webcrypto);
  replace(web, "randomUUID", counted(UUID_BYTES));
  replace(
    web,
    "getRandomValues",
    (original) =>
      function getRandomValues(view) {
        Reflect.apply(original, this, [view]);
        note(filledRange(view));
        return view;
      },
  );
  syncBuiltinESMExports();
  restore = () => {
    for (const [owner, name, original] of originals) {
      owner[name] = original;
    }
    syncBuiltinESMExports();
    restore = null;
  };
}

/** In the template, after the import. Returns the report for the server: how many bytes, how many of them are renewed, and
 * where they were drawn first; null if there were none. `gc` collects all garbage. */
async function end(gc) {
  restore();
  if (fills.length > 0) {
    // What is not in use any more is not renewed. A view is in use for the whole turn in which it was referred to.
    await new Promise((resolve) => setImmediate(resolve));
    gc();
  }
  let renewed = 0;
  for (const fill of fills) {
    const view = fill.view.deref();
    for (const [start, length] of view === undefined ? [] : unchanged(view, fill)) {
      ranges.push({ view: fill.view, start, length });
      renewed += length;
    }
  }
  fills = [];
  if (bytes === 0) {
    return null;
  }
  nodeIds = uuid.nodeIds();
  return { bytes, renewed, places: [...places] };
}

/** In the child. */
function renew() {
  for (const { view, start, length } of ranges) {
    const held = view.deref();
    if (held !== undefined && held.byteLength >= start + length) {
      octets(held, start, length).set(native.randomBytes(length));
    }
  }
  for (const nodeId of nodeIds) {
    uuid.renew(nodeId);
  }
}

function count(size, codeDir) {
  // A reference to a wrapper may have been kept; it costs nothing then.
  if (restore === null) {
    return;
  }
  bytes += size;
  draws += 1;
  if (places.size < PLACES && draws <= STACKS) {
    places.add(place(codeDir));
  }
}

/** The line of the function's code, dependencies included, that drew. */
function place(codeDir) {
  const { stack } = new Error("");
  const line = stack.split("\n").find((entry) => entry.includes(`${codeDir}/`));
  const found = line?.slice(line.indexOf(`${codeDir}/`) + codeDir.length + 1).match(/^(.*?:\d+)/);
  return found?.[1] ?? "?";
}

/** Notes what `randomFillSync` filled, which counts in elements. Returns how many bytes. */
function filledRange(view, offset = 0, size = undefined) {
  const element = view.BYTES_PER_ELEMENT ?? 1;
  const start = offset * element;
  const length = size === undefined ? view.byteLength - start : size * element;
  filled(view, start, length);
  return length;
}

function filled(view, start, length) {
  if (restore !== null && length > 0) {
    const drawn = length <= COMPARED_BYTES ? Uint8Array.from(octets(view, start, length)) : null;
    fills.push({ view: new WeakRef(view), start, length, drawn });
  }
}

function octets(view, start, length) {
  const isView = ArrayBuffer.isView(view);
  return new Uint8Array(isView ? view.buffer : view, (isView ? view.byteOffset : 0) + start, length);
}

/** Where the view holds what was drawn: pairs of start and length. Bytes that were used up and wiped, or replaced, stay. */
function unchanged(view, { start, length, drawn }) {
  if (view.byteLength < start + length) {
    return [];
  }
  if (drawn === null) {
    return [[start, length]];
  }
  const now = octets(view, start, length);
  const found = [];
  let from = -1;
  for (let at = 0; at <= length; at += 1) {
    const same = at < length && now[at] === drawn[at];
    if (same && from < 0) {
      from = at;
    } else if (!same && from >= 0) {
      found.push([start + from, at - from]);
      from = -1;
    }
  }
  return found;
}

module.exports = { begin, end, renew };
