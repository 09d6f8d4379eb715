//! SIGTERM while requests run, streams are open and connections idle: one deadline for all of it.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use super::connect;
use crate::support::{Lines, Server, TOKEN, eventually, half_a_request};

const SLOW: &str = "import time\ndef handler(event, context):\n    print('begun')\n    time.sleep(100)\n    return 1\n";

#[tokio::test]
async fn a_drain_ends_in_time_and_records_what_it_cut_off() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let mut server = Server::start_in_with(&data, &[("HEARTH_DRAIN_S", "2")]);
    let client = server.client();
    let settings = json!({"timeout_ms": 200_000, "max_concurrency": 1, "public": true});
    client.deploy("slow", SLOW, settings).await;
    let calls: Vec<_> = (0..2)
        .map(|_| {
            let client = server.client();
            tokio::spawn(async move { client.invoke("slow", &json!(0)).await })
        })
        .collect();
    eventually("one runs, one waits", Duration::from_secs(10), || async {
        let function = client.get("/api/v1/functions/slow").await.json();
        (function["instances"]["busy"] == 1 && function["queued"] == 1).then_some(())
    })
    .await;
    // Streams, connections without a request, and bodies that do not come must not hold it up.
    let events = client.request(Method::GET, "/api/v1/functions/slow/events");
    let events = Lines::open(events).await;
    let logs = client.request(Method::GET, "/api/v1/functions/slow/logs?follow=true");
    let logs = Lines::open(logs).await;
    let silent = connect(&server).await;
    let head = half_a_request(&server.url, b"GET /heal").await;
    let body = format!(
        "POST /login HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 9\r\n\r\n"
    );
    let body = half_a_request(&server.url, body.as_bytes()).await;

    server.terminate();
    // The 100 s of the handler are far beyond what this test waits for.
    let status = server.ended(Duration::from_secs(40)).await;
    assert!(status.success(), "{status}");
    for call in calls {
        call.await.expect("no panic").problem(503, "shutting_down");
    }
    drop((events, logs, silent, head, body));

    let again = Server::start_in(&data);
    let client = again.client();
    let list = client
        .get("/api/v1/functions/slow/invocations")
        .await
        .expect(200)
        .json();
    let items = list["items"].as_array().expect("a list");
    assert_eq!(items.len(), 2, "{list}");
    for item in items {
        assert_eq!(item["status"], "cancelled", "{item}");
        let record = client.invocation(item["id"].as_str().expect("an id")).await;
        assert_eq!(
            record["error"]["errorType"], "Server.ShuttingDown",
            "{record}"
        );
    }
}

#[tokio::test]
async fn a_drain_without_requests_waits_for_nothing() {
    let mut server = Server::start_with(&[("HEARTH_DRAIN_S", "900")]);
    let client = server.client();
    client.deploy("slow", SLOW, json!({})).await;
    let silent = connect(&server).await;
    let events = client.request(Method::GET, "/api/v1/functions/slow/events");
    let mut events = Lines::open(events).await;
    server.terminate();
    // The stream ends by itself, and with it the last that the drain could wait for.
    while events.event().await.is_some() {}
    assert!(server.ended(Duration::from_secs(60)).await.success());
    drop(silent);
}
