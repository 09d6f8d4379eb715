// An instance: a fork of the template that serves one request at a time until it is killed.
//
// Between requests it is frozen, as on Lambda: the wait for the next one blocks the event loop, and timers that came due
// meanwhile fire in the next invocation. While a handler's promise is open the event loop runs.
"use strict";

const { AsyncResource } = require("node:async_hooks");
const { Console } = require("node:console");
const { Writable } = require("node:stream");
const { inspect } = require("node:util");
const errors = require("./errors.js");
const hooks = require("./hooks.js");
const http = require("./http.js");
const native = require("./native.js");
const payload = require("./payload.js");
const renewal = require("./renewal.js");
const { Context } = require("./context.js");
const { Fault } = errors;

// `RequestHead.trigger` of an HTTP request; every other trigger is answered with one JSON value, as an invoke is.
const TRIGGER_INVOKE = 1;
const TRIGGER_HTTP = 2;

// Exit status of an instance that could not start.
const EXIT_START_FAILED = 1;

// Turns of the event loop without anything to do after which an invocation is over.
const DRY_TURNS = 3;

/** Made in the template, so that the child begins with everything at hand. */
class Instance {
  #handler;
  #channel;
  // The invocation that has not been answered, if any.
  #open = null;
  // Nothing of the function's runs directly in this resource, so what an invocation stores in an `AsyncLocalStorage`
  // does not reach the next one.
  #root = new AsyncResource("HearthInstance");

  constructor(handler, config) {
    this.#handler = handler;
    Context.bind(config);
  }

  /** In the template, last of all: from here on, what goes astray belongs to an invocation. */
  listen() {
    process.on("uncaughtException", (error) => this.#stray(error, error));
    process.on("unhandledRejection", (reason) => {
      this.#stray(new Fault("Runtime.UnhandledPromiseRejection", messageOf(reason), { cause: reason }), reason);
    });
    native.watchEventLoop((turns) => this.#dry(turns));
  }

  /** In the template: runs what every instance will, over a channel that leads nowhere, so that children find it compiled. */
  async rehearse() {
    const nowhere = { error() {}, result() {}, respond() {} };
    const text = '{"headers":{"content-type":"application/json"},"a":[1,"b"]}';
    const handlers = [
      async (event, context) => [event, context.getRemainingTimeInMillis(), context.logStreamName],
      async () => ({ statusCode: 200, headers: { a: "b" }, body: "text" }),
      async () => {
        throw new TypeError("rehearsed");
      },
    ];
    for (const trigger of [TRIGGER_INVOKE, TRIGGER_HTTP]) {
      for (const handler of handlers) {
        const request = ["", trigger, Date.now() * 1000, undefined, text, Buffer.from("{}")];
        await new Promise((done) => {
          new Invocation(nowhere, request, done).run(handler);
        });
      }
    }
    renewal.renew(process.pid);
    new Console({ stdout: new Writable({ write: (_chunk, _encoding, callback) => callback() }) }).log("%s", "a", {
      b: [1],
    });
    process.stdout.write("");
  }

  /** The child's whole life. */
  main(channel) {
    this.#channel = channel;
    try {
      renewal.renew(channel.pid());
      if (channel.isWanted()) {
        this.#afterRestore();
      } else {
        this.#waitUntilWanted().catch(die);
      }
    } catch (error) {
      die(error);
    }
  }

  /** In a spare, which has time: what the first request would have to copy of the template's pages becomes its own. */
  async #waitUntilWanted() {
    await this.rehearse();
    if (!this.#channel.waitUntilWanted()) {
      native.exitNow(0);
    }
    this.#afterRestore();
  }

  #afterRestore() {
    const hooked = hooks.afterRestore();
    if (hooked === undefined) {
      this.#begin();
    } else {
      hooked.then(() => this.#begin(), die);
    }
  }

  #begin() {
    this.#channel.ready();
    this.#schedule();
  }

