// The HTTP trigger: events and responses of Lambda function URLs, payload format 2.0.
"use strict";

const payload = require("./payload.js");
const { Fault } = require("./errors.js");

// Of one RESPONSE_HEAD frame: protects the server from headers no client would take.
const HEAD_BYTES = 64 * 1024;

const JSON_TYPE = "application/json";
const BINARY_TYPE = "application/octet-stream";
const BARE_HEAD = '{"statusCode":200,"headers":[["content-type","application/json"]]}';

const TEXTUAL = new Set([JSON_TYPE, "application/xml", "application/javascript", "application/x-www-form-urlencoded"]);
// A header's name (`token`, RFC 9110 section 5.6.2).
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
// What may stand in a header's value: no control characters but the tab, no halves of surrogate pairs.
const VALUE = /^[\t\P{C}]*$/u;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Adds `body` as it came: of a function that has it so. */
function addBytes(event, body) {
  event.isBase64Encoded = false;
  if (body.length > 0) {
    event.body = body;
  }
}

/**
 * Adds `body` and `isBase64Encoded` to the event: text when the content type says so and the bytes are UTF-8.
 */
function addBody(event, body) {
  event.isBase64Encoded = false;
  if (body.length === 0) {
    return;
  }
  if (isTextual(event.headers ?? {})) {
    try {
      event.body = decoder.decode(body);
      return;
    } catch {
      // Not UTF-8.
    }
  }
  event.body = body.toString("base64");
  event.isBase64Encoded = true;
}

function isTextual(headers) {
  const mediaType = (headers["content-type"] ?? "").split(";", 1)[0].trim().toLowerCase();
  return (
    TEXTUAL.has(mediaType) ||
    mediaType.startsWith("text/") ||
    (mediaType.startsWith("application/") && mediaType.endsWith("+json"))
  );
}

/**
 * Sends what the handler returned. Returns a promise only when the body is a stream. Throws a `Fault` when it is no valid
 * response and nothing was sent yet.
 */
function respond(channel, value) {
  if (!isStreamed(value)) {
    channel.handlerEnded();
  }
  const { head, body } = shape(value);
  if (typeof body === "string" || body instanceof Uint8Array) {
    channel.respond(head, body);
    return undefined;
  }
  return stream(channel, head, body);
}

/**
 * `{head, body}` of a handler's result: the head as JSON text, the body as text, bytes or something to iterate.
 *
 * An object with `statusCode` is a whole response, a stream is a body that is still being made, and anything else is the
 * body, as JSON.
 */
function shape(value) {
  if (isObject(value) && "statusCode" in value) {
    return shapeResponse(value);
  }
  if (isStream(value)) {
    return { head: headText(200, [["content-type", BINARY_TYPE]]), body: value };
  }
  return { head: BARE_HEAD, body: payload.encode(value) };
}

function shapeResponse(value) {
  const { body, type } = bodyOf(value.body, value.isBase64Encoded);
  return { head: headOf(value, type), body };
}

/** The head of a streamed answer with this status, these headers and cookies; 200 and none if nothing is said. */
function head(metadata) {
  return headOf({ statusCode: 200, ...metadata }, BINARY_TYPE);
}

/** `type` is the content type of a response that names none. */
function headOf(value, type) {
  const status = statusOf(value.statusCode);
  const headers = headersOf(value.headers);
  if (!headers.some(([name]) => name.toLowerCase() === "content-type")) {
    headers.push(["content-type", type]);
  }
  const cookies = value.cookies ?? [];
  if (!Array.isArray(cookies)) {
    throw invalid("cookies", cookies, "a list of strings");
  }
  for (const cookie of cookies) {
    headers.push(["set-cookie", headerValue("cookies", cookie)]);
  }
  return headText(status, headers);
}

function statusOf(given) {
  const status = typeof given === "string" && /^\d{3}$/.test(given) ? Number(given) : given;
  if (!Number.isInteger(status) || status < 200 || status > 599) {
    throw invalid("statusCode", given, "an integer from 200 to 599");
  }
  return status;
}

