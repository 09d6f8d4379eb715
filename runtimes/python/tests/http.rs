//! The HTTP trigger through the channel: events with bodies, responses whole and streamed.
#![deny(unsafe_code)]

use hearth_testkit::worker::{Answer, Instance, boot};
use serde_json::{Value, json};

fn exchange(instance: &mut Instance, event: &Value, body: &[u8]) -> (Value, Vec<u8>) {
    match instance.http(event, body).answer {
        Answer::Http(head, body) => (head, body),
        other => panic!("no response: {other:?}"),
    }
}

fn error_type(instance: &mut Instance, event: &Value) -> Value {
    match instance.http(event, b"").answer {
        Answer::Error(error) => error["errorType"].clone(),
        other => panic!("no error: {other:?}"),
    }
}

#[test]
fn a_bare_value_is_a_json_body() {
    let mut template = boot("def handler(event, context):\n    return event\n");
    let mut instance = template.fork();
    let typed = json!({"headers": {"content-type": "text/plain; charset=utf-8"}});
    let cases = [
        (
            json!({"n": 1}),
            "",
            json!({"n": 1, "isBase64Encoded": false}),
        ),
        (
            typed.clone(),
            "grüß",
            json!({"headers": typed["headers"], "body": "grüß", "isBase64Encoded": false}),
        ),
        (
            json!({}),
            "abc",
            json!({"body": "YWJj", "isBase64Encoded": true}),
        ),
    ];
    for (event, body, expected) in cases {
        let (head, answer) = exchange(&mut instance, &event, body.as_bytes());
        assert_eq!(
            head,
            json!({"statusCode": 200, "headers": [["content-type", "application/json"]]})
        );
        assert_eq!(
            serde_json::from_slice::<Value>(&answer).expect("JSON"),
            expected
        );
    }
}

#[test]
fn a_response_is_passed_on() {
    let source = r#"
def handler(event, context):
    print("served")
    return {"statusCode": 201, "headers": {"X-A": 1, "Content-Type": "image/png"}, "cookies": ["a=1", "b=2"],
            "body": "iVBORw==", "isBase64Encoded": True}
"#;
    let mut template = boot(source);
    let mut instance = template.fork();
    let reply = instance.http(&json!({}), b"");
    let headers = json!([
        ["X-A", "1"],
        ["Content-Type", "image/png"],
        ["set-cookie", "a=1"],
        ["set-cookie", "b=2"]
    ]);
    let head = json!({"statusCode": 201, "headers": headers});
    assert_eq!(reply.answer, Answer::Http(head, b"\x89PNG".to_vec()));
    assert_eq!(reply.stdout, "served\n");
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
    assert_eq!(
        exchange(&mut instance, &json!({"name": "none"}), b"").1,
        b""
    );
    let (_, body) = exchange(&mut instance, &json!({"name": "large"}), b"");
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
    let mut template = boot("def handler(event, context):\n    return event['r']\n");
    let mut instance = template.fork();
    let responses = [
        json!({"statusCode": "abc"}),
        json!({"statusCode": 99}),
        json!({"statusCode": true}),
        json!({"statusCode": 200, "headers": []}),
        json!({"statusCode": 200, "headers": {"a b": "c"}}),
        json!({"statusCode": 200, "headers": {"a": "b\r\nc: d"}}),
        json!({"statusCode": 200, "headers": {"a": {}}}),
        json!({"statusCode": 200, "headers": {"a": "x".repeat(70_000)}}),
        json!({"statusCode": 200, "cookies": "a=b"}),
        json!({"statusCode": 200, "body": "%%%=", "isBase64Encoded": true}),
        json!({"statusCode": 200, "body": {}, "isBase64Encoded": true}),
        json!({"statusCode": 200, "isBase64Encoded": "yes"}),
    ];
    for response in responses {
        assert_eq!(
            error_type(&mut instance, &json!({"r": response})),
            "Runtime.InvalidResponse",
            "{response}"
        );
    }
    let (_, body) = exchange(
        &mut instance,
        &json!({"r": {"statusCode": 200, "body": {"a": [1]}}}),
        b"",
    );
    assert_eq!(body, br#"{"a":[1]}"#);
}

#[test]
fn large_bodies_go_both_ways() {
    let source = r#"
import base64
def handler(event, context):
    return {"statusCode": 200, "body": base64.b64decode(event["body"])[::-1]}
"#;
    let mut template = boot(source);
    let mut instance = template.fork();
    let body: Vec<u8> = (0..20_000_000_u32).map(|n| (n % 251) as u8).collect();
    let (head, answer) = exchange(&mut instance, &json!({}), &body);
    assert_eq!(
        head["headers"],
        json!([["content-type", "application/octet-stream"]])
    );
    assert!(answer.iter().eq(body.iter().rev()));
}
