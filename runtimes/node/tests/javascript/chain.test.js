"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");

/** A channel whose request and calls lie in blocks of 16 bytes; it notes what is passed on. */
function channelOf(isInPlace) {
  const passed = [];
  return {
    passed,
    isInPlace: () => isInPlace,
    result: (text) => passed.push(text),
    chainBlock: () => new ArrayBuffer(16),
    chainLength: () => 4,
    chainHold: () => [7, new ArrayBuffer(16)],
    passBlock: (given, lent) => passed.push([given, lent.length]),
    endLoansOf: (lent) => passed.push(["ended", lent.length]),
  };
}

/** A member, as an instance of its own opens it. */
function memberOf(channel) {
  const path = require.resolve("../../worker/chain.js");
  delete require.cache[path];
  return require(path).memberOf(channel);
}

function methods(object) {
  return Object.getOwnPropertyNames(Object.getPrototypeOf(object)).sort();
}

test("a handler has what it can do with the chain, and no more", () => {
  assert.deepEqual(methods(memberOf(channelOf(false)).chain), ["call", "constructor", "respond", "send"]);
  const names = ["allocate", "block", "call", "constructor", "respond", "send"];
  const { chain } = memberOf(channelOf(true));
  assert.deepEqual(methods(chain), names);
  assert.deepEqual(Object.keys(chain), []);
  assert.deepEqual(Object.getOwnPropertyNames(chain.constructor).sort(), ["length", "name", "prototype"]);
});

test("values are passed on as JSON", () => {
  const channel = channelOf(false);
  const member = memberOf(channel);
  assert.deepEqual(member.begin("[1]"), [1]);
  member.finish({ a: 1 });
  assert.deepEqual(channel.passed, ['{"a":1}']);
});

test("what is in the block is passed on, and what is in another is copied", () => {
  const channel = channelOf(true);
  const member = memberOf(channel);
  const given = (value) => {
    const event = member.begin();
    assert.equal(event.length, 4);
    member.finish(value(event, member.chain));
    return channel.passed.pop();
  };
  assert.deepEqual(
    given(() => undefined),
    [4, 1],
  );
  assert.deepEqual(
    given(() => 9),
    [9, 1],
  );
  assert.deepEqual(
    given((_, chain) => chain.block.subarray(0, 3)),
    [3, 1],
  );
  const own = Buffer.from("own");
  assert.equal(given(() => own)[0], own);
  for (const lent of [(chain) => chain.block.subarray(2, 4), (chain) => chain.allocate().subarray(0, 2)]) {
    let result;
    const [bytes] = given((_, chain) => {
      result = lent(chain);
      result.write("ab");
      return result;
    });
    assert.notEqual(bytes.buffer, result.buffer);
    assert.deepEqual([...bytes], [...Buffer.from("ab")]);
  }
  member.begin();
  member.abandon();
  assert.deepEqual(channel.passed, [["ended", 1]]);
});
