// An instance: a fork of the template that serves one request at a time until it is killed.
//
// Between requests it is frozen, as on Lambda: the wait for the next one blocks the event loop, and timers that came due
// meanwhile fire in the next invocation. While a handler's promise is open the event loop runs.
"use strict";

const { AsyncResource } = require("node:async_hooks");
const { Console } = require("node:console");
const { Writable } = require("node:stream");
// Its own: tests replace the global one.
const { setImmediate } = require("node:timers");
const { inspect } = require("node:util");
const hooks = require("./hooks.js");
const native = require("./native.js");
const renewal = require("./renewal.js");
const { Context, announceStream } = require("./context.js");
const { Fault } = require("./errors.js");
const { Invocation } = require("./invocation.js");

// Exit status of an instance that could not start.
const EXIT_START_FAILED = 1;

// Idle rounds of the event loop after which an invocation is over.
const DRY_ROUNDS = 3;

// Times that a template rehearses each kind of request: enough for V8 to have compiled what they run.
const REHEARSALS = 20;
// Times that a pre-forked instance does.
const PRACTICE = 2;

/** Made in the template, so that the child begins with everything at hand. */
class Instance {
  /** The function's handler, once it is imported. */
  handler = rehearseLater;
  #channel;
  // Leads nowhere else than back.
  #practice = new native.Channel();
  // The invocation that has not been answered, if any.
  #open = null;
  // Nothing of the function's runs directly in this resource, so what an invocation stores in an `AsyncLocalStorage`
  // does not reach the next one.
  #root = new AsyncResource("HearthInstance");
  // What the first invocation runs in, straight after READY.
  #first = new AsyncResource("HearthInstance");
  // Whether it was ready before its first request came: until then its clocks stand still.
  #isEarly = false;
  // What to call when the rehearsal is over.
  #rehearsed = null;

  /** `channel` is not open before `main` is called. */
  constructor(config, channel) {
    this.#channel = channel;
    Invocation.bind(config);
    Context.bind(config);
  }

  /** In the template, last of all: from here on, what goes astray belongs to an invocation. */
  listen() {
    process.on("uncaughtException", (error) => this.#stray(error, error));
    process.on("unhandledRejection", (reason) => {
      this.#stray(new Fault("Runtime.UnhandledPromiseRejection", messageOf(reason), { cause: reason }), reason);
    });
    native.watchEventLoop((rounds) => this.#dry(rounds));
  }

  /** In the template, before the import: lives through some requests, so that children find all that compiled. */
  async rehearse() {
    this.#channel.rehearse(REHEARSALS);
    await new Promise((done) => {
      this.#rehearsed = done;
      setImmediate(() => this.main());
    });
    this.#rehearsed = null;
    new Console({ stdout: new Writable({ write: (_chunk, _encoding, callback) => callback() }) }).log("%s", "a", {
      b: [1],
    });
    process.stdout.write("");
  }

  /** The child's whole life. */
  main() {
    try {
      if (!this.#channel.isWanted()) {
        this.#practise();
        // Without hooks there is nothing left to do before the first request.
        if (hooks.hasAfterRestore()) {
          this.#channel.waitUntilWanted();
        } else {
          this.#isEarly = true;
        }
      }
      const isRehearsal = this.#rehearsed !== null;
      renewal.renew(this.#channel.pid(), isRehearsal);
      announceStream(isRehearsal);
      const hooked = isRehearsal ? undefined : hooks.afterRestore();
      if (hooked === undefined) {
        this.#channel.ready();
        // This turn of the event loop is as fresh as the next one.
        this.#first.runInAsyncScope(this.#next);
      } else {
        hooked.then(() => {
          this.#channel.ready();
          this.#schedule();
        }, die);
      }
    } catch (error) {
      die(error);
    }
  }

  /** In a pre-forked instance, which has time: what the first request would have to copy of the template's pages becomes its own. All at
   * once, so that nothing of the function's runs in between. */
  #practise() {
    this.#practice.rehearse(PRACTICE);
    renewal.renew(this.#practice.pid(), true);
    const done = () => {};
    for (let request = this.#practice.receive(); request !== null; request = this.#practice.receive()) {
      new Invocation(this.#practice, request, done).run(rehearse);
    }
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
      this.#rehearsed();
      return;
    }
    if (this.#isEarly) {
      this.#isEarly = false;
      renewal.renewClocks();
    }
    this.#open = new Invocation(this.#channel, request, () => this.#schedule());
    this.#open.run(this.handler);
  };

  /** Nothing is left that could answer: no timer, no socket. V8 may still be about to settle a promise (WebAssembly), which
   * takes it a turn of the loop. */
  #dry(rounds) {
    this.#root.runInAsyncScope(setImmediate, null, () => {
      if (rounds >= DRY_ROUNDS) {
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

/** The handler of rehearsals: answers what `src/rehearsal.rs` asks for. */
function rehearse(event, context) {
  switch (event.do) {
    case "value":
      return [event, context.getRemainingTimeInMillis(), context.logStreamName];
    case "response":
      return { statusCode: 200, headers: { a: "b" }, body: "text" };
    default:
      throw new TypeError("rehearsed");
  }
}

const rehearseLater = async (event, context) => rehearse(event, context);

function messageOf(reason) {
  return inspect(reason, { depth: 0 }).split("\n", 1)[0];
}

/** Leaves with the error in the function's log. */
function die(error) {
  process.stderr.write(`${inspect(error)}\n`);
  native.exitNow(EXIT_START_FAILED);
}

module.exports = { Instance };
