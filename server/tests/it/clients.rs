//! Clients that do not behave: they hang up, speak no HTTP, or still send when the answer is long decided.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{Client, Server, TOKEN, eventually, exchange, half_a_request};

const ECHO: &str = "def handler(event, context):\n    return event\n";
const MIB: usize = 1 << 20;

async fn echo() -> (Server, Client) {
    let server = Server::start();
    let client = server.client();
    client.deploy("echo", ECHO, json!({})).await;
    (server, client)
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
            let request =
                format!("{head}Host: localhost\r\nAuthorization: Bearer {TOKEN}\r\n{length}");
            drop(half_a_request(&server.url, request.as_bytes()).await);
        }
    }
    // More than is read ahead, so that an instance has begun to serve it.
    let mut request = format!(
        "POST /fn/echo HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 9000000\r\n\r\n"
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
    assert_eq!(client.invoke("echo", &json!(1)).await.expect(200).json(), 1);
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
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Huge: {}\r\n\r\n",
        "h".repeat(MIB)
    );
    let many: String = (0..500).map(|n| format!("X-{n}: y\r\n")).collect();
    let many = format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n{many}\r\n");
    let target = format!(
        "GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "a".repeat(200_000)
    );
    for (what, request) in [
        ("garbage", "\0\x01\x02 nothing like it\r\n\r\n".to_owned()),
        ("TLS", "\x16\x03\x01\x02\0\x01\0\x01\r\n\r\n".to_owned()),
        (
            "a bad length",
            "POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n".to_owned(),
        ),
        (
            "two lengths",
            "POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n12"
                .to_owned(),
        ),
        (
            "a header with a space",
            "GET /healthz HTTP/1.1\r\nHost: localhost\r\nA B: c\r\n\r\n".to_owned(),
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
    // An invalid chunk after a valid head.
    let broken = format!(
        "POST /api/v1/functions/echo/invoke HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\
         Transfer-Encoding: chunked\r\n\r\nZZ\r\n"
    );
    let answer = exchange(&server.url, broken.as_bytes()).await;
    answer.problem(400, "bad_request_body");
    client.get("/healthz").await.expect(200);
}

#[tokio::test]
async fn a_client_that_is_busy_sending_reads_why_it_is_refused() {
    let (server, client) = echo().await;
    let anonymous = server.client_with(None);
    let large = vec![b'x'; 20 * MIB];
    for (client, method, path, kind, status, code) in [
        (
            &anonymous,
            Method::POST,
            "/api/v1/functions",
            "application/json",
            401,
            "unauthorized",
        ),
        (
            &anonymous,
            Method::POST,
            "/api/v1/functions/echo/invoke",
            "application/json",
            401,
            "unauthorized",
        ),
        (
            &anonymous,
            Method::POST,
            "/fn/echo",
            "text/plain",
            401,
            "unauthorized",
        ),
        (
            &client,
            Method::POST,
            "/fn/nobody",
            "text/plain",
            404,
            "not_found",
        ),
        (
            &client,
            Method::PUT,
            "/api/v1/functions/nobody/code",
            "application/zip",
            404,
            "not_found",
        ),
        (
            &client,
            Method::POST,
            "/api/v1/functions/nobody/invoke",
            "",
            404,
            "not_found",
        ),
        (
            &client,
            Method::POST,
            "/nowhere",
            "text/plain",
            404,
            "not_found",
        ),
        (
            &client,
            Method::DELETE,
            "/healthz",
            "text/plain",
            405,
            "method_not_allowed",
        ),
        (
            &client,
            Method::POST,
            "/api/v1/functions",
            "text/html",
            415,
            "unsupported_media_type",
        ),
        (
            &client,
            Method::PATCH,
            "/api/v1/functions/echo",
            "application/json",
            413,
            "payload_too_large",
        ),
        (
            &client,
            Method::POST,
            "/api/v1/functions/echo/invoke",
            "application/json",
            413,
            "payload_too_large",
        ),
    ] {
        let mut request = client.request(method, path).body(large.clone());
        if !kind.is_empty() {
            request = request.header("content-type", kind);
        }
        client.send(request).await.problem(status, code);
    }
}

#[tokio::test]
async fn a_deploy_goes_to_its_end_although_its_client_hangs_up() {
    let (server, client) = echo().await;
    let code = "import time\ntime.sleep(1)\ndef handler(event, context):\n    return 'deployed'\n";
    let body = json!({"name": "alone", "runtime": "python3", "code": {"inline": code}}).to_string();
    let request = format!(
        "POST /api/v1/functions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let connection = half_a_request(&server.url, request.as_bytes()).await;
    eventually(
        "the deploy is under way",
        Duration::from_secs(10),
        || async { (server.packages() == 2).then_some(()) },
    )
    .await;
    drop(connection);
    eventually("it is done, whole", Duration::from_secs(20), || async {
        (client.get("/api/v1/functions/alone").await.status == 200).then_some(())
    })
    .await;
    assert_eq!(
        client.invoke("alone", &json!(0)).await.expect(200).json(),
        "deployed"
    );
}

#[tokio::test]
async fn an_import_that_hangs_is_refused_in_the_end_and_holds_up_nobody() {
    let (server, client) = echo().await;
    let deploy = tokio::spawn({
        let client = client.clone();
        let code = "print('waiting')\nimport time\nwhile True: time.sleep(1)\n";
        async move { client.try_deploy("hangs", code, json!({})).await }
    });
    eventually(
        "the import is under way",
        Duration::from_secs(10),
        || async { (server.packages() == 2).then_some(()) },
    )
    .await;
    for event in 0..5 {
        client.invoke("echo", &json!(event)).await.expect(200);
    }
    client.deploy("other", ECHO, json!({})).await;
    let taken = client.try_deploy("hangs", ECHO, json!({})).await;
    taken.problem(409, "already_exists");
    let problem = deploy.await.unwrap().problem(422, "import_failed");
    assert_eq!(problem["errorType"], "Runtime.ImportTimeout", "{problem}");
    assert_eq!(problem["logs"][0]["text"], "waiting", "{problem}");
    client.deploy("hangs", ECHO, json!({})).await;
}

#[tokio::test]
async fn a_client_that_asks_before_it_sends_is_told_to_go_on_or_why_not() {
    let (server, _client) = echo().await;
    let head = |token: &str| {
        format!(
            "POST /api/v1/functions/echo/invoke HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
             Content-Length: 2000000\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n"
        )
    };
    let mut sender = half_a_request(&server.url, head(TOKEN).as_bytes()).await;
    let mut go_on = [0; 25];
    sender.read_exact(&mut go_on).await.expect("an answer");
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    let body = format!("\"{}\"", "x".repeat(1_999_998));
    sender.write_all(body.as_bytes()).await.expect("it reads");
    let mut answer = String::new();
    sender.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with(&body));

    let refused = exchange(&server.url, head("nonsense").as_bytes()).await;
    refused.problem(401, "unauthorized");
}
