// JSON in and out, with Lambda's error names for values that JSON cannot represent.
"use strict";

const { Fault } = require("./errors.js");

/** The event. Throws a `Fault` when JavaScript cannot hold it (nested too deep). */
function decode(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Fault("Runtime.UnmarshalError", `Unable to unmarshal input: ${error.message}`);
  }
}

/** The result as JSON text; `undefined` is null. Throws a `Fault` when JSON cannot say it: a cycle, a BigInt. */
function encode(value) {
  let text;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    throw new Fault("Runtime.MarshalError", `Unable to marshal response: ${error?.message ?? error}`);
  }
  if (text === undefined) {
    if (value !== undefined) {
      throw new Fault("Runtime.MarshalError", `Unable to marshal response: a ${typeof value} is not a JSON value`);
    }
    return "null";
  }
  if (text.includes("\\ud") && LONE_SURROGATE.test(text)) {
    // Most readers of JSON refuse them, escaped or not.
    throw new Fault("Runtime.MarshalError", "Unable to marshal response: a lone surrogate is not valid text");
  }
  return text;
}

// `JSON.stringify` escapes them, and no other surrogates: an odd number of backslashes and the code unit.
const LONE_SURROGATE = /(?<!\\)(?:\\\\)*\\ud[89a-f]/;

module.exports = { decode, encode };
