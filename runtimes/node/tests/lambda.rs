//! What functions written for Lambda rely on: streamed answers, and a layer's directories.
#![deny(unsafe_code)]

use hearth_testkit::worker::{Answer, Template, boot};
use serde_json::{Value, json};

/// Does what its event says with the stream.
const STREAMS: &str = r#"
import { pipeline } from "node:stream/promises";
import { Readable } from "node:stream";
const tick = () => new Promise((resolve) => setTimeout(resolve, 5));
const does = {
  async page(stream) {
    const metadata = { statusCode: 201, headers: { "x-one": 1 }, cookies: ["a=1"] };
    const out = awslambda.HttpResponseStream.from(stream, metadata);
    out.write("one ");
    await tick();
    out.write(Buffer.from("two"));
    out.end();
  },
  async plain(stream) { stream.setContentType("text/plain"); stream.end("text"); },
  async nothing(stream) { stream.end(); },
  async object(stream) { stream.write({ a: 1 }); stream.end(); },
  async piped(stream) { await pipeline(Readable.from(["a", "b", "c"]), stream); },
  async large(stream) {
    for (let n = 0; n < 64; n += 1) {
      if (!stream.write(Buffer.alloc(65536, n))) await new Promise((resolve) => stream.once("drain", resolve));
    }
    stream.end();
  },
  async binary(stream) { stream.end(Buffer.from([0xff, 0])); },
  async early() { throw new RangeError("early"); },
  async late(stream) { stream.write("begun"); await tick(); throw new RangeError("late"); },
  async destroyed(stream) { stream.destroy(new RangeError("destroyed")); },
  async twice(stream) { stream.write("begun"); awslambda.HttpResponseStream.from(stream, { statusCode: 500 }); },
  async endless(stream) { stream.write("begun"); },
  async after(stream) { stream.end("whole"); await tick(); console.log("and then"); },
  async never(stream) { stream.end("whole"); await new Promise(() => {}); },
  async strays(stream) {
    setTimeout(() => { stream.write("stray"); }, 10);
    throw new RangeError("gone");
  },
  async bad(stream) { awslambda.HttpResponseStream.from(stream, { statusCode: 99 }); },
  async wait(stream) { await new Promise((resolve) => setTimeout(resolve, 30)); stream.end("waited"); },
  sync(stream) { stream.end("at once"); },
};
export const handler = awslambda.streamifyResponse((event, stream, context) => {
  if (context.awsRequestId === undefined) throw new TypeError("no context");
  return does[event.do](stream);
});
"#;

fn octets(status: u16) -> Value {
    json!({"statusCode": status, "headers": [["content-type", "application/octet-stream"]]})
}

#[test]
fn a_streamed_answer_goes_out_as_it_is_written() {
    let mut template = boot(STREAMS);
    let mut instance = template.fork();
    let mut http = |what: &str| instance.http(&json!({"do": what}), b"");
    let page = http("page");
    let headers = json!([
        ["x-one", "1"],
        ["content-type", "application/octet-stream"],
        ["set-cookie", "a=1"]
    ]);
    let head = json!({"statusCode": 201, "headers": headers});
    assert_eq!(page.answer, Answer::Http(head, b"one two".to_vec()));
    assert_eq!(page.pieces, 2);
    let text = json!({"statusCode": 200, "headers": [["content-type", "text/plain"]]});
    assert_eq!(http("plain").answer, Answer::Http(text, b"text".to_vec()));
    for (what, body) in [
        ("nothing", ""),
        ("object", r#"{"a":1}"#),
        ("piped", "abc"),
        ("after", "whole"),
        ("never", "whole"),
    ] {
        let reply = http(what);
        assert_eq!(
            reply.answer,
            Answer::Http(octets(200), body.as_bytes().to_vec()),
            "{what}"
        );
        // What the handler does after the last piece belongs to the same invocation.
        assert_eq!(reply.stdout.contains("and then"), what == "after");
    }
    let Answer::Http(_, body) = http("large").answer else {
        panic!("no response");
    };
    assert_eq!(body.len(), 64 * 65536);
    assert!(body.chunks(65536).zip(0..).all(|(piece, n)| piece[0] == n));
}

#[test]
fn what_fails_before_the_first_piece_is_a_clean_error() {
    let mut template = boot(STREAMS);
    let mut instance = template.fork();
    for (what, error_type, begun) in [
        ("early", "RangeError", false),
        ("destroyed", "RangeError", false),
        ("bad", "Runtime.InvalidResponse", false),
        ("sync", "Runtime.InvalidStreamingOperation", true),
        ("late", "RangeError", true),
        ("twice", "Runtime.InvalidStreamingOperation", true),
        ("endless", "Runtime.InvalidResponse", true),
    ] {
        let reply = instance.http(&json!({"do": what}), b"");
        let Answer::Error(error) = &reply.answer else {
            panic!("{what}: {reply:?}");
        };
        assert_eq!(error["errorType"], error_type, "{what}");
        assert_eq!(reply.pieces > 0, begun, "{what}");
    }
}

#[test]
fn what_is_written_after_the_invocation_belongs_to_no_other() {
    let mut template = boot(STREAMS);
    let mut instance = template.fork();
    let reply = instance.http(&json!({"do": "strays"}), b"");
    assert!(matches!(reply.answer, Answer::Error(_)), "{reply:?}");
    // The stray piece is written while this one waits.
    let reply = instance.http(&json!({"do": "wait"}), b"");
    assert_eq!(reply.answer, Answer::Http(octets(200), b"waited".to_vec()));
}

#[test]
fn an_invoke_gets_one_value() {
    let mut template = boot(STREAMS);
    let mut instance = template.fork();
    let mut call = |what: &str| instance.call(&json!({"do": what}));
    assert_eq!(call("plain")["body"], "text");
    assert_eq!(call("object"), json!({"a": 1}));
    assert_eq!(call("piped"), "abc");
    assert_eq!(call("nothing"), "");
    let page = json!({
        "statusCode": 201, "headers": {"x-one": 1}, "cookies": ["a=1"], "body": "one two", "isBase64Encoded": false,
    });
    assert_eq!(call("page"), page);
    for (what, error_type) in [("binary", "Runtime.MarshalError"), ("late", "RangeError")] {
        let error = instance.call_error(&json!({"do": what}));
        assert_eq!(error["errorType"], error_type, "{what}");
    }
}

#[test]
fn a_layers_packages_are_found_by_require() {
    let main = "
const inner = require('inner');
exports.handler = async () => [inner, require('versioned'), require('node:child_process')
  .execFileSync(process.execPath, ['-p', 'require(\"inner\")'], { encoding: 'utf8' }).trim()];
";
    let version = boot("export const handler = () => process.versions.node.split('.')[0];\n")
        .fork()
        .call(&json!(null));
    let major = version.as_str().expect("text");
    let versioned = format!("nodejs/node{major}/node_modules/versioned/index.js");
    let files = [
        ("main.cjs", main),
        (
            "nodejs/node_modules/inner/index.js",
            "module.exports = 'layer';",
        ),
        (versioned.as_str(), "module.exports = 'of this version';"),
    ];
    let mut template = Template::start(&files, "main.handler");
    let booted = template.message();
    assert_eq!(booted["type"], "booted", "{booted}");
    assert_eq!(
        template.fork().call(&json!(null)),
        json!(["layer", "of this version", "layer"])
    );
}
