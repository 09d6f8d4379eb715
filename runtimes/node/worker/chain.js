// `context.chain`: what a handler can do with the other members of its chain.
"use strict";

// Its own: tests replace the global one.
const { setImmediate } = require("node:timers");
const payload = require("./payload.js");

/** A call that has no result. `errorType` says why; `error` is the other member's own error, as Lambda shapes it, if that member
 * failed. */
class ChainError extends Error {
  constructor(errorType, message, error) {
    super(message);
    this.name = "ChainError";
    this.errorType = errorType;
    this.error = error;
  }
}

/** The chain that this instance is a member of. */
class Chain {
  #channel;

  constructor(channel) {
    this.#channel = channel;
  }

  /** Calls a member with any JSON value; a promise of its result. Calls that are begun together are under way at the same time. */
  async call(member, value = null) {
    const call = translated(() => this.#channel.chainCall(member, payload.encode(value)));
    // Lets the others begin before this one waits, which stops the event loop.
    await new Promise((resolve) => setImmediate(resolve));
    return payload.decode(translated(() => this.#channel.chainResult(call)));
  }

  /** Passes the request on now, to the member's next place on the route. What the handler returns goes nowhere. */
  send(member, value = null) {
    translated(() => this.#channel.chainSend(member, payload.encode(value)));
  }

  /** Ends the request with this result now. What the handler returns goes nowhere. */
  respond(value = null) {
    translated(() => this.#channel.chainRespond(payload.encode(value)));
  }
}

function translated(run) {
  try {
    return run();
  } catch (error) {
    // `call_failed` in src/channel.rs.
    const [errorType, message, cause] = error.message.split("\n");
    if (message === undefined) {
      throw error;
    }
    throw new ChainError(errorType, message, cause ? JSON.parse(cause) : undefined);
  }
}

/** An instance as a member of a chain: what it does with requests. The handler has `chain`, and nothing else of it. */
class Member {
  #channel;

  constructor(channel) {
    this.#channel = channel;
    this.chain = new Chain(channel);
  }

  /** The event of a request: its payload as a value. */
  begin(text) {
    return payload.decode(text);
  }

  /** Passes the request on with what the handler has returned. */
  finish(value) {
    this.#channel.result(payload.encode(value));
  }

  /** The request fails. */
  abandon() {}
}

let opened = null;

/** The instance whose channel this is, as a member. */
function memberOf(channel) {
  if (opened === null && channel.isInPlace()) {
    const { BlockMember } = require("./blocks.js");
    opened = new BlockMember(channel);
  }
  opened ??= new Member(channel);
  return opened;
}

module.exports = { memberOf, translated };
