//! Random bytes that the import draws: what siblings share of them, and what they do not.
#![deny(unsafe_code)]

use hearth_testkit::worker::check_siblings;
use serde_json::json;

#[test]
fn buffers_that_were_filled_are_filled_anew() {
    let source = r#"
import crypto, { randomFillSync } from "node:crypto";
import { promisify } from "node:util";
const hex = (view) => Buffer.from(view.buffer ?? view, view.byteOffset, view.byteLength).toString("hex");
const web = globalThis.crypto.getRandomValues(new Uint32Array(4));
const named = randomFillSync(Buffer.alloc(16));
const part = crypto.randomFillSync(new Uint16Array(8), 2, 4);
const bytes = crypto.randomBytes(16);
const later = await promisify(crypto.randomBytes)(16);
const wiped = crypto.getRandomValues(new Uint8Array(16));
wiped.fill(7, 0, 8);
const text = crypto.randomBytes(8).toString("hex");
const id = crypto.randomUUID();
export const handler = () => {
  if (/drawn/.test(crypto.randomBytes.toString() + crypto.webcrypto.getRandomValues)) throw new Error("still wrapped");
  return {
    web: hex(web), named: hex(named), part: hex(part.subarray(2, 6)), bytes: hex(bytes), later: hex(later),
    wiped: hex(wiped.subarray(8)), "same wiped": hex(wiped.subarray(0, 8)), "same part": hex(part.subarray(0, 2)),
    "same text": text, "same id": id,
  };
};
"#;
    let drawn = check_siblings(&[("main.mjs", source)]);
    assert_eq!(drawn["bytes"], 16 + 16 + 8 + 16 + 16 + 16 + 8 + 16);
    assert_eq!(drawn["renewed"], 16 + 16 + 8 + 16 + 16 + 8);
    assert_eq!(
        drawn["places"],
        json!(["main.mjs:5", "main.mjs:6", "main.mjs:7"])
    );
}

#[test]
fn an_import_that_draws_nothing_reports_nothing() {
    let drawn = check_siblings(&[(
        "main.mjs",
        "export const handler = () => ({ own: crypto.randomUUID() });\n",
    )]);
    assert_eq!(drawn, json!(null));
}

/// As `nanoid` keeps its pool, and `uuid` its node: up to version 10 in a list, from 11 on in an object.
const POOL: &str = r#"
const { randomFillSync } = require("node:crypto");
let pool, offset;
exports.id = () => {
  if (pool === undefined || offset + 8 > pool.length) { pool = Buffer.allocUnsafe(1024); randomFillSync(pool); offset = 0; }
  return pool.subarray(offset, (offset += 8)).toString("hex");
};
"#;
const LISTED: &str = r#"
const { randomFillSync } = require("node:crypto");
let _nodeId, _clockseq;
function v1(options) {
  let node = options.node || _nodeId;
  let clockseq = options.clockseq !== undefined ? options.clockseq : _clockseq;
  if (node == null || clockseq == null) {
    const seed = randomFillSync(new Uint8Array(16));
    if (node == null) node = _nodeId = [seed[0] | 1, seed[1], seed[2], seed[3], seed[4], seed[5]];
    if (clockseq == null) clockseq = _clockseq = ((seed[6] << 8) | seed[7]) & 0x3fff;
  }
  return [node, clockseq];
}
exports.v1 = v1;
"#;
const KEPT: &str = r#"
import { randomFillSync } from "node:crypto";
const _state = {};
export function v1() {
  const drawn = randomFillSync(new Uint8Array(16));
  if (!_state.node) {
    _state.node = drawn.slice(10, 16);
    _state.clockseq = ((drawn[8] << 8) | drawn[9]) & 0x3fff;
  }
  return [Array.from(_state.node), _state.clockseq];
}
"#;

#[test]
fn pools_and_nodes_of_packages_are_the_siblings_own() {
    let source = r#"
import pool from "./pool.cjs";
import listed from "./listed.cjs";
import { v1 } from "./kept.mjs";
pool.id(); listed.v1({}); v1();
export const handler = () => ({ pool: pool.id(), listed: listed.v1({})[0], kept: v1() });
"#;
    let drawn = check_siblings(&[
        ("main.mjs", source),
        ("pool.cjs", POOL),
        ("listed.cjs", LISTED),
        ("kept.mjs", KEPT),
    ]);
    assert_eq!(drawn["bytes"], 1024 + 16 + 16);
}
