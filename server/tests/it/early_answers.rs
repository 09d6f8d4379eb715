//! Answers that are decided before the body has come: what becomes of the connection.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Server, TOKEN, eventually};

/// Requests on one connection for each kind of early answer.
const REQUESTS: usize = 600;
const ECHO: &str = "def handler(event, context):\n    return event\n";
const SLEEPS: &str =
    "import time\ndef handler(event, context):\n    time.sleep(600)\n    return event\n";

/// A client that sends a request's head and its body in packets of their own, as Python's `http.client` does.
struct TwoPackets {
    stream: TcpStream,
    /// Bytes that came and were not looked at yet.
    rest: Vec<u8>,
}

impl TwoPackets {
    async fn connect(url: &str) -> Self {
        let address = url.strip_prefix("http://").expect("an http address");
        let stream = TcpStream::connect(address).await.expect("the server");
        stream.set_nodelay(true).expect("a TCP socket");
        Self {
            stream,
            rest: Vec::new(),
        }
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("it is open");
    }

    /// The next answer's status and head; its body, which has a length, is skipped.
    async fn answer(&mut self) -> (u16, String) {
        let mut buffer = [0; 8192];
        loop {
            if let Some(at) = self.rest.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&self.rest[..at]).to_ascii_lowercase();
                let length = head
                    .split("\r\n")
                    .find_map(|line| line.strip_prefix("content-length: "))
                    .map_or(0, |length| length.parse().expect("a length"));
                let end = at + 4 + length;
                if self.rest.len() >= end {
                    self.rest.drain(..end);
                    let status = head.split(' ').nth(1).expect("a status");
                    return (status.parse().expect("a number"), head);
                }
            }
            let count = self.stream.read(&mut buffer).await.expect("an answer");
            assert!(count > 0, "the connection was closed without an answer");
            self.rest.extend_from_slice(&buffer[..count]);
        }
    }

    /// Whether the server closes it now that nothing is asked.
    async fn is_closed(&mut self) -> bool {
        let mut byte = [0];
        let read = self.stream.read(&mut byte);
        let read = tokio::time::timeout(Duration::from_secs(20), read);
        matches!(read.await, Ok(Ok(0) | Err(_)))
    }
}

fn head(request: &str, token: &str, more: &str, length: usize) -> String {
    format!(
        "{request} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: {length}\r\n{more}\r\n"
    )
}

#[tokio::test]
async fn an_early_answer_leaves_the_connection_for_the_next_request() {
    let server = Server::start();
    let client = server.client();
    client.deploy("echo", ECHO, json!({})).await;
    let body = br#"{"name": "a small body"}"#;
    let json = "Content-Type: application/json\r\n";
    for (request, token, more, status) in [
        ("POST /api/v1/functions", "nobody's", json, 401),
        ("POST /api/v1/functions/echo/invoke", "nobody's", "", 401),
        ("POST /fn/echo", "nobody's", "", 401),
        ("POST /api/v1/functions/nobody/invoke", TOKEN, "", 404),
        ("POST /fn/nobody", TOKEN, "", 404),
        ("PUT /api/v1/functions/nobody/code", TOKEN, json, 404),
        ("PATCH /api/v1/functions/nobody", TOKEN, json, 404),
        ("POST /nowhere", TOKEN, "", 404),
        ("DELETE /healthz", TOKEN, "", 405),
        (
            "POST /api/v1/functions",
            TOKEN,
            "Content-Type: a/b\r\n",
            415,
        ),
        ("POST /login", TOKEN, json, 415),
    ] {
        let mut client = TwoPackets::connect(&server.url).await;
        for n in 0..REQUESTS {
            let head = head(request, token, more, body.len());
            client.send(head.as_bytes()).await;
            // Both orders there are: the body after the answer, and while the server makes up its mind.
            let (answered, head) = if n % 2 == 0 {
                let answer = client.answer().await;
                client.send(body).await;
                answer
            } else {
                tokio::task::yield_now().await;
                client.send(body).await;
                client.answer().await
            };
            assert_eq!(answered, status, "request {n} of {request}: {head}");
            assert!(!head.contains("connection: close"), "{request}: {head}");
        }
        let last = self::head("POST /api/v1/functions/echo/invoke", TOKEN, "", body.len());
        client.send(last.as_bytes()).await;
        client.send(body).await;
        assert_eq!(client.answer().await.0, 200, "after {request}");
    }
}

#[tokio::test]
async fn a_full_queue_leaves_the_connection_for_the_next_request() {
    let server = Server::start();
    let api = server.client();
    api.deploy("echo", ECHO, json!({})).await;
    let settings = json!({"max_concurrency": 1, "timeout_ms": 600_000});
    api.deploy("busy", SLEEPS, settings).await;
    // One has the instance, a hundred wait, and the others are refused at once.
    let waiting: Vec<_> = (0..110)
        .map(|_| {
            let api = api.clone();
            tokio::spawn(async move { api.invoke("busy", &json!(0)).await })
        })
        .collect();
    eventually("a full queue", Duration::from_secs(30), || async {
        let function = api.get("/api/v1/functions/busy").await.json();
        (function["queued"].as_u64() >= Some(100)).then_some(())
    })
    .await;
    let body = b"{}";
    for path in ["/api/v1/functions/busy/invoke", "/fn/busy"] {
        let mut client = TwoPackets::connect(&server.url).await;
        let mut refused = 0;
        while refused < REQUESTS {
            let head = head(&format!("POST {path}"), TOKEN, "", body.len());
            client.send(head.as_bytes()).await;
            tokio::task::yield_now().await;
            client.send(body).await;
            let (status, head) = client.answer().await;
            assert_eq!(status, 429, "{head}");
            assert!(!head.contains("connection: close"), "{head}");
            refused += 1;
        }
        let last = head("POST /api/v1/functions/echo/invoke", TOKEN, "", body.len());
        client.send(last.as_bytes()).await;
        client.send(body).await;
        assert_eq!(client.answer().await.0, 200);
    }
    for task in waiting {
        task.abort();
    }
}

#[tokio::test]
async fn a_body_that_is_given_up_ends_the_connection_and_the_answer_says_so() {
    let server = Server::start();
    let large = 1 << 20;
    for (what, more, length) in [
        ("a large body", "", large),
        ("a body that was asked for", "Expect: 100-continue\r\n", 10),
    ] {
        let mut client = TwoPackets::connect(&server.url).await;
        let head = head("POST /fn/nobody", TOKEN, more, length);
        client.send(head.as_bytes()).await;
        let (status, head) = client.answer().await;
        assert_eq!(status, 404);
        assert!(head.contains("connection: close"), "{what}: {head}");
        if length == large {
            client.send(&vec![b'x'; length]).await;
        }
        assert!(client.is_closed().await, "{what}");
    }
    // The length of a body in chunks is not known, and this one has no end.
    let mut client = TwoPackets::connect(&server.url).await;
    let head = format!(
        "POST /fn/nobody HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\
         Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
    );
    client.send(head.as_bytes()).await;
    let (status, head) = client.answer().await;
    assert_eq!(status, 404);
    assert!(head.contains("connection: close"), "{head}");
}
