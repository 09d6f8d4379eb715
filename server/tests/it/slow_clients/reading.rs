//! Answers that nobody reads.

use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::net::TcpSocket;

use super::{TIMEOUT, descriptors, everything_is_free, innocent, recorded, server};
use crate::support::{Client, Server, TOKEN, eventually};

/// Streams as many MiB as its path says.
const STREAM: &str = "def pieces(count):\n    for _ in range(count):\n        yield b'x' * (1 << 20)\n\
    def handler(event, context):\n    return {'statusCode': 200, 'body': pieces(int(event['rawPath'].strip('/')))}\n";

/// A request from a client whose window is small, and which reads nothing.
async fn ask_and_not_read(server: &Server, request: &str) -> tokio::net::TcpStream {
    use tokio::io::AsyncWriteExt;
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4096).expect("a small window");
    let address = server.url.strip_prefix("http://").expect("an address");
    let address = address.parse().expect("an address");
    let mut stream = socket.connect(address).await.expect("the server accepts");
    let head =
        format!("{request} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("it reads");
    stream
}

async fn streaming(limits: &str, timeout_ms: u32) -> (Server, Client) {
    let (server, client) = server(limits).await;
    let settings = json!({"public": true, "timeout_ms": timeout_ms, "max_concurrency": 2});
    client.deploy("stream", STREAM, settings).await;
    (server, client)
}

#[tokio::test]
async fn an_instance_is_free_when_its_function_is_done_whoever_reads() {
    let (server, client) = streaming("", 60_000).await;
    let mut waiting = Vec::new();
    // Far more than may run at a time: each is done when its answer is taken.
    for _ in 0..8 {
        waiting.push(ask_and_not_read(&server, "GET /fn/stream/3").await);
    }
    eventually("all are done", TIMEOUT, || async {
        let list = client.get("/api/v1/functions/stream/invocations?status=succeeded");
        let list = list.await.expect(200).json();
        (list["items"].as_array().expect("a list").len() == 8).then_some(())
    })
    .await;
    innocent(&server).await;
    // And whoever reads late reads everything.
    let mut all = Vec::new();
    let mut late = waiting.pop().expect("eight of them");
    let read = tokio::time::timeout(TIMEOUT, async {
        let mut buffer = vec![0; 1 << 16];
        while all.len() < 3 << 20 || !all.ends_with(b"0\r\n\r\n") {
            let count = late.read(&mut buffer).await.expect("the answer");
            assert!(count > 0, "cut after {} bytes", all.len());
            all.extend_from_slice(&buffer[..count]);
        }
    });
    read.await.expect("the whole answer");
}

#[tokio::test]
async fn an_answer_that_nobody_reads_ends_with_the_functions_time() {
    let (server, client) = streaming("", 1500).await;
    let before = descriptors(&server);
    let mut waiting = Vec::new();
    for _ in 0..2 {
        waiting.push(ask_and_not_read(&server, "GET /fn/stream/200").await);
    }
    // Both instances are taken, for as long as the function may run and no longer.
    let record = recorded(&client, "stream", "cancelled").await;
    assert_eq!(record["error"]["errorType"], "Client.NotRead", "{record}");
    client.get("/fn/stream/1").await.expect(200);
    innocent(&server).await;
    everything_is_free(&server, &client, before).await;
    for mut cut in waiting {
        let mut all = Vec::new();
        let read = tokio::time::timeout(TIMEOUT, cut.read_to_end(&mut all)).await;
        let _ = read.expect("the answer was cut");
        assert!(!all.ends_with(b"0\r\n\r\n"), "nobody takes it for whole");
    }
}

#[tokio::test]
async fn an_answer_that_nobody_reads_is_cut() {
    let (server, client) = streaming("write_slack=700", 60_000).await;
    client
        .post("/api/v1/functions/echo/invoke", &json!("y".repeat(1 << 20)))
        .await
        .expect(200);
    let before = descriptors(&server);
    let mut waiting = Vec::new();
    for request in [
        "GET /fn/stream/200",
        "GET /fn/stream/3",
        "GET /static/editor.js",
        "GET /openapi.json",
    ] {
        for _ in 0..3 {
            waiting.push(ask_and_not_read(&server, request).await);
        }
    }
    // What waits in the kernel is the kernel's; the server's own part is cut.
    recorded(&client, "stream", "cancelled").await;
    innocent(&server).await;
    everything_is_free(&server, &client, before).await;
    drop(waiting);
}

#[tokio::test]
async fn streams_that_nobody_reads_are_cut() {
    let (server, client) = server("write_slack=500").await;
    let code =
        "def handler(event, context):\n    for n in range(2000):\n        print('l' * 400)\n";
    client.deploy("talks", code, json!({})).await;
    client.invoke("talks", &json!(0)).await.expect(200);
    let mut waiting = Vec::new();
    for _ in 0..20 {
        let request = "GET /api/v1/functions/talks/logs?follow=true";
        waiting.push(ask_and_not_read(&server, request).await);
    }
    let mut others = Vec::new();
    for _ in 0..3 {
        others.push(ask_and_not_read(&server, "GET /api/v1/functions/talks/events").await);
    }
    eventually("those that follow are cut", TIMEOUT * 2, || async {
        client.invoke("talks", &json!(0)).await.expect(200);
        // A cut connection is reset: what is left to write is thrown away.
        let cut = waiting
            .iter()
            .filter(|stream| stream.try_write(b"x").is_err())
            .count();
        (cut == waiting.len()).then_some(())
    })
    .await;
    innocent(&server).await;
    drop(others);
}
