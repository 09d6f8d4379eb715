// A member of a chain whose handler has payloads in place: `payload: "block"`.
//
// The handler is called with a Buffer of the payload. What is in the block when it is done is the result: as many bytes as came, or
// as many as it returns. It may also return bytes, which are copied to the block. When the request is passed on, all that was
// made of the block has no bytes any more.
"use strict";

// Its own: tests replace the global one.
const { setImmediate } = require("node:timers");
const { translated } = require("./chain.js");
const { Fault } = require("./errors.js");

// What the instance does with the chain, and the handler cannot.
let begin;
let finish;
let abandon;

/** The chain, for such a handler. A payload is undefined or null (what is there), a number of bytes (what was written there), or
 * bytes. */
class BlockChain {
  static {
    begin = (chain) => chain.#begin();
    finish = (chain, value) => chain.#finish(value);
    abandon = (chain) => chain.#abandon();
  }

  #channel;
  // What the handler was given, in that order; the request's block is the first.
  #lent = [];
  // The blocks for calls among them, by number.
  #calls = new Map();
  // Bytes of the request's payload.
  #length = 0;

  constructor(channel) {
    this.#channel = channel;
  }

  /** The event of a request: a Buffer of its payload. */
  #begin() {
    const whole = translated(() => this.#channel.chainBlock());
    this.#lent = [whole];
    this.#calls.clear();
    this.#length = this.#channel.chainLength();
    return Buffer.from(whole, 0, this.#length);
  }

  /** Passes the request on with what the handler has returned. */
  #finish(value) {
    if (this.#lent.length > 0) {
      const given = this.#given(value);
      this.#channel.passBlock(given, this.#taken());
    }
  }

  /** The request fails. */
  #abandon() {
    this.#channel.endLoansOf(this.#taken());
  }

  /** The whole block that the request lies in, a Buffer: as long as a result may be. */
  get block() {
    return Buffer.from(this.#request());
  }

  /** A whole block for the payload of a call, a Buffer, or as many blocks as `size` bytes take. A call with its beginning copies
   * nothing, and neither does its result if it fits there. */
  allocate(size = 0) {
    if (!(Number.isInteger(size) && size >= 0 && size <= 0xffff_ffff)) {
      throw new RangeError("the size of a call's payload is a number of bytes");
    }
    return Buffer.from(this.#hold(size)[1]);
  }

  /** Calls a member with a payload; a promise of a Buffer of its result: in the block, if the payload is the beginning of one that was
   * allocated and the result fits there, else a copy. Calls that are begun together are under way at the same time. */
  async call(member, value = Buffer.alloc(0)) {
    const result = this.#beginCall(member, value);
    // Lets the others begin before this one waits, which stops the event loop.
    await new Promise((resolve) => setImmediate(resolve));
    return translated(result);
  }

  /** Passes the request on now, to the member's next place on the route. What the handler returns goes nowhere. */
  send(member, value) {
    const given = this.#given(value);
    this.#pass(() => this.#channel.chainSendBlock(member, given, this.#lent));
  }

  /** Ends the request with this result now. What the handler returns goes nowhere. */
  respond(value) {
    const given = this.#given(value);
    this.#pass(() => this.#channel.chainRespondBlock(given, this.#lent));
  }

  #pass(run) {
    translated(run);
    this.#taken();
  }

  /** Begins a call; what waits for its result. */
  #beginCall(member, value) {
    if (!(value instanceof Uint8Array)) {
      throw new Fault("Runtime.MarshalError", "the payload of a call in place is bytes");
    }
    for (const [call, buffer] of this.#calls) {
      if (value.buffer === buffer && value.byteOffset === 0) {
        translated(() => this.#channel.chainCallBlock(member, call, value.length));
        return () => {
          const result = this.#channel.chainResultBlock(call);
          return Buffer.isBuffer(result) ? result : Buffer.from(buffer, 0, result);
        };
      }
    }
    const call = translated(() => this.#channel.chainCallBytes(member, value));
    return () => this.#channel.chainResultBytes(call);
  }

  #hold(size) {
    this.#request();
    const [call, buffer] = translated(() => this.#channel.chainHold(size));
    this.#lent.push(buffer);
    this.#calls.set(call, buffer);
    return [call, buffer];
  }

  /** The buffer of the request in hand. */
  #request() {
    // Of one that was passed on, the channel says so.
    return this.#lent[0] ?? translated(() => this.#channel.chainBlock());
  }

  #given(value) {
    return bytesOf(value, this.#length, this.#request(), this.#lent);
  }

  /** What was lent, which is not any more. */
  #taken() {
    const lent = this.#lent;
    this.#lent = [];
    this.#calls.clear();
    return lent;
  }
}

/** An instance as a member of a chain, with payloads in place: as `Member` in chain.js. */
class BlockMember {
  constructor(channel) {
    this.chain = new BlockChain(channel);
  }

  begin() {
    return begin(this.chain);
  }

  finish(value) {
    finish(this.chain, value);
  }

  abandon() {
    abandon(this.chain);
  }
}

/** What is given for a payload: a number of bytes of the block, or bytes that lie in none of those that are lent. */
function bytesOf(value, present, block, lent) {
  if (value === undefined || value === null) {
    return present;
  }
  if (Number.isInteger(value) && value >= 0 && value <= 0xffff_ffff) {
    return value;
  }
  if (!(value instanceof Uint8Array)) {
    throw new Fault("Runtime.MarshalError", "a payload in place is undefined, a length, or bytes");
  }
  if (value.buffer === block && value.byteOffset === 0) {
    return value.length;
  }
  // What is about to be overwritten, or to be taken back with its block, is copied first.
  return lent.includes(value.buffer) ? new Uint8Array(value) : value;
}

module.exports = { BlockMember };
