"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { Fault, describe, toJson } = require("../../worker/errors.js");

test("an error has type, message and the lines of its stack", () => {
  const report = describe(new RangeError("bad"));
  assert.equal(report.errorType, "RangeError");
  assert.equal(report.errorMessage, "bad");
  assert.equal(report.stackTrace[0], "RangeError: bad");
  assert.match(report.stackTrace[1], /errors\.test\.js/);
});

test("a fault has the runtime's own type and no stack", () => {
  assert.deepEqual(describe(new Fault("Runtime.X", "why")), {
    errorType: "Runtime.X",
    errorMessage: "why",
    stackTrace: [],
  });
});

test("what is thrown need not be an error", () => {
  assert.deepEqual(describe("text"), { errorType: "string", errorMessage: "text", stackTrace: [] });
  assert.equal(describe(undefined).errorType, "undefined");
  assert.equal(describe(null).errorMessage, "null");
  assert.equal(describe(Symbol("s")).errorMessage, "Symbol(s)");
  assert.equal(describe(Object.create(null)).errorMessage, "");
});

test("errors of other realms are errors", () => {
  const foreign = require("node:vm").runInNewContext("new TypeError('there')");
  assert.equal(describe(foreign).errorType, "TypeError");
});

test("causes follow under a line that names them, once each", () => {
  const inner = new TypeError("inner");
  const outer = new Error("outer", { cause: inner });
  inner.cause = outer;
  const trace = describe(outer).stackTrace;
  assert.equal(trace.filter((line) => line === "Caused by: TypeError: inner").length, 1);
  assert.equal(trace.filter((line) => line.includes("outer")).length, 1);
});

test("getters that throw do no harm", () => {
  const hostile = new Proxy(
    {},
    {
      get() {
        throw new Error("no");
      },
      getPrototypeOf() {
        throw new Error("no");
      },
    },
  );
  assert.equal(describe(hostile).errorType, "Error");
});

test("a report fits a datagram and is text", () => {
  const error = new Error(`${"x".repeat(1_000_000)}\ud800`);
  error.stack = Array.from({ length: 10_000 }, (_, n) => `    at f${n} (${"y".repeat(2000)})`).join("\n");
  const text = toJson(describe(error));
  assert.ok(Buffer.byteLength(text) < 64 * 1024);
  assert.ok(JSON.parse(text).stackTrace.some((line) => line.includes("left out") || line.includes("(cut)")));
  assert.ok(!toJson(describe(new Error("\ud800"))).includes("\\ud800"));
});
