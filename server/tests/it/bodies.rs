//! Request bodies that are not what they should be: no JSON, too deep, too large, half a form.

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use reqwest::multipart::{Form, Part};
use reqwest::{Body, Method};
use serde_json::json;

use crate::support::{Answer, Client, Server};

const ECHO: &str = "def handler(event, context):\n    return event\n";
const MIB: usize = 1 << 20;

async fn echo() -> (Server, Client) {
    let server = Server::start();
    let client = server.client();
    client.deploy("echo", ECHO, json!({})).await;
    (server, client)
}

async fn invoke(client: &Client, body: impl Into<Body>) -> Answer {
    let request = client
        .request(Method::POST, "/api/v1/functions/echo/invoke")
        .body(body);
    client.send(request).await
}

#[tokio::test]
async fn an_event_is_any_json_whatever_it_is_called() {
    let (_server, client) = echo().await;
    for event in [
        "null",
        "0",
        "-1.5e3",
        "\"\"",
        "[]",
        "{}",
        " [1, {\"a\": \"\\u00fc\"}] \n",
        "12345678901234567890123",
    ] {
        let answer = invoke(&client, event).await.expect(200);
        let expected: serde_json::Value = serde_json::from_str(event).unwrap();
        if event.len() < 20 || event.contains('u') {
            assert_eq!(answer.json(), expected, "{event}");
        } else {
            assert_eq!(answer.text(), event, "Python's integers have no limit");
        }
    }
    let empty = invoke(&client, "").await.expect(200);
    assert_eq!(empty.json(), json!({}), "as Lambda does");
    // Not even a body's type: `curl -d` calls everything a form.
    let request = client
        .request(Method::POST, "/api/v1/functions/echo/invoke")
        .header("content-type", "application/x-www-form-urlencoded")
        .body("{\"a\": 1}");
    assert_eq!(
        client.send(request).await.expect(200).json(),
        json!({"a": 1})
    );
}

#[tokio::test]
async fn what_is_not_json_is_refused_with_its_place() {
    let (_server, client) = echo().await;
    let bad: [&[u8]; 10] = [
        b"nul",
        b"{a: 1}",
        b"[1,]",
        b"{} {}",
        b"{'a': 1}",
        b"\xff\xfe",
        b"\"\xc3\"",
        b"NaN",
        b" ",
        b"{\"a\":\n  oops}",
    ];
    for body in bad {
        let answer = invoke(&client, body).await;
        let problem = answer.problem(400, "invalid_json");
        assert!(
            problem["line"].is_u64() && problem["column"].is_u64(),
            "{problem}"
        );
    }
    let problem = invoke(&client, "{\"a\":\n  oops}")
        .await
        .problem(400, "invalid_json");
    assert_eq!(problem["line"], 2);
    for (method, path) in [
        (Method::POST, "/api/v1/functions"),
        (Method::PATCH, "/api/v1/functions/echo"),
        (Method::PUT, "/api/v1/functions/echo/code"),
        (Method::POST, "/api/v1/tokens"),
    ] {
        let send = |body: &'static str| {
            let request = client.request(method.clone(), path);
            client.send(
                request
                    .header("content-type", "application/json")
                    .body(body),
            )
        };
        for body in ["", "{", "nonsense", "{\"name\": }"] {
            send(body).await.problem(400, "invalid_json");
        }
        for body in ["null", "[]", "\"x\"", "1"] {
            let problem = send(body).await.problem(422, "invalid_field");
            assert_eq!(problem["field"], "body", "{problem}");
        }
        for kind in [
            "",
            "text/html",
            "application/x-www-form-urlencoded",
            "application/jsonx",
            "a/b; q",
        ] {
            let mut request = client.request(method.clone(), path).body("{}");
            if !kind.is_empty() {
                request = request.header("content-type", kind);
            }
            client
                .send(request)
                .await
                .problem(415, "unsupported_media_type");
        }
    }
    let list = client.get("/api/v1/functions").await.json();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn deep_nesting_hurts_nobody() {
    let (_server, client) = echo().await;
    for depth in [100, 5_000, MIB] {
        let deep = "[".repeat(depth) + &"]".repeat(depth);
        let answer = invoke(&client, deep).await;
        match answer.status.as_u16() {
            200 => {}
            400 => drop(answer.problem(400, "invalid_json")),
            _ => {
                let problem = answer.problem(502, "function_error");
                assert_eq!(problem["errorType"], "Runtime.UnmarshalError");
            }
        }
        let unclosed = "{\"a\":".repeat(depth);
        invoke(&client, unclosed).await.problem(400, "invalid_json");
        let create = format!("{{\"name\": {}1{}}}", "[".repeat(depth), "]".repeat(depth));
        let request = client
            .request(Method::POST, "/api/v1/functions")
            .header("content-type", "application/json")
            .body(create);
        let status = client.send(request).await.status;
        assert!(status == 400 || status == 422, "{depth}: {status}");
    }
    let fine = invoke(&client, "1").await.expect(200);
    assert_eq!(fine.header("x-hearth-start"), "warm");
}

