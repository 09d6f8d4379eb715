import { spawnSync } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import fs from "node:fs";
import { register_after_restore, register_before_snapshot } from "snapshot_restore_node";

const ran = await Promise.resolve([]);
register_before_snapshot((what) => ran.push(what), "before");
register_after_restore((what) => ran.push(what), "after");

const does = {
  echo: (value) => value,
  nothing: () => {},
  large: (n) => "x".repeat(n),
  later: (ms) => new Promise((resolve) => setTimeout(resolve, ms, "later")),
  sleep: (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms),
  env: () => process.env,
  hooks: () => ran,
  random: () => [Math.random(), randomUUID(), randomBytes(8).toString("hex"), process.pid],
  talk(n) {
    console.log("print", n);
    console.error("error", n);
    fs.writeSync(1, `descriptor ${n}\n`);
    spawnSync("/bin/sh", ["-c", "echo child $0; echo child error $0 >&2", String(n)], { stdio: "inherit" });
    process.stdout.write(`no newline ${n}`);
  },
  raise(text) {
    throw new RangeError(text);
  },
  cycle() {
    const kept = [];
    kept.push(kept);
    return kept;
  },
  exit: (code) => process.exit(code),
  signal: (number) => new Promise(() => process.kill(process.pid, number)),
  spin() {
    for (;;);
  },
  hog() {
    const kept = [];
    for (;;) {
      kept.push(Buffer.alloc(1 << 20, 1));
    }
  },
  write: (path) => fs.writeFileSync(path, ""),
  run: ([program, ...args]) => spawnSync(program, args, { encoding: "utf8" }).stdout,
  page: (statusCode) => ({ statusCode, headers: { "x-one": "1" }, cookies: ["a=1", "b=2"], body: "page" }),
  binary: () => ({
    statusCode: 200,
    headers: { "content-type": "image/png" },
    body: "iVBORw==",
    isBase64Encoded: true,
  }),
  stream: (pieces) => ({
    statusCode: 200,
    headers: { "content-type": "text/plain" },
    body: (async function* () {
      for (let n = 0; n < pieces; n += 1) {
        yield `${n}\n`;
      }
    })(),
  }),
};

const contextFields = (context) => ({
  name: context.functionName,
  version: context.functionVersion,
  memory: context.memoryLimitInMB,
  id: context.awsRequestId,
  arn: context.invokedFunctionArn,
  group: context.logGroupName,
  stream: context.logStreamName,
  left: context.getRemainingTimeInMillis(),
  traceparent: context.traceparent ?? null,
});

export const handler = async (given, context) => {
  let event = given;
  if ("requestContext" in event) {
    event = JSON.parse(event.queryStringParameters.event);
    if (event.do === "request") {
      const names = ["rawPath", "headers", "body", "isBase64Encoded"];
      return Object.fromEntries(names.map((name) => [name, given[name] ?? null]));
    }
  }
  return event.do === "context" ? contextFields(context) : does[event.do](event.with);
};
