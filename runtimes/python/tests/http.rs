//! The HTTP trigger through the channel: events with bodies, responses whole and streamed.
#![deny(unsafe_code)]

use hearth_testkit::worker::{Answer, boot, contract};
use serde_json::json;

#[test]
fn a_bare_value_is_a_json_body() {
    contract::check_bare_values("def handler(event, context):\n    return event\n");
}

#[test]
fn a_response_is_passed_on() {
    contract::check_response(
        r#"
def handler(event, context):
    print("served")
    return {"statusCode": 201, "headers": {"X-A": 1, "Content-Type": "image/png"}, "cookies": ["a=1", "b=2"],
            "body": "iVBORw==", "isBase64Encoded": True}
"#,
    );
}

#[test]
fn bodies_stream_as_they_are_made() {
    let source = r#"
import asyncio
def plain():
    for n in range(3):
        print("piece", n)
        yield f"{n}\n"
async def later():
    for n in range(3):
        await asyncio.sleep(0.001)
        yield b"%d\n" % n
def large():
    for n in range(100):
        yield bytes([n]) * 100_000
def broken():
    yield "a"
    raise ValueError("late")
def broken_at_once():
    raise ValueError("early")
    yield
def handler(event, context):
    name = event["name"]
    if name == "bare": return plain()
    if name == "none": return {"statusCode": 204, "body": iter(())}
    return {"statusCode": 200, "headers": {"content-type": "text/plain"}, "body": globals()[name]()}
"#;
    let mut template = boot(source);
    let mut instance = template.fork();
    for name in ["plain", "later", "bare"] {
        let reply = instance.http(&json!({"name": name}), b"");
        let Answer::Http(_, body) = &reply.answer else {
            panic!("{name}: {reply:?}")
        };
        assert_eq!(
            (body.as_slice(), reply.pieces),
            (b"0\n1\n2\n".as_slice(), 3),
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
    for (name, pieces) in [("broken", 1), ("broken_at_once", 0)] {
        let reply = instance.http(&json!({"name": name}), b"");
        let Answer::Error(error) = &reply.answer else {
            panic!("{name}: {reply:?}")
        };
        assert_eq!(
            (&error["errorType"], reply.pieces),
            (&json!("ValueError"), pieces),
            "{name}"
        );
    }
}

#[test]
fn an_invalid_response_is_an_error() {
    contract::check_invalid_responses("def handler(event, context):\n    return event['r']\n");
}

#[test]
fn large_bodies_go_both_ways() {
    contract::check_large_bodies(
        r#"
import base64
def handler(event, context):
    return {"statusCode": 200, "body": base64.b64decode(event["body"])[::-1]}
"#,
    );
}
