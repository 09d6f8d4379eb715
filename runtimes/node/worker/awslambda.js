// Lambda's global `awslambda`: handlers that stream their response.
"use strict";

const { Writable } = require("node:stream");
const http = require("./http.js");
const payload = require("./payload.js");
const { Fault } = require("./errors.js");

// By these the handler says what it is: libraries that wrap handlers copy them.
const STREAMING = Symbol.for("aws.lambda.runtime.handler.streaming");
const HIGH_WATER_MARK = Symbol.for("aws.lambda.runtime.handler.streaming.highWaterMark");
const RESPONSE = "response";

// With it a function does without the global, as on Lambda.
const OPT_OUT = "AWS_LAMBDA_NODEJS_NO_GLOBAL_AWSLAMBDA";

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Marks a handler `(event, responseStream, context)`; returns it. */
function streamifyResponse(handler, options) {
  handler[STREAMING] = RESPONSE;
  if (typeof options?.highWaterMark === "number") {
    handler[HIGH_WATER_MARK] = Math.trunc(options.highWaterMark);
  }
  return handler;
}

/** Gives a response stream its status, headers and cookies. */
const HttpResponseStream = {
  from(responseStream, metadata) {
    responseStream.setMetadata(metadata);
    return responseStream;
  },
};

/** In the template, before the import. */
function prepare() {
  if (!["1", "true"].includes(process.env[OPT_OUT])) {
    globalThis.awslambda = { ...globalThis.awslambda, streamifyResponse, HttpResponseStream };
  }
}

const isStreaming = (handler) => handler[STREAMING] === RESPONSE;

/** What such a handler writes to. Pieces go out as they are written; `answer` takes them. */
class ResponseStream extends Writable {
  #answer;

  constructor(answer, highWaterMark) {
    super({ highWaterMark });
    this.#answer = answer;
  }

  /** The content type of an answer whose metadata name none. */
  setContentType(type) {
    this.#answer.describe({ headers: { "content-type": type } });
  }

  /** Status, headers and cookies. */
  setMetadata(metadata) {
    this.#answer.describe(metadata);
  }

  write(chunk, ...rest) {
    return super.write(writable(chunk), ...rest);
  }

  end(chunk, ...rest) {
    return super.end(typeof chunk === "function" ? chunk : writable(chunk), ...rest);
  }

  _write(chunk, _encoding, callback) {
    try {
      this.#answer.piece(chunk);
      callback();
    } catch (error) {
      callback(error);
    }
  }
}

/** One call of such a handler. */
class Call {
  #handler;
  #answer;
  #stream;
  #whole;

  constructor(handler, answer) {
    this.#handler = handler;
    this.#answer = answer;
    this.#stream = new ResponseStream(answer, handler[HIGH_WATER_MARK]);
    this.#whole = new Promise((resolve, reject) => {
      this.#stream.on("finish", resolve);
      this.#stream.on("error", reject);
      this.#stream.on("close", () => {
        reject(new Fault("Runtime.InvalidStreamingOperation", "the response stream was destroyed before its end"));
      });
    });
    // Who waits for it may not have begun to.
    this.#whole.catch(() => {});
  }

  /** Calls the handler, and ends the answer when it has written all of it and is done. */
  async run(event, context) {
    const done = this.#handler(event, this.#stream, context);
    if (typeof done?.then !== "function") {
      throw new Fault("Runtime.InvalidStreamingOperation", "a handler that streams must be asynchronous");
    }
    await Promise.all([done, this.#whole]);
    this.end();
  }

  /** Whether all of it is written, should the handler never be done. */
  isWhole() {
    return this.#stream.writableFinished;
  }

  end() {
    this.#answer.end();
  }

  /** The invocation is over: what is written from now on would be another one's. */
  close() {
    this.#answer.close();
  }
}

const open = (handler, channel, isHttp) => new Call(handler, isHttp ? new Streamed(channel) : new Collected(channel));

/** As on Lambda, other values are written as JSON. */
function writable(chunk) {
  const isPlain = typeof chunk === "string" || chunk === undefined || chunk === null || chunk instanceof Uint8Array;
  return isPlain ? chunk : payload.encode(chunk);
}

/** The answer to an HTTP request. The head goes with the first piece, so that what fails before is a clean error. */
class Streamed {
  #channel;
  #head = http.head({});
  #hasBegun = false;
  #isOver = false;

  constructor(channel) {
    this.#channel = channel;
  }

  describe(metadata) {
    if (this.#hasBegun) {
      throw new Fault("Runtime.InvalidStreamingOperation", "status and headers were already sent");
    }
    this.#head = http.head(metadata);
  }

  piece(bytes) {
    if (this.#isOver) {
      throw new Fault("Runtime.InvalidStreamingOperation", "the invocation is over");
    }
    if (bytes.length === 0) {
      return;
    }
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      this.#channel.head(this.#head);
    }
    this.#channel.piece(bytes);
  }

  close() {
    this.#isOver = true;
  }

  end() {
    if (this.#hasBegun) {
      this.#channel.end();
    } else {
      this.#channel.respond(this.#head, "");
    }
  }
}

/** The answer to whoever wants one JSON value: the text that was written, or what it is JSON of. With metadata, the whole
 * response as an object. */
class Collected {
  #channel;
  #metadata = null;
  #pieces = [];

  constructor(channel) {
    this.#channel = channel;
  }

  describe(metadata) {
    http.head(metadata);
    this.#metadata = metadata;
  }

  piece(bytes) {
    // The stream may use the memory again.
    this.#pieces.push(Buffer.from(bytes));
  }

  close() {
    this.#pieces = [];
  }

  end() {
    const bytes = Buffer.concat(this.#pieces);
    this.#channel.handlerEnded();
    this.#channel.result(this.#metadata === null ? resultOf(bytes) : this.#response(bytes));
  }

  #response(bytes) {
    const text = textOf(bytes);
    const body = text ?? bytes.toString("base64");
    return payload.encode({ statusCode: 200, ...this.#metadata, body, isBase64Encoded: text === undefined });
  }
}

/** JSON text of what was written. */
function resultOf(bytes) {
  const text = textOf(bytes);
  if (text === undefined) {
    throw new Fault("Runtime.MarshalError", "Unable to marshal response: the bytes written are neither JSON nor text");
  }
  try {
    JSON.parse(text);
    return text;
  } catch {
    return payload.encode(text);
  }
}

function textOf(bytes) {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}

module.exports = { isStreaming, open, prepare };