#[tokio::test]
async fn an_event_over_six_mebibytes_is_refused_and_one_below_is_not() {
    let (_server, client) = echo().await;
    let text = |length: usize| format!("\"{}\"", "x".repeat(length - 2));
    let most = invoke(&client, text(6 * MIB)).await.expect(200);
    assert_eq!(most.bytes.len(), 6 * MIB);
    for length in [6 * MIB + 1, 20 * MIB] {
        let problem = invoke(&client, text(length))
            .await
            .problem(413, "payload_too_large");
        assert_eq!(problem["limit"], 6 * MIB);
        // Without Content-Length the server finds out on the way.
        let pieces: Vec<_> = text(length)
            .into_bytes()
            .chunks(64 << 10)
            .map(|piece| Ok::<_, std::io::Error>(Bytes::copy_from_slice(piece)))
            .collect();
        let chunked = Body::wrap_stream(stream::iter(pieces));
        invoke(&client, chunked)
            .await
            .problem(413, "payload_too_large");
    }
    let chunks = stream::iter(["{\"a\"", ": [1", "]}"]).map(Ok::<_, std::io::Error>);
    let chunked = invoke(&client, Body::wrap_stream(chunks)).await.expect(200);
    assert_eq!(chunked.json(), json!({"a": [1]}));
    let list = client
        .get("/api/v1/functions/echo/invocations")
        .await
        .json();
    assert_eq!(
        list["items"].as_array().unwrap().len(),
        2,
        "a refused body invokes nothing"
    );
}

#[tokio::test]
async fn settings_and_forms_have_limits_too() {
    let (_server, client) = echo().await;
    let long = json!({"env": {"A": "x".repeat(MIB)}});
    client
        .patch("/api/v1/functions/echo", &long)
        .await
        .problem(413, "payload_too_large");
    let post = |form: Form| {
        client.send(
            client
                .request(Method::POST, "/api/v1/functions")
                .multipart(form),
        )
    };
    let named = |name: String| {
        Form::new()
            .text("name", name)
            .text("runtime", "python3")
            .text("code", ECHO)
    };
    post(named("x".repeat(8 * MIB)))
        .await
        .problem(413, "payload_too_large");
    let problem = post(named("fine".into()).text("name", "twice"))
        .await
        .problem(422, "invalid_field");
    assert_eq!(problem["field"], "name");
    let problem = post(named("fine".into()).text("colour", "red"))
        .await
        .problem(422, "invalid_field");
    assert_eq!(problem["field"], "colour");
    let file = Form::new().part("name", Part::text("x").file_name("name.txt"));
    assert_eq!(
        post(file).await.problem(422, "invalid_field")["field"],
        "name"
    );
    let many = (0..3000).fold(Form::new(), |form, n| form.text(format!("env.A{n}"), "x"));
    post(many).await.problem(400, "invalid_multipart");
    for (kind, body) in [
        ("multipart/form-data", "x"),
        ("multipart/form-data; boundary=b", "no boundary at all"),
        (
            "multipart/form-data; boundary=b",
            "--b\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\ncut off",
        ),
        (
            "multipart/form-data; boundary=b",
            "--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--\r\n",
        ),
    ] {
        let request = client
            .request(Method::POST, "/api/v1/functions")
            .header("content-type", kind)
            .body(body);
        client.send(request).await.problem(400, "invalid_multipart");
    }
}
