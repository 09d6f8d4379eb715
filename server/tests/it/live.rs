//! What can be watched as it happens: followed logs and server-sent events.

use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{Lines, Server, TOKEN, half_a_request};

/// Prints its event; fails when it is negative.
const CODE: &str = "def handler(event, context):\n    \
        print('n', event)\n    \
        if event < 0: raise ValueError('negative')\n    \
        return event\n";

#[tokio::test]
async fn followed_logs_come_while_the_call_still_runs() {
    let server = Server::start();
    let client = server.client();
    let code = "import os, time\nprint('imported')\n\
        def handler(event, context):\n    \
            if event == 'go':\n        open('/tmp/go', 'w').close()\n        return\n    \
            print('begins')\n    \
            deadline = time.time() + 15\n    \
            while not os.path.exists('/tmp/go') and time.time() < deadline: time.sleep(0.01)\n    \
            print('ends')\n";
    client.deploy("live", code, json!({})).await;
    let follow = client.request(Method::GET, "/api/v1/functions/live/logs?follow=true");
    let mut lines = Lines::open(follow).await;
    assert_eq!(
        lines.json().await["text"],
        "imported",
        "what is stored comes first"
    );
    let running = tokio::spawn({
        let client = client.clone();
        async move { client.invoke("live", &json!("wait")).await.expect(200) }
    });
    let begins = lines.json().await;
    assert_eq!(begins["text"], "begins");
    client.invoke("live", &json!("go")).await.expect(200);
    let ends = lines.json().await;
    assert_eq!(ends["text"], "ends");
    assert_eq!(begins["invocation"], ends["invocation"]);
    let answer = running.await.unwrap();
    assert_eq!(ends["invocation"], answer.header("x-hearth-invocation-id"));
    client.delete("/api/v1/functions/live").await.expect(204);
    assert_eq!(lines.next().await, None, "nothing more can come");
}

#[tokio::test]
async fn events_tell_of_invocations_and_statistics() {
    let server = Server::start();
    let client = server.client();
    client.deploy("busy", CODE, json!({})).await;
    let mut events =
        Lines::open(client.request(Method::GET, "/api/v1/functions/busy/events")).await;
    assert_eq!(events.response.status(), 200);
    let kind = events.response.headers()["content-type"].to_str().unwrap();
    assert!(kind.starts_with("text/event-stream"), "{kind}");
    let (name, first) = events.event().await.expect("an event");
    assert_eq!(name, "stats", "the present state comes at once");
    assert_eq!(
        first["histogram"],
        json!({"count": 0, "errors": 0, "buckets": []})
    );
    let id = client
        .invoke("busy", &json!(1))
        .await
        .header("x-hearth-invocation-id")
        .to_owned();
    client.invoke("busy", &json!(-1)).await.expect(502);
    let mut finished = Vec::new();
    let last = loop {
        let (name, data) = events.event().await.expect("the stream goes on");
        match name.as_str() {
            "invocation" => finished.push(data),
            "stats" if data["histogram"]["count"] == 2 => break data,
            "stats" => {}
            other => panic!("{other}: {data}"),
        }
    };
    assert_eq!(finished.len(), 2);
    assert_eq!(finished[0]["id"], id);
    assert_eq!(finished[0]["status"], "succeeded");
    assert_eq!(finished[0]["logs"], json!([]));
    assert_eq!(finished[1]["error"]["errorType"], "ValueError");
    assert_eq!(last["histogram"]["errors"], 1);
    let counted: u64 = last["histogram"]["buckets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bucket| bucket[1].as_u64().unwrap())
        .sum();
    assert_eq!(counted, 2);
    assert_eq!(last["stats"]["count"], 2);
    assert_eq!(last["stats"]["window_s"], 60);
    assert_eq!(last["instances"]["idle"], 1);
    assert_eq!(last["skipped"], 0);
    client.delete("/api/v1/functions/busy").await.expect(204);
    while let Some((name, _)) = events.event().await {
        assert_eq!(name, "stats", "the stream ends with its function");
    }
}

#[tokio::test]
async fn streams_end_when_the_server_stops_and_requests_that_come_late_are_told() {
    let mut server = Server::start();
    let client = server.client();
    client.deploy("busy", CODE, json!({})).await;
    client.invoke("busy", &json!(1)).await.expect(200);
    let path = "/api/v1/functions/busy/logs?follow=true";
    let mut lines = Lines::open(client.request(Method::GET, path)).await;
    lines.json().await;
    let path = "/api/v1/functions/busy/events";
    let mut events = Lines::open(client.request(Method::GET, path)).await;
    events.event().await.expect("the present state");
    // A request whose head was read before the server was stopped, and whose body comes after. The server asks for
    // the body when it has read the head, so that answer says when it may be stopped.
    let head = format!(
        "POST /api/v1/functions/busy/invoke HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Length: 1\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n"
    );
    let mut late = half_a_request(&server.url, head.as_bytes()).await;
    let mut go_on = [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
    late.read_exact(&mut go_on).await.expect("the server asks");
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    server.terminate();
    assert_eq!(lines.next().await, None);
    while events.event().await.is_some() {}
    late.write_all(b"1").await.expect("the connection is open");
    let mut answer = String::new();
    late.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("\"code\":\"shutting_down\""), "{answer}");
    assert!(server.wait().success());
}