function headersOf(headers) {
  if (headers === undefined || headers === null) {
    return [];
  }
  if (!isObject(headers) || Array.isArray(headers)) {
    throw invalid("headers", headers, "an object");
  }
  // `Headers` of `fetch` and maps are lists of pairs. Not asked by class: that would load `fetch`.
  const pairs = Symbol.iterator in headers ? [...headers] : Object.entries(headers);
  return pairs.map((pair) => {
    const [name, value] = Array.isArray(pair) ? pair : [pair];
    if (typeof name !== "string" || !TOKEN.test(name)) {
      throw invalid("a header's name", name, "a token of RFC 9110");
    }
    if (Array.isArray(value)) {
      return [name, value.map((part) => headerValue(name, part)).join(",")];
    }
    return [name, headerValue(name, value)];
  });
}

function headerValue(name, value) {
  if (typeof value === "boolean" || typeof value === "number") {
    return String(value);
  }
  if (typeof value !== "string" || !VALUE.test(value)) {
    throw invalid(`header '${name}'`, value, "printable text, a number or a boolean");
  }
  return value;
}

/** The body and the content type it has when the response names none. */
function bodyOf(body, isBase64) {
  if (isBase64 !== undefined && isBase64 !== null && typeof isBase64 !== "boolean") {
    throw invalid("isBase64Encoded", isBase64, "a boolean");
  }
  if (body === undefined || body === null) {
    return { body: "", type: JSON_TYPE };
  }
  if (typeof body === "string") {
    return isBase64 ? { body: fromBase64(body), type: BINARY_TYPE } : { body, type: JSON_TYPE };
  }
  const bytes = bytesOf(body);
  if (bytes !== undefined) {
    return { body: isBase64 ? fromBase64(Buffer.from(bytes).toString("latin1")) : bytes, type: BINARY_TYPE };
  }
  if (isBase64) {
    throw invalid("body", body, "text or bytes when isBase64Encoded is true");
  }
  if (isStream(body)) {
    return { body, type: BINARY_TYPE };
  }
  return { body: payload.encode(body), type: JSON_TYPE };
}

/** The bytes of a buffer or a view of one, or undefined. */
function bytesOf(value) {
  if (value instanceof Uint8Array) {
    return value;
  }
  if (ArrayBuffer.isView(value)) {
    return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  }
  return value instanceof ArrayBuffer ? new Uint8Array(value) : undefined;
}

function fromBase64(text) {
  // Encoders that wrap lines are common; any other stray character is a mistake.
  const joined = text.replace(/\s+/g, "");
  if (joined.length % 4 !== 0 || !BASE64.test(joined)) {
    throw new Fault("Runtime.InvalidResponse", "body is not valid base64");
  }
  return Buffer.from(joined, "base64");
}

const isObject = (value) => typeof value === "object" && value !== null;

/** A generator, a readable stream of either kind, or any other asynchronous iterable. Arrays, maps and sets are values. */
function isStream(value) {
  return isObject(value) && (Symbol.asyncIterator in value || (Symbol.iterator in value && "next" in value));
}

/** Whether the handler goes on while its answer is sent: then its first piece is its end. */
function isStreamed(value) {
  return isStream(isObject(value) && "statusCode" in value ? value.body : value);
}

function headText(statusCode, headers) {
  const head = JSON.stringify({ statusCode, headers });
  if (Buffer.byteLength(head) > HEAD_BYTES) {
    throw new Fault("Runtime.InvalidResponse", `the response's headers are longer than ${HEAD_BYTES} bytes`);
  }
  return head;
}

function invalid(field, value, rule) {
  let shown;
  try {
    shown = JSON.stringify(value) ?? String(value);
  } catch {
    shown = `a ${typeof value}`;
  }
  if (shown.length > 100) {
    shown = `${shown.slice(0, 100)}…`;
  }
  return new Fault("Runtime.InvalidResponse", `${field} is ${shown}: it must be ${rule}`);
}

/** Sends pieces as they come. The head goes with the first, so that a body that fails at once is a clean error. */
async function stream(channel, head, pieces) {
  let started = false;
  for await (const piece of pieces) {
    const bytes = typeof piece === "string" ? Buffer.from(piece) : bytesOf(piece);
    if (bytes === undefined) {
      throw invalid("a piece of the body", piece, "text or bytes");
    }
    if (bytes.length === 0) {
      continue;
    }
    if (!started) {
      started = true;
      channel.head(head);
    }
    channel.piece(bytes);
  }
  if (started) {
    channel.end();
  } else {
    channel.respond(head, "");
  }
}

module.exports = { addBody, addBytes, head, respond, shape };
