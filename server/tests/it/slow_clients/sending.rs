//! Bodies that come slowly, or never.

use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncReadExt;

use super::{TIMEOUT, connect, descriptors, drip, everything_is_free, innocent, recorded, server};
use crate::support::{TOKEN, half_a_request};

/// Every kind of route that takes a body: what comes before it, and its type.
fn routes() -> Vec<(&'static str, String)> {
    let token = format!("Authorization: Bearer {TOKEN}\r\n");
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let parts = "Content-Type: multipart/form-data; boundary=b\r\n";
    let json = format!("{token}Content-Type: application/json\r\n");
    vec![
        ("POST /login", form.to_owned()),
        ("POST /login", parts.to_owned()),
        ("POST /setup", form.to_owned()),
        ("POST /fn/open", String::new()),
        ("POST /fn/echo", token.clone()),
        ("POST /api/v1/functions/echo/invoke", json.clone()),
        ("POST /api/v1/functions", json.clone()),
        ("POST /api/v1/functions", format!("{token}{parts}")),
        (
            "PUT /api/v1/functions/echo/code",
            format!("{token}Content-Type: application/zip\r\n"),
        ),
        ("PATCH /api/v1/functions/echo", json.clone()),
        ("POST /api/v1/tokens", json),
    ]
}

#[tokio::test]
async fn bodies_that_do_not_come_are_408_on_every_route() {
    let (server, client) = server("body_slack=500").await;
    let before = descriptors(&server);
    let mut all = tokio::task::JoinSet::new();
    for (line, headers) in routes() {
        let head = format!("{line} HTTP/1.1\r\nHost: localhost\r\n{headers}");
        let bodies: [(String, &'static [u8]); 6] = [
            // Nothing after the head; a byte now and then; the same in chunks; in the frame of a chunk; asked first.
            ("Content-Length: 5000\r\n\r\n".into(), b""),
            ("Content-Length: 5000\r\n\r\na".into(), b"a"),
            ("Transfer-Encoding: chunked\r\n\r\n".into(), b""),
            ("Transfer-Encoding: chunked\r\n\r\n".into(), b"1\r\na\r\n"),
            ("Transfer-Encoding: chunked\r\n\r\n1;".into(), b"x"),
            (
                "Content-Length: 5000\r\nExpect: 100-continue\r\n\r\n".into(),
                b"",
            ),
        ];
        for (body, piece) in bodies {
            let stream = connect(&server).await;
            let first = format!("{head}{body}");
            all.spawn(async move {
                let said = drip(
                    stream,
                    first.clone().into(),
                    piece,
                    Duration::from_millis(100),
                )
                .await;
                let said = said.trim_start_matches("HTTP/1.1 100 Continue\r\n\r\n");
                assert!(
                    said.starts_with("HTTP/1.1 408 ") || said.starts_with("HTTP/1.1 404 "),
                    "{first}: {said}"
                );
                // Pages say it in their own way.
                let page = said.contains("<html");
                assert!(
                    page || said.contains("\"request_timeout\"") || said.contains("404"),
                    "{said}"
                );
            });
        }
    }
    innocent(&server).await;
    while let Some(ended) = all.join_next().await {
        ended.expect("answered and ended");
    }
    everything_is_free(&server, &client, before).await;
    // Nobody had an instance for any of this.
    let list = client.get("/api/v1/functions/open/invocations?status=cancelled");
    assert_eq!(list.await.expect(200).json()["items"], json!([]));
}

#[tokio::test]
async fn an_instance_waits_for_a_body_until_its_own_time_is_up_at_most() {
    // The pace of the body would let it go on for ever.
    let (server, client) = server("body_slack=60000,body_rate=1").await;
    client
        .deploy(
            "brief",
            super::ECHO,
            json!({"public": true, "timeout_ms": 700}),
        )
        .await;
    let length = 3 << 20;
    let head =
        format!("POST /fn/brief HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n");
    let mut first = head.into_bytes();
    // More than is read ahead, so that an instance is leased.
    first.extend(vec![b'x'; 2 << 20]);
    let stream = connect(&server).await;
    let said = drip(stream, first, b"x", Duration::from_millis(100)).await;
    assert!(said.starts_with("HTTP/1.1 408 "), "{said}");
    let record = recorded(&client, "brief", "cancelled").await;
    assert_eq!(
        record["error"]["errorType"], "Client.RequestTimeout",
        "{record}"
    );
    innocent(&server).await;
}

#[tokio::test]
async fn a_handlers_clock_is_the_hosts() {
    let (server, client) = server("").await;
    let code = "import time\ndef handler(event, context):\n    return {'left': context.get_remaining_time_in_millis()}\n";
    client
        .deploy("clock", code, json!({"public": true, "timeout_ms": 6000}))
        .await;
    let length = 2 << 20;
    let head = format!(
        "POST /fn/clock HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    let mut first = head.into_bytes();
    first.extend(vec![b'x'; length - 1]);
    let mut stream = half_a_request(&server.url, &first).await;
    // Time itself is what is measured: the host counts it as sending, and the handler has it less.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    tokio::io::AsyncWriteExt::write_all(&mut stream, b"x")
        .await
        .expect("it reads");
    let mut said = String::new();
    let read = tokio::time::timeout(TIMEOUT, stream.read_to_string(&mut said));
    read.await.expect("an answer").expect("whole");
    let left: u64 = said
        .split("\"left\": ")
        .nth(1)
        .or(said.split("\"left\":").nth(1))
        .and_then(|rest| {
            rest.trim()
                .split(|c: char| !c.is_ascii_digit())
                .next()?
                .parse()
                .ok()
        })
        .unwrap_or_else(|| panic!("{said}"));
    // What the host counts as sending came off the handler's time, too.
    let sent: f64 = said
        .split("send;dur=")
        .nth(1)
        .and_then(|rest| rest.split(',').next()?.parse().ok())
        .unwrap_or_else(|| panic!("{said}"));
    let most = 6000.0 - sent + 1.0;
    assert!(
        left > 0 && (left as f64) <= most,
        "{left} of {most}: {said}"
    );
    assert!(sent > 1000.0, "the body's end was waited for: {said}");
}
