// stdout and stderr: pipes to the server, which splits them into log lines.
//
// Node's own streams would hold handles that forks share, and write after the response when the pipe is full. These
// write synchronously and block while the pipe is full, so that a line precedes the response.
"use strict";

const fs = require("node:fs");
const { Writable } = require("node:stream");

class LogStream extends Writable {
  // What the streams of a pipe look like from outside.
  _type = "pipe";
  _isStdio = true;
  isTTY = false;

  constructor(fd) {
    super({ decodeStrings: false, emitClose: false });
    this.fd = fd;
  }

  _write(chunk, encoding, callback) {
    callback(writeAll(this.fd, typeof chunk === "string" ? Buffer.from(chunk, encoding) : chunk));
  }

  /** As with Node's own, the descriptor stays open. */
  _destroy(error, callback) {
    callback(error);
  }
}

/** Writes all of it, whatever mode the function has put the pipe in. Returns the error that stopped it. */
function writeAll(fd, bytes) {
  for (let written = 0; written < bytes.length; ) {
    try {
      written += fs.writeSync(fd, bytes, written);
    } catch (error) {
      if (error.code !== "EAGAIN") {
        return error;
      }
      // Rare: only a function that made its pipe non-blocking and prints faster than the server reads.
      Atomics.wait(PAUSE, 0, 0, 1);
    }
  }
  return null;
}

const PAUSE = new Int32Array(new SharedArrayBuffer(4));

/** Replaces both streams. Before anything has printed. */
function setup() {
  for (const [name, fd] of [
    ["stdout", 1],
    ["stderr", 2],
  ]) {
    const value = new LogStream(fd);
    // The server's end of the pipe may be gone, which is no business of the function's.
    value.on("error", () => {});
    Object.defineProperty(process, name, { configurable: true, enumerable: true, get: () => value });
  }
}

module.exports = { setup };
