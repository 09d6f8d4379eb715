"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { addBody, shape } = require("../../worker/http.js");

const invalid = { errorType: "Runtime.InvalidResponse" };
const headOf = (value) => JSON.parse(shape(value).head);

const eventWith = (type, body) => {
  const event = { headers: type === undefined ? undefined : { "content-type": type } };
  addBody(event, Buffer.from(body));
  return [event.body, event.isBase64Encoded];
};

test("a body is text where the content type says so and the bytes are", () => {
  for (const type of ["text/plain", "Application/JSON; charset=utf-8", "application/ld+json", "application/xml"]) {
    assert.deepEqual(eventWith(type, "grüß"), ["grüß", false], type);
  }
  assert.deepEqual(eventWith("text/plain", "\ufeffbom"), ["\ufeffbom", false]);
  assert.deepEqual(eventWith("text/plain", [0xff]), ["/w==", true]);
  assert.deepEqual(eventWith("image/png", "abc"), ["YWJj", true]);
  assert.deepEqual(eventWith(undefined, "abc"), ["YWJj", true]);
  assert.deepEqual(eventWith("text/plain", ""), [undefined, false]);
});

test("bare values are a JSON body", () => {
  for (const value of [1, "text", null, [1], { status: 1 }, new Map()]) {
    assert.deepEqual(headOf(value), { statusCode: 200, headers: [["content-type", "application/json"]] });
    assert.equal(shape(value).body, JSON.stringify(value));
  }
  assert.equal(shape(undefined).body, "null");
});

test("headers, cookies and their values", () => {
  const head = headOf({
    statusCode: "201",
    headers: { "X-A": 1, "x-b": true, "x-c": ["a", "b"] },
    cookies: ["a=1"],
  });
  assert.deepEqual(head, {
    statusCode: 201,
    headers: [
      ["X-A", "1"],
      ["x-b", "true"],
      ["x-c", "a,b"],
      ["content-type", "application/json"],
      ["set-cookie", "a=1"],
    ],
  });
  const fetched = new Headers({ "Content-Type": "text/plain" });
  assert.deepEqual(headOf({ statusCode: 200, headers: fetched }).headers, [["content-type", "text/plain"]]);
});

test("bodies of every kind", () => {
  const body = (value, isBase64Encoded) => shape({ statusCode: 200, body: value, isBase64Encoded }).body;
  assert.equal(body("text"), "text");
  assert.equal(body(undefined), "");
  assert.equal(body({ a: 1 }), '{"a":1}');
  assert.deepEqual(Buffer.from(body("YW\nJj", true)), Buffer.from("abc"));
  assert.deepEqual(Buffer.from(body(Buffer.from("YWJj"), true)), Buffer.from("abc"));
  for (const bytes of [new Uint16Array([1, 2]), new DataView(new ArrayBuffer(4)), new ArrayBuffer(4)]) {
    assert.equal(body(bytes).length, 4);
  }
  for (const pieces of [(function* () {})(), (async function* () {})(), new Blob(["a"]).stream()]) {
    assert.equal(body(pieces), pieces);
  }
});

test("responses that make no sense are refused", () => {
  const responses = [
    { statusCode: 199 },
    { statusCode: 600 },
    { statusCode: 200.5 },
    { statusCode: true },
    { statusCode: "2e2" },
    { statusCode: 200, headers: [] },
    { statusCode: 200, headers: "a: b" },
    { statusCode: 200, headers: { "a b": "c" } },
    { statusCode: 200, headers: { a: "b\r\nc: d" } },
    { statusCode: 200, headers: { a: "\ud800" } },
    { statusCode: 200, headers: { a: {} } },
    { statusCode: 200, headers: { a: "x".repeat(70_000) } },
    { statusCode: 200, cookies: "a=1" },
    { statusCode: 200, body: "%%%=", isBase64Encoded: true },
    { statusCode: 200, body: "YWJ", isBase64Encoded: true },
    { statusCode: 200, body: {}, isBase64Encoded: true },
    { statusCode: 200, isBase64Encoded: "yes" },
  ];
  for (const response of responses) {
    assert.throws(() => shape(response), invalid, JSON.stringify(response));
  }
});
