//! Clients that are slow on purpose: to send, to read, in every phase, on every kind of route. While they are at work an
//! innocent client's requests all succeed, and when they are done nothing of theirs is left.
//!
//! Limits are lowered (`HEARTH_TEST_LIMITS`), so that no test waits for the real ones; no test asserts a duration.

mod connecting;
mod drain;
mod forms;
mod memory;
mod reading;
mod sending;

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Client, Server, eventually, figures};

const ECHO: &str = "def handler(event, context):\n    return event\n";
/// How long something may take before a test fails: generous, it asserts nothing.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A server with these limits, and two functions: `echo`, and `open`, which is public.
async fn server(limits: &str) -> (Server, Client) {
    let server = Server::start_with(&[("HEARTH_TEST_LIMITS", limits)]);
    let client = server.client();
    client.deploy("echo", ECHO, json!({})).await;
    client.deploy("open", ECHO, json!({"public": true})).await;
    (server, client)
}

/// Requests of every kind by a client that does nothing wrong, each on a connection of its own.
async fn innocent(server: &Server) {
    for _ in 0..3 {
        let client = server.client();
        client.get("/healthz").await.expect(200);
        client.get("/login").await.expect(200);
        client.get("/api/v1/functions").await.expect(200);
        client.get("/fn/open").await.expect(200);
        let echoed = client.invoke("echo", &json!({"a": 1})).await.expect(200);
        assert_eq!(echoed.json(), json!({"a": 1}));
        let posted = client.request(Method::POST, "/fn/open").body("body");
        client.send(posted).await.expect(200);
    }
}

/// Descriptors that the server has open.
fn descriptors(server: &Server) -> usize {
    let open = figures::descriptors(server.serve_pid());
    open.expect("the server runs").len()
}

/// The most memory that the server had so far, in KiB.
fn peak(server: &Server) -> u64 {
    figures::status(server.serve_pid(), "VmHWM").expect("the server runs")
}

/// Waits until the server holds no more connections than the one that asks, and no instance is busy.
async fn everything_is_free(server: &Server, client: &Client, descriptors_before: usize) {
    eventually("the descriptors are free", TIMEOUT, || async {
        // Instances that are kept have some, connections would have more.
        (descriptors(server) < descriptors_before + 40).then_some(())
    })
    .await;
    eventually("no instance is busy", TIMEOUT, || async {
        let list = client.get("/api/v1/functions").await.expect(200).json();
        let items = list["items"].as_array().expect("functions").clone();
        items
            .iter()
            .all(|function| function["instances"]["busy"] == 0)
            .then_some(())
    })
    .await;
}

async fn connect(server: &Server) -> TcpStream {
    let address = server.url.strip_prefix("http://").expect("an address");
    TcpStream::connect(address)
        .await
        .expect("the server accepts")
}

/// Sends as much as the server takes, a piece after each pause, until it has enough. What it said.
async fn drip(
    mut stream: TcpStream,
    first: Vec<u8>,
    piece: &'static [u8],
    pause: Duration,
) -> String {
    if stream.write_all(&first).await.is_err() {
        return String::new();
    }
    let mut said = Vec::new();
    let mut buffer = [0; 4096];
    let ended = tokio::time::timeout(TIMEOUT, async {
        loop {
            tokio::select! {
                read = stream.read(&mut buffer) => match read {
                    Ok(0) | Err(_) => return,
                    Ok(count) => said.extend_from_slice(&buffer[..count]),
                },
                () = tokio::time::sleep(pause) => {
                    // What it cannot take any more, the read tells.
                    let _ = stream.write_all(piece).await;
                }
            }
        }
    });
    ended.await.expect("the server ends the connection");
    String::from_utf8_lossy(&said).into_owned()
}

/// The newest invocation of a function that has this status, once there is one.
async fn recorded(client: &Client, function: &str, status: &str) -> Value {
    let path = format!("/api/v1/functions/{function}/invocations?status={status}");
    eventually(status, TIMEOUT, || async {
        let list = client.get(&path).await.expect(200).json();
        let newest = list["items"][0]["id"].as_str()?.to_owned();
        Some(client.invocation(&newest).await)
    })
    .await
}
