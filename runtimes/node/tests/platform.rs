//! What Node.js offers, tried out in forks: timers, streams, the thread pool, programs, and what is refused.
#![deny(unsafe_code)]

use hearth_testkit::worker::boot;
use serde_json::{Value, json};

/// A module whose handler looks up `event[0]` in `does` and calls it with `event[1]`.
fn module(does: &str) -> String {
    format!("{does}\nexport const handler = async ([what, given]) => does[what](given);\n")
}

#[test]
fn timers_of_every_kind_fire_in_order() {
    let source = module(
        r#"
import v8 from "node:v8";
import vm from "node:vm";
const does = {
  interval: (times) => new Promise((resolve) => {
    let fired = 0;
    const timer = setInterval(() => { fired += 1; if (fired === times) { clearInterval(timer); resolve(fired); } }, 1);
  }),
  order: () => new Promise((resolve) => {
    const seen = [];
    setTimeout(() => { seen.push("timer"); resolve(seen); }, 20);
    setImmediate(() => seen.push("immediate"));
    process.nextTick(() => seen.push("tick"));
    queueMicrotask(() => seen.push("microtask"));
    seen.push("now");
  }),
  abort: async () => {
    const signals = [AbortSignal.timeout(2), new AbortController().signal];
    const { setTimeout: sleep } = await import("node:timers/promises");
    return sleep(60_000, "late", { signal: AbortSignal.any?.(signals) ?? signals[0] }).catch(({ name }) => name);
  },
  collected: async () => {
    const gone = [];
    const registry = new FinalizationRegistry((value) => gone.push(value));
    (() => registry.register({}, "it"))();
    v8.setFlagsFromString("--expose-gc");
    const gc = vm.runInNewContext("gc");
    for (let n = 0; gone.length === 0 && n < 200; n += 1) {
      gc();
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    return gone;
  },
};"#,
    );
    let mut template = boot(&source);
    let mut instances = [template.fork(), template.fork()];
    for instance in &mut instances {
        for _ in 0..2 {
            assert_eq!(instance.call(&json!(["interval", 3])), 3);
            // Ticks come before what an asynchronous function goes on with.
            assert_eq!(
                instance.call(&json!(["order", null])),
                json!(["now", "tick", "microtask", "immediate", "timer"])
            );
            assert_eq!(instance.call(&json!(["abort", null])), "AbortError");
            assert_eq!(instance.call(&json!(["collected", null])), json!(["it"]));
        }
    }
}

#[test]
fn streams_names_and_programs_work() {
    let source = module(
        r#"
import { exec, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { createReadStream, createWriteStream } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import dns from "node:dns/promises";
import { createHash, subtle } from "node:crypto";
import { pipeline } from "node:stream/promises";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { createBrotliDecompress, createGzip, createGunzip, brotliCompressSync } from "node:zlib";
const MEGABYTES = "0123456789abcdef".repeat(1 << 18);
const scratch = (name) => `/tmp/hearth-platform-${process.pid}-${name}`;
const does = {
  async pipeline() {
    const [plain, packed] = [scratch("plain"), scratch("packed")];
    await writeFile(plain, MEGABYTES);
    await pipeline(createReadStream(plain), createGzip(), createWriteStream(packed));
    const same = (await text(createReadStream(packed).pipe(createGunzip()))) === MEGABYTES;
    await Promise.all([rm(plain), rm(packed)]);
    return same;
  },
  async web() {
    const packed = brotliCompressSync("brotli");
    const unpacked = createBrotliDecompress();
    unpacked.end(packed);
    const stream = new Blob(["web ", "stream"]).stream().pipeThrough(new TextDecoderStream());
    let joined = "";
    for await (const piece of stream) joined += piece;
    return [joined, await text(unpacked)];
  },
  async names() { return (await dns.lookup("localhost", { family: 4 })).address; },
  async digests() {
    const bytes = new TextEncoder().encode("abc");
    const web = Buffer.from(await subtle.digest("SHA-256", bytes)).toString("hex");
    const key = await subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
    const signature = await subtle.sign("HMAC", key, bytes);
    return [web === createHash("sha256").update(bytes).digest("hex"), signature.byteLength];
  },
  async programs() {
    const many = await Promise.all([1, 2, 3].map((n) => promisify(exec)(`exit ${n}`).catch(({ code }) => code)));
    const cat = spawn("cat");
    cat.stdin.end("piped");
    const piped = await text(cat.stdout);
    const script = scratch("child.cjs");
    await writeFile(script, 'process.on("message", (n) => { process.send(n + 1); process.disconnect(); });');
    const child = fork(script);
    child.send(41);
    const [answer] = await once(child, "message");
    const [code] = await once(child, "exit");
    await rm(script);
    return [many, piped, answer, code];
  },
};"#,
    );
    let mut template = boot(&source);
    let mut instances = [template.fork(), template.fork()];
    for _ in 0..2 {
        for instance in &mut instances {
            assert_eq!(instance.call(&json!(["pipeline", null])), true);
            assert_eq!(
                instance.call(&json!(["web", null])),
                json!(["web stream", "brotli"])
            );
            assert_eq!(instance.call(&json!(["names", null])), "127.0.0.1");
            assert_eq!(instance.call(&json!(["digests", null])), json!([true, 32]));
            assert_eq!(
                instance.call(&json!(["programs", null])),
                json!([[1, 2, 3], "piped", 42, 0])
            );
        }
    }
}

#[test]
fn worker_threads_are_refused_by_name() {
    let source = module(
        r#"
import { Worker, MessageChannel, isMainThread } from "node:worker_threads";
const does = {
  start: () => { new Worker("", { eval: true }); },
  extend: () => { new (class extends Worker {})("", { eval: true }); },
  async rest() {
    const { port1, port2 } = new MessageChannel();
    const message = new Promise((resolve) => port1.once("message", resolve));
    port2.postMessage({ big: 1n });
    const received = String((await message).big);
    port1.close();
    return [received, structuredClone({ a: [1] }).a[0], isMainThread];
  },
};"#,
    );
    let mut template = boot(&source);
    let mut instance = template.fork();
    for way in ["start", "extend"] {
        let error: Value = instance.call_error(&json!([way, null]));
        assert_eq!(error["errorType"], "Runtime.Unsupported", "{error}");
        let message = error["errorMessage"].as_str().expect("text");
        assert!(message.contains("worker_threads"), "{message}");
    }
    assert_eq!(instance.call(&json!(["rest", null])), json!(["1", 1, true]));
}
