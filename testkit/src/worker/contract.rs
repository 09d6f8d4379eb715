//! What every runtime does alike. Each check boots a template over a handler in the runtime's language.

use std::fs::File;
use std::os::fd::AsFd as _;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Answer, boot};

/// Of a handler that returns its event.
pub fn check_json(source: &str) {
    let mut template = boot(source);
    let mut instance = template.fork();
    for event in [
        json!(null),
        json!(1.5),
        json!("ü\u{1f525}\u{0}\"\\ud800 \\"),
        json!({"a": [true, {"b": -1}], "": ""}),
    ] {
        assert_eq!(instance.call(&event), event);
    }
}

/// Of a handler that returns the length of the event's `blob`, and the blob.
pub fn check_large_payloads(source: &str) {
    let mut template = boot(source);
    let mut instance = template.fork();
    let blob = "0123456789abcdef".repeat(20 * 65536);
    for _ in 0..2 {
        assert_eq!(
            instance.call(&json!({"blob": blob})),
            json!([blob.len(), blob])
        );
    }
}

/// Of a handler that returns its event: without a status it is a JSON body, and shows how the request's body was passed.
pub fn check_bare_values(source: &str) {
    let mut template = boot(source);
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
        let (head, answer) = instance.respond(&event, body.as_bytes());
        assert_eq!(
            head,
            json!({"statusCode": 200, "headers": [["content-type", "application/json"]]})
        );
        let answer: Value = serde_json::from_slice(&answer).expect("JSON");
        assert_eq!(answer, expected);
    }
}

/// Of a handler that prints `served` and returns a PNG's first bytes in base64, with status 201, two headers and two
/// cookies.
pub fn check_response(source: &str) {
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

/// Of a handler that returns the event's `r`.
pub fn check_invalid_responses(source: &str) {
    let mut template = boot(source);
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
        let Answer::Error(error) = instance.http(&json!({"r": response}), b"").answer else {
            panic!("no error: {response}")
        };
        assert_eq!(error["errorType"], "Runtime.InvalidResponse", "{response}");
    }
    let valid = json!({"r": {"statusCode": 200, "body": {"a": [1]}}});
    assert_eq!(instance.respond(&valid, b"").1, br#"{"a":[1]}"#);
}

/// Of a handler that returns the request's body, decoded and reversed.
pub fn check_large_bodies(source: &str) {
    let mut template = boot(source);
    let mut instance = template.fork();
    let body: Vec<u8> = (0..20_000_000_u32).map(|n| (n % 251) as u8).collect();
    let (head, answer) = instance.respond(&json!({}), &body);
    assert_eq!(
        head["headers"],
        json!([["content-type", "application/octet-stream"]])
    );
    assert!(answer.iter().eq(body.iter().rev()));
}

/// Of a handler that exits with its event as the status.
pub fn check_exits(source: &str) {
    let mut template = boot(source);
    let mut first = template.fork();
    let second = template.fork();
    // Its answer never comes.
    first.send_only(b"7");
    assert_eq!(
        template.message(),
        json!({"type": "exited", "pid": first.pid, "code": 7})
    );
    second.kill(Signal::KILL);
    assert_eq!(
        template.message(),
        json!({"type": "exited", "pid": second.pid, "signal": 9})
    );
}

/// Of a handler that returns its event: a fork with the wrong descriptors fails, and the template goes on.
pub fn check_wrong_descriptors(source: &str) {
    let mut template = boot(source);
    let null = File::open("/dev/null").expect("null");
    let sequence = template.send_fork(&[null.as_fd(); 3]);
    let report = template.message();
    assert_eq!(
        (&report["type"], &report["seq"]),
        (&json!("fork_failed"), &json!(sequence))
    );
    // Nor one whose first descriptor is no channel: that child ends, with the reason on its stderr.
    template.send_fork(&[null.as_fd(); 6]);
    assert_eq!(template.message()["type"], "exited");
    let event = json!({"a": [1, "ü"]});
    assert_eq!(template.fork().call(&event), event);
}
