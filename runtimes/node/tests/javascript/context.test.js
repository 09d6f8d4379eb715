"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { Context } = require("../../worker/context.js");

Context.bind({ function: "hello", version: 3, memory_mb: 128 });

test("the fields are Lambda's", () => {
  const context = new Context("id", (Date.now() + 5000) * 1000, "trace", () => {});
  assert.equal(context.functionName, "hello");
  assert.equal(context.functionVersion, "3");
  assert.equal(context.memoryLimitInMB, "128");
  assert.equal(context.invokedFunctionArn, "arn:hearth:lambda:local:0:function:hello:3");
  assert.equal(context.logGroupName, "/hearth/hello");
  assert.equal(context.logStreamName, `3/${process.pid}`);
  assert.equal(context.awsRequestId, "id");
  assert.equal(context.traceparent, "trace");
  assert.ok(context.getRemainingTimeInMillis() > 0);
  assert.equal(new Context("id", 0, undefined, () => {}).getRemainingTimeInMillis(), 0);
});

test("the old ways to answer settle the invocation", () => {
  const calls = [];
  const context = new Context("id", 0, undefined, (...call) => calls.push(call));
  context.succeed(1);
  context.done(null, 2);
  context.fail(new TypeError("t"));
  context.fail();
  assert.deepEqual(calls.slice(0, 2), [
    [null, 1],
    [null, 2],
  ]);
  assert.ok(calls[2][0] instanceof TypeError && calls[3][0] instanceof Error);
});
