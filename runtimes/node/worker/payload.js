// JSON in and out, with Lambda's names for what cannot be said in it.
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
      throw new Fault("Runtime.MarshalError", `Unable to marshal response: a ${typeof value} is no JSON value`);
    }
    return "null";
  }
  return text;
}

module.exports = { decode, encode };