  /** The next request is waited for in a fresh turn of the event loop: by then, ticks, promises and rejections of this
   * one have been seen to. */
  #schedule() {
    this.#open = null;
    this.#root.runInAsyncScope(setImmediate, null, this.#next);
  }

  #next = () => {
    const request = this.#channel.receive();
    if (request === null) {
      native.exitNow(0);
    }
    this.#open = new Invocation(this.#channel, request, () => this.#schedule());
    this.#open.run(this.#handler);
  };

  /** Nothing is left that could answer: no timer, no socket. V8 may still be about to settle a promise (WebAssembly), which
   * takes it a turn of the loop. */
  #dry(turns) {
    this.#root.runInAsyncScope(setImmediate, null, () => {
      if (turns >= DRY_TURNS) {
        this.#open?.runDry();
      }
    });
  }

  /** An error that no handler's promise led to. */
  #stray(error, thrown) {
    if (this.#open !== null) {
      this.#open.fail(error);
    } else {
      process.stderr.write(`${inspect(thrown)}\n`);
    }
  }
}

/** One request, answered once. */
class Invocation {
  #channel;
  #request;
  #done;
  #context;
  #isOpen = true;
  // What a callback was called with, while the answer waits for the event loop to run dry.
  #called = null;
  #isStreaming = false;

  constructor(channel, request, done) {
    this.#channel = channel;
    this.#request = request;
    this.#done = done;
  }

  /** Calls the handler. */
  run(handler) {
    const [id, trigger, deadlineUs, traceparent, text, body] = this.#request;
    let value;
    try {
      const event = payload.decode(text);
      if (trigger === TRIGGER_HTTP) {
        http.addBody(event, body);
      }
      this.#context = new Context(id, deadlineUs, traceparent, (error, result) => this.#settle(error, result));
      value = handler(event, this.#context, (error, result) => this.#callback(error, result));
    } catch (error) {
      this.fail(error);
      return;
    }
    if (typeof value?.then === "function") {
      value.then(
        (result) => this.#succeed(result),
        (error) => this.fail(error),
      );
    } else if (value !== undefined) {
      this.#succeed(value);
    }
    // Else a callback answers, or the event loop runs dry.
  }

  /** Answers with an error. */
  fail(error) {
    if (this.#isOpen) {
      this.#channel.error(errors.toJson(errors.describe(error)));
      this.#close();
    }
  }

  /** The event loop has nothing left to do. As on Lambda, a handler that never answered has answered null. */
  runDry() {
    if (this.#isStreaming) {
      this.fail(new Fault("Runtime.InvalidResponse", "the body never ended, and nothing is left that could end it"));
    } else {
      const [error, value] = this.#called ?? [null, null];
      this.#settle(error, value);
    }
  }

  #callback(error, value) {
    if (this.#context.callbackWaitsForEmptyEventLoop === false) {
      this.#settle(error, value);
    } else {
      this.#called ??= [error, value];
    }
  }

  #settle(error, value) {
    if (error === undefined || error === null) {
      this.#succeed(value);
    } else {
      this.fail(error);
    }
  }

  #succeed(value) {
    if (!this.#isOpen || this.#isStreaming) {
      return;
    }
    try {
      if (this.#request[1] !== TRIGGER_HTTP) {
        this.#channel.result(payload.encode(value));
      } else {
        const streamed = http.respond(this.#channel, value);
        if (streamed !== undefined) {
          this.#isStreaming = true;
          streamed.then(
            () => this.#close(),
            (error) => this.fail(error),
          );
          return;
        }
      }
    } catch (error) {
      this.fail(error);
      return;
    }
    this.#close();
  }

  #close() {
    if (this.#isOpen) {
      this.#isOpen = false;
      this.#done();
    }
  }
}

function messageOf(reason) {
  return inspect(reason, { depth: 0 }).split("\n", 1)[0];
}

/** Leaves with the error in the function's log. */
function die(error) {
  process.stderr.write(`${inspect(error)}\n`);
  native.exitNow(EXIT_START_FAILED);
}

module.exports = { Instance };
