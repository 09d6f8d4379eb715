"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { decode, encode } = require("../../worker/payload.js");

const marshal = { errorType: "Runtime.MarshalError" };

test("values become what JSON says of them", () => {
  assert.equal(encode(undefined), "null");
  assert.equal(encode({ a: [1, "ü", null], skipped: undefined }), '{"a":[1,"ü",null]}');
  assert.equal(encode(new Date(0)), '"1970-01-01T00:00:00.000Z"');
  assert.equal(encode("\\ud800 \u{1f525}"), '"\\\\ud800 \u{1f525}"');
});

test("what JSON cannot say is a marshal error", () => {
  const circle = [];
  circle.push(circle);
  for (const value of [1n, circle, () => 1, Symbol("s"), "\ud800", { "\udc00": 1 }, '\\"\ud800']) {
    assert.throws(() => encode(value), marshal, String(typeof value));
  }
  const throwing = {
    toJSON() {
      throw new TypeError("t");
    },
  };
  assert.throws(() => encode(throwing), marshal);
});

test("an event that is no JSON is an unmarshal error", () => {
  assert.deepEqual(decode('{"a":1}'), { a: 1 });
  assert.throws(() => decode("{"), { errorType: "Runtime.UnmarshalError" });
});
