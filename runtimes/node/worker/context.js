// The `context` a handler is called with: AWS Lambda's fields, plus `traceparent`.
"use strict";

// What is the same for every invocation, set once by `bind`.
let fixed = {};

// Where functions look for what `logStreamName` says. One of the function's own stays what it is.
const STREAM = "AWS_LAMBDA_LOG_STREAM_NAME";

/** One invocation's context. */
class Context {
  #deadlineMs;
  #settle;

  // Lambda's default: a callback is answered when nothing is left to do.
  callbackWaitsForEmptyEventLoop = true;

  /** `settle(error, value)` is what the old ways of answering (`done`, `succeed`, `fail`) call. */
  constructor(requestId, deadlineUs, traceparent, settle) {
    this.awsRequestId = requestId;
    this.traceparent = traceparent;
    this.#deadlineMs = Math.floor(deadlineUs / 1000);
    this.#settle = settle;
    Object.assign(this, fixed);
  }

  /** Sets the fields that belong to the function version. */
  static bind(config) {
    const { function: name } = config;
    const version = String(config.version);
    fixed = {
      functionName: name,
      functionVersion: version,
      // Text, as Lambda has it.
      memoryLimitInMB: String(config.memory_mb),
      invokedFunctionArn: `arn:hearth:lambda:local:0:function:${name}:${version}`,
      logGroupName: `/hearth/${name}`,
    };
  }

  /** The version and the instance, which is a process of the sandbox. */
  get logStreamName() {
    return `${this.functionVersion}/${process.pid}`;
  }

  /** Milliseconds until the instance is killed, never below zero. */
  getRemainingTimeInMillis() {
    return Math.max(0, this.#deadlineMs - Date.now());
  }

  done(error, value) {
    this.#settle(error, value);
  }

  succeed(value) {
    this.#settle(null, value);
  }

  fail(error) {
    this.#settle(error ?? new Error("context.fail was called without an error"));
  }
}

/** In an instance: lets the environment name the log stream that the context does. */
function announceStream(isRehearsal) {
  if (!isRehearsal && process.env[STREAM] === fixed.functionVersion) {
    process.env[STREAM] = `${fixed.functionVersion}/${process.pid}`;
  }
}

module.exports = { Context, announceStream };
