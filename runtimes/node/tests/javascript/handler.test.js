"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { split } = require("../../worker/handler.js");

test("a handler is a module's path and names in it", () => {
  assert.deepEqual(split("main.handler"), ["main", ["handler"]]);
  assert.deepEqual(split("src/api/main.routes.get"), ["src/api/main", ["routes", "get"]]);
});

test("anything else is malformed", () => {
  for (const setting of ["", "main", "main.", ".handler", "a..b", "dir/", "../main.handler", "a/../../b.c"]) {
    assert.throws(() => split(setting), { errorType: "Runtime.MalformedHandlerName" }, setting);
  }
});
