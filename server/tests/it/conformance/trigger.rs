//! The HTTP trigger: events and responses of payload format 2.0, whole and streamed.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Language, Subject, for_every_language};
use crate::support::Answer;

for_every_language!(
    a_request_becomes_an_event,
    a_response_is_shaped_by_the_function,
    a_bad_response_is_an_error,
);

async fn fetch(subject: &Subject, event: &Value, body: &'static [u8], kind: &str) -> Answer {
    let query: String = event
        .to_string()
        .bytes()
        .map(|byte| format!("%{byte:02x}"))
        .collect();
    let request = subject
        .client
        .request(Method::POST, &format!("/fn/all/some/path?event={query}"))
        .header("content-type", kind)
        .body(body);
    subject.client.send(request).await
}

async fn a_request_becomes_an_event(language: Language) {
    let subject = Subject::new(language, json!({})).await;
    let event = json!({"do": "request", "with": null});
    let seen = fetch(&subject, &event, "grüß".as_bytes(), "text/plain")
        .await
        .expect(200)
        .json();
    assert_eq!(
        (&seen["rawPath"], &seen["body"]),
        (&json!("/some/path"), &json!("grüß")),
        "{seen}"
    );
    assert_eq!(seen["isBase64Encoded"], false);
    let seen = fetch(&subject, &event, b"\xff\x00", "image/png")
        .await
        .expect(200)
        .json();
    assert_eq!(
        (&seen["body"], &seen["isBase64Encoded"]),
        (&json!("/wA="), &json!(true))
    );
    let seen = fetch(&subject, &event, b"", "text/plain")
        .await
        .expect(200)
        .json();
    assert_eq!(
        (&seen["body"], &seen["isBase64Encoded"]),
        (&json!(null), &json!(false))
    );
}

async fn a_response_is_shaped_by_the_function(language: Language) {
    let subject = Subject::new(language, json!({})).await;
    let page = fetch(
        &subject,
        &json!({"do": "page", "with": 201}),
        b"",
        "text/plain",
    )
    .await
    .expect(201);
    assert_eq!((page.text().as_str(), page.header("x-one")), ("page", "1"));
    assert_eq!(page.headers.get_all("set-cookie").iter().count(), 2);
    let binary = fetch(
        &subject,
        &json!({"do": "binary", "with": null}),
        b"",
        "text/plain",
    )
    .await
    .expect(200);
    assert_eq!(
        (binary.bytes.as_slice(), binary.header("content-type")),
        (b"\x89PNG".as_slice(), "image/png")
    );
    let stream = fetch(
        &subject,
        &json!({"do": "stream", "with": 1000}),
        b"",
        "text/plain",
    )
    .await
    .expect(200);
    assert_eq!(
        stream.text(),
        (0..1000).map(|n| format!("{n}\n")).collect::<String>()
    );
    let bare = fetch(
        &subject,
        &json!({"do": "echo", "with": {"a": 1}}),
        b"",
        "text/plain",
    )
    .await
    .expect(200);
    assert_eq!(
        (bare.json(), bare.header("content-type")),
        (json!({"a": 1}), "application/json")
    );
}

async fn a_bad_response_is_an_error(language: Language) {
    let subject = Subject::new(language, json!({})).await;
    for response in [
        json!({"statusCode": 99}),
        json!({"statusCode": 200, "headers": {"a b": "c"}}),
    ] {
        let answer = fetch(
            &subject,
            &json!({"do": "echo", "with": response}),
            b"",
            "text/plain",
        )
        .await;
        let problem = answer.problem(502, "function_error");
        assert_eq!(problem["errorType"], "Runtime.InvalidResponse");
    }
}
