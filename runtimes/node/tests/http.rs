//! The HTTP trigger through the channel: events with bodies, responses whole and streamed.
#![deny(unsafe_code)]

use hearth_testkit::worker::{Answer, boot, contract};
use serde_json::json;

#[test]
fn a_bare_value_is_a_json_body() {
    contract::check_bare_values("export const handler = (event) => event;\n");
}

#[test]
fn a_response_is_passed_on() {
    contract::check_response(
        r#"
export const handler = async () => {
  console.log("served");
  return { statusCode: 201, headers: { "X-A": 1, "Content-Type": "image/png" }, cookies: ["a=1", "b=2"],
           body: "iVBORw==", isBase64Encoded: true };
};
"#,
    );
}

#[test]
fn bodies_stream_as_they_are_made() {
    let source = r#"
import { Readable } from "node:stream";
function* plain() {
  for (let n = 0; n < 3; n += 1) { console.log("piece", n); yield `${n}\n`; }
}
async function* later() {
  for (let n = 0; n < 3; n += 1) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    yield Buffer.from(`${n}\n`);
  }
}
function* large() {
  for (let n = 0; n < 100; n += 1) yield new Uint8Array(100_000).fill(n);
}
const bodies = {
  plain, later, large,
  node: () => Readable.from(later()),
  web: () => new Blob(["0\n1\n2\n"]).stream(),
  *broken() { yield "a"; throw new RangeError("late"); },
  *broken_at_once() { throw new RangeError("early"); },
  async *endless() { yield "a"; await new Promise(() => {}); },
};
export const handler = async ({ name }) => {
  if (name === "bare") return plain();
  if (name === "none") return { statusCode: 204, body: (function* () {})() };
  return { statusCode: 200, headers: { "content-type": "text/plain" }, body: bodies[name]() };
};
"#;
    let mut template = boot(source);
    let mut instance = template.fork();
    for (name, pieces) in [
        ("plain", 3),
        ("later", 3),
        ("bare", 3),
        ("node", 3),
        ("web", 1),
    ] {
        let reply = instance.http(&json!({"name": name}), b"");
        let Answer::Http(_, body) = &reply.answer else {
            panic!("{name}: {reply:?}")
        };
        assert_eq!(
            (body.as_slice(), reply.pieces),
            (b"0\n1\n2\n".as_slice(), pieces),
            "{name}"
        );
    }
    assert_eq!(instance.respond(&json!({"name": "none"}), b"").1, b"");
    let (_, body) = instance.respond(&json!({"name": "large"}), b"");
    assert_eq!(body.len(), 10_000_000);
    assert!(
        body.chunks(100_000)
            .enumerate()
            .all(|(n, part)| part.iter().all(|&byte| usize::from(byte) == n))
    );
    for (name, pieces, kind) in [
        ("broken", 1, "RangeError"),
        ("broken_at_once", 0, "RangeError"),
        ("endless", 1, "Runtime.InvalidResponse"),
    ] {
        let reply = instance.http(&json!({"name": name}), b"");
        let Answer::Error(error) = &reply.answer else {
            panic!("{name}: {reply:?}")
        };
        assert_eq!(
            (&error["errorType"], reply.pieces),
            (&json!(kind), pieces),
            "{name}"
        );
    }
}

#[test]
fn an_invalid_response_is_an_error() {
    contract::check_invalid_responses("export const handler = async (event) => event.r;\n");
}

#[test]
fn large_bodies_go_both_ways() {
    contract::check_large_bodies(
        r#"
export const handler = async (event) => ({ statusCode: 200, body: Buffer.from(event.body, "base64").reverse() });
"#,
    );
}
