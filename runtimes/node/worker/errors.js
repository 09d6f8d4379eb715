// Errors in AWS Lambda's shape: `{"errorType", "errorMessage", "stackTrace"}`.
"use strict";

// Limits of one error report. It must fit one datagram of the control socket and a frame or two of the ring, and it is
// stored with the invocation.
const MESSAGE_CHARS = 16 * 1024;
const ENTRY_CHARS = 512;
const TYPE_CHARS = 256;
const FRAMES = 100;
const CAUSES = 8;
const REPORT_BYTES = 60 * 1024;

const OWN_DIR = `${__dirname}/`;

/** A failure with a type of its own (`Runtime.…`), found by the runtime and not thrown by the function. */
class Fault extends Error {
  constructor(errorType, message, options) {
    super(message, options);
    this.errorType = errorType;
  }
}

/** The report of whatever was thrown. Never throws: leaves out what it cannot read (a failing getter). */
function describe(thrown) {
  try {
    return {
      errorType: typeOf(thrown),
      errorMessage: clip(messageOf(thrown), MESSAGE_CHARS),
      stackTrace: stackOf(thrown),
    };
  } catch {
    return { errorType: "Error", errorMessage: "", stackTrace: [] };
  }
}

/** The report as JSON text of at most `REPORT_BYTES`, give or take what describes the cut. */
function toJson(report) {
  const text = JSON.stringify(report);
  if (Buffer.byteLength(text) <= REPORT_BYTES) {
    return text;
  }
  const error = report.error ?? report;
  error.errorMessage = clip(error.errorMessage, MESSAGE_CHARS / 8);
  const trace = error.stackTrace;
  error.stackTrace = [...trace.slice(0, 4), "    (cut)", ...trace.slice(-4)].map((entry) => clip(entry, ENTRY_CHARS));
  return JSON.stringify(report);
}

function isError(thrown) {
  return thrown instanceof Error || Object.prototype.toString.call(thrown) === "[object Error]";
}

function typeOf(thrown) {
  if (thrown instanceof Fault) {
    return thrown.errorType;
  }
  if (isError(thrown)) {
    const name = thrown.name;
    return clip(typeof name === "string" && name !== "" ? name : "Error", TYPE_CHARS);
  }
  // As Lambda does with values that are no errors.
  return typeof thrown;
}

function messageOf(thrown) {
  try {
    return isError(thrown) ? String(thrown.message) : String(thrown);
  } catch {
    return "";
  }
}

/** `text` with at most `limit` characters, and a note when it was longer. */
function clip(text, limit) {
  // Half of a surrogate pair is no text.
  return (text.length <= limit ? text : `${text.slice(0, limit)} … (cut)`).toWellFormed();
}

/** Lines of the stack without Hearth's own frames, and those of the causes under a line that names them. */
function stackOf(thrown) {
  const entries = [];
  const seen = new Set();
  let error = thrown;
  for (let heading = ""; isError(error) && !seen.has(error) && seen.size < CAUSES; heading = "Caused by: ") {
    seen.add(error);
    linesOf(error).forEach((line, index) => {
      entries.push(clip(index === 0 ? heading + line : line, ENTRY_CHARS));
    });
    error = error.cause;
  }
  if (entries.length > FRAMES) {
    const half = FRAMES / 2;
    const leftOut = entries.length - 2 * half;
    entries.splice(half, leftOut, `    (${leftOut} frames left out)`);
  }
  return entries;
}

function linesOf(error) {
  if (error instanceof Fault) {
    return [];
  }
  let stack;
  try {
    stack = error.stack;
  } catch {
    // A getter of the function's own.
  }
  if (typeof stack !== "string") {
    return [];
  }
  const lines = stack.split("\n");
  // Below the function's own frames stand Hearth's, and Node's that lead to them.
  const last = lines.findLastIndex((line) => !line.includes(OWN_DIR) && !INTERNAL.test(line));
  const caller = lines.findIndex((line, index) => index > last && line.includes(OWN_DIR));
  if (caller >= 0) {
    lines.length = caller;
  }
  return lines.filter((line) => !line.includes(OWN_DIR) && !IMPORTER.test(line));
}

const INTERNAL = /^ +at .*\(?node:/;

// Node's module loader, which stands below every import.
const IMPORTER = /^ +at .*\(?node:internal\/(modules|vm|process\/execution)/;

module.exports = { Fault, describe, toJson };
