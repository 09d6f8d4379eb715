// One invocation: calls the handler and answers once, whichever way the handler answers.
"use strict";

const awslambda = require("./awslambda.js");
const errors = require("./errors.js");
const http = require("./http.js");
const payload = require("./payload.js");
const { memberOf } = require("./chain.js");
const { Context } = require("./context.js");
const { Fault } = errors;

// `RequestHead.trigger` of an HTTP request; every other trigger is answered with one JSON value, as an invoke is.
const TRIGGER_HTTP = 2;
// That of a request of a chain.
const TRIGGER_CHAIN = 6;

// How a request's body is put into its event: the same for all of a process' invocations.
let addBody = http.addBody;

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
  // The answer that a handler writes to a stream.
  #written = null;
  // This instance as a member, if the request is a chain's.
  #member = null;

  /** Takes on what the function's configuration says of bodies. */
  static bind(config) {
    addBody = config.body === "bytes" ? http.addBytes : http.addBody;
  }

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
      if (trigger === TRIGGER_CHAIN) {
        this.#member = memberOf(this.#channel);
      }
      const event = this.#member === null ? payload.decode(text) : this.#member.begin(text);
      if (trigger === TRIGGER_HTTP) {
        addBody(event, body);
      }
      this.#context = new Context(id, deadlineUs, traceparent, (error, result) => this.#settle(error, result));
      if (this.#member !== null) {
        this.#context.chain = this.#member.chain;
      }
      if (awslambda.isStreaming(handler)) {
        this.#runStreaming(handler, event);
        return;
      }
      this.#channel.handlerBegins();
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

  /** A handler that writes its answer to a stream. */
  #runStreaming(handler, event) {
    this.#isStreaming = true;
    this.#written = awslambda.open(handler, this.#channel, this.#request[1] === TRIGGER_HTTP);
    this.#channel.handlerBegins();
    this.#written.run(event, this.#context).then(
      () => this.#close(),
      (error) => this.fail(error),
    );
  }

  /** Answers with an error. */
  fail(error) {
    if (this.#isOpen) {
      this.#channel.handlerEnded();
      const report = errors.toJson(errors.describe(error));
      this.#member?.abandon();
      this.#channel.error(report);
      this.#close();
    }
  }

  /** The event loop has nothing left to do. As on Lambda, a handler that never answered has answered null. */
  runDry() {
    if (this.#written?.isWhole()) {
      this.#written.end();
      this.#close();
    } else if (this.#isStreaming) {
      this.fail(new Fault("Runtime.InvalidResponse", "the response body was never ended"));
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
        this.#channel.handlerEnded();
        if (this.#member === null) {
          this.#channel.result(payload.encode(value));
        } else {
          this.#member.finish(value);
        }
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
      this.#written?.close();
      this.#done();
    }
  }
}

module.exports = { Invocation };
