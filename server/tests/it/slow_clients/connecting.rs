//! Connections without a request: silent ones, heads that never end, more of them than there is room for.

use std::time::Duration;

use tokio::io::AsyncReadExt;

use super::{TIMEOUT, connect, descriptors, drip, everything_is_free, innocent, server};
use crate::support::{Server, TOKEN, eventually, exchange};

/// The issue's own case: 261 silent connections, and descriptors for 300.
#[tokio::test]
async fn silent_connections_stop_nobody_when_descriptors_are_few() {
    let server = Server::start_with_open_files(300);
    let mut silent = Vec::new();
    for _ in 0..261 {
        silent.push(connect(&server).await);
    }
    for _ in 0..20 {
        server.client().get("/healthz").await.expect(200);
    }
    assert!(descriptors(&server) < 300 - 64, "the engine keeps its own");
    let client = server.client();
    client
        .deploy("echo", super::ECHO, serde_json::json!({}))
        .await;
    client
        .invoke("echo", &serde_json::json!(1))
        .await
        .expect(200);
}

#[tokio::test]
async fn connections_without_a_request_are_closed() {
    let (server, client) = server("head_time=400,idle_time=400").await;
    let before = descriptors(&server);
    let beginnings = [
        "",
        "G",
        "GET /healthz HT",
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: ",
        "POST /login HTTP/1.1\r\nHost: localhost\r\n",
        // Between two requests.
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /he",
    ];
    let mut all = tokio::task::JoinSet::new();
    for beginning in beginnings {
        let mut stream = connect(&server).await;
        all.spawn(async move {
            use tokio::io::AsyncWriteExt;
            stream
                .write_all(beginning.as_bytes())
                .await
                .expect("it reads");
            let mut said = Vec::new();
            let ended = tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut said)).await;
            let _ = ended.unwrap_or_else(|_| panic!("{beginning:?} is kept"));
            let said = String::from_utf8_lossy(&said);
            // A client that began a request gets an answer; others do not.
            let begun = !beginning.is_empty() && !beginning.contains("\r\n\r\n");
            assert_eq!(
                said.starts_with("HTTP/1.1 408 ") && said.contains("\"request_timeout\""),
                begun,
                "{beginning:?}: {said}"
            );
            assert!(begun || !said.contains("HTTP/1.1 408"), "{said}");
        });
        // A byte now and then renews nothing.
        if !beginning.is_empty() && !beginning.ends_with("\r\n\r\n") {
            let stream = connect(&server).await;
            all.spawn(async move {
                let pause = Duration::from_millis(50);
                drip(stream, beginning.into(), b"a", pause).await;
            });
        }
    }
    innocent(&server).await;
    while let Some(ended) = all.join_next().await {
        ended.expect("ended by the server");
    }
    everything_is_free(&server, &client, before).await;
}

#[tokio::test]
async fn an_endless_head_is_cut() {
    let (server, _client) = server("").await;
    let line = format!("X-More: {}\r\n", "y".repeat(8000));
    let lines: &'static str = Box::leak(line.into_boxed_str());
    let begin =
        format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n");
    let stream = connect(&server).await;
    let pause = Duration::from_millis(1);
    let said = drip(stream, begin.clone().into(), lines.as_bytes(), pause).await;
    // Whoever is still sending may see no more than the end.
    assert!(
        said.is_empty() || said.starts_with("HTTP/1.1 431 "),
        "{said}"
    );
    // Of too many bytes, and of too many lines.
    let long = format!("{begin}X-Long: ");
    let long = format!("{long}{}", "y".repeat((64 << 10) - long.len()));
    let lines = format!("{begin}{}\r\n", "X-More: y\r\n".repeat(150));
    for head in [long, lines] {
        let answer = exchange(&server.url, head.as_bytes()).await;
        assert_eq!(answer.status, 431, "{answer:?}");
    }
    innocent(&server).await;
}

/// The next request on a connection gets the same answer, after the whole answer to the one before.
#[tokio::test]
async fn a_head_that_does_not_end_is_told_after_the_answer_before_it() {
    use tokio::io::AsyncWriteExt;
    let (server, _client) = server("head_time=400").await;
    let mut stream = connect(&server).await;
    let request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(request).await.expect("it reads");
    let mut said = vec![0; 4096];
    let first = stream.read(&mut said).await.expect("an answer");
    said.truncate(first);
    stream.write_all(b"GET /hea").await.expect("it reads");
    let ended = tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut said)).await;
    ended.expect("closed").expect("in order");
    let said = String::from_utf8_lossy(&said);
    let answers: Vec<_> = said.match_indices("HTTP/1.1 ").collect();
    assert_eq!(answers.len(), 2, "{said}");
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
    assert!(said[answers[1].0..].starts_with("HTTP/1.1 408 "), "{said}");
}

#[tokio::test]
async fn the_oldest_idle_connection_makes_room_and_busy_ones_stay() {
    let (server, client) = server("connections=12,connections_of_one=12").await;
    let code = "import time\ndef handler(event, context):\n    time.sleep(2)\n    return 'done'\n";
    client.deploy("slow", code, serde_json::json!({})).await;
    let busy = tokio::spawn({
        let client = server.client();
        async move { client.invoke("slow", &serde_json::json!(0)).await }
    });
    eventually("the call runs", TIMEOUT, || async {
        let function = client.get("/api/v1/functions/slow").await.json();
        (function["instances"]["busy"] == 1).then_some(())
    })
    .await;
    let mut silent = Vec::new();
    for _ in 0..40 {
        silent.push(connect(&server).await);
        if silent.len() % 10 == 0 {
            server.client().get("/healthz").await.expect(200);
        }
    }
    assert_eq!(busy.await.expect("no panic").expect(200).json(), "done");
}
