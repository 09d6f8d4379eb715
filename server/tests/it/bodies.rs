//! Request bodies that are not what they should be, and clients that do not behave.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use reqwest::multipart::{Form, Part};
use reqwest::{Body, Method};
use serde_json::json;

use crate::support::{Client, Server, TOKEN, eventually, exchange, half_a_request};

const ECHO: &str = "def handler(event, context):\n    return event\n";
const MIB: usize = 1 << 20;

async fn echo() -> (Server, Client) {
    let server = Server::start();
    let client = server.client();
    client.deploy("echo", ECHO, json!({})).await;
    (server, client)
}

async fn invoke(client: &Client, body: impl Into<Body>) -> crate::support::Answer {
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
    let chunks = stream::iter(["{\"a\"", ": [1", "]}"]).map(|piece| Ok::<_, std::io::Error>(piece));
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

#[tokio::test]
async fn clients_that_hang_up_in_the_middle_leave_nothing() {
    let (server, client) = echo().await;
    let heads = [
        "POST /api/v1/functions/echo/invoke HTTP/1.1\r\nContent-Type: application/json\r\n",
        "POST /api/v1/functions HTTP/1.1\r\nContent-Type: application/json\r\n",
        "PUT /api/v1/functions/echo/code HTTP/1.1\r\nContent-Type: application/zip\r\n",
        "POST /fn/echo HTTP/1.1\r\nContent-Type: text/plain\r\n",
    ];
    for head in heads {
        for length in [
            "Content-Length: 5000000\r\n\r\n{\"name\": \"half",
            "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"nam\r\n",
        ] {
            let request = format!("{head}Host: x\r\nAuthorization: Bearer {TOKEN}\r\n{length}");
            drop(half_a_request(&server.url, request.as_bytes()).await);
        }
    }
    // More than is read ahead, so that an instance has begun to serve it.
    let mut request = format!(
        "POST /fn/echo HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 9000000\r\n\r\n"
    )
    .into_bytes();
    request.extend(vec![b'x'; 3 * MIB]);
    drop(half_a_request(&server.url, &request).await);
    let cancelled = "/api/v1/functions/echo/invocations";
    eventually(
        "the one that began is recorded",
        Duration::from_secs(10),
        || async {
            let list = client.get(cancelled).await.expect(200).json();
            let items = list["items"].as_array().unwrap();
            assert!(items.len() <= 1, "{list}");
            (items.len() == 1 && items[0]["status"] == "cancelled").then_some(())
        },
    )
    .await;
    assert_eq!(invoke(&client, "1").await.expect(200).json(), 1);
    let functions = client.get("/api/v1/functions").await.json();
    assert_eq!(functions["items"].as_array().unwrap().len(), 1);
    assert_eq!(functions["items"][0]["active_version"], 1);
    assert_eq!(functions["items"][0]["instances"]["busy"], 0);
    assert_eq!(server.packages(), 1);
}

#[tokio::test]
async fn requests_that_are_no_http_are_refused_and_the_server_goes_on() {
    let (server, client) = echo().await;
    let huge = format!(
        "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Huge: {}\r\n\r\n",
        "h".repeat(MIB)
    );
    let many: String = (0..500).map(|n| format!("X-{n}: y\r\n")).collect();
    let many = format!("GET /healthz HTTP/1.1\r\nHost: x\r\n{many}\r\n");
    let target = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(200_000));
    for (what, request) in [
        ("garbage", "\0\x01\x02 nothing like it\r\n\r\n".to_owned()),
        ("TLS", "\x16\x03\x01\x02\0\x01\0\x01\r\n\r\n".to_owned()),
        (
            "a bad length",
            "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n".to_owned(),
        ),
        (
            "two lengths",
            "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n12"
                .to_owned(),
        ),
        (
            "a header with a space",
            "GET /healthz HTTP/1.1\r\nHost: x\r\nA B: c\r\n\r\n".to_owned(),
        ),
        ("a huge header", huge),
        ("many headers", many),
        ("a huge address", target),
    ] {
        let answer = exchange(&server.url, request.as_bytes()).await;
        assert!(
            answer.status == 0 || (400..500).contains(&answer.status),
            "{what}: {answer:?}"
        );
    }
    // A chunk that is none, after a head that was fine.
    let broken = format!(
        "POST /api/v1/functions/echo/invoke HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\
         Transfer-Encoding: chunked\r\n\r\nZZ\r\n"
    );
    let answer = exchange(&server.url, broken.as_bytes()).await;
    answer.problem(400, "bad_request_body");
    client.get("/healthz").await.expect(200);
}
