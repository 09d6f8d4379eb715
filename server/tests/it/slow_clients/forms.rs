//! Forms that are larger than any form of the console, from clients that have not authenticated.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{connect, innocent, peak, server};
use crate::support::{Browser, Server, TOKEN};

/// What is sent: far more than the server may gain.
const SENT: usize = 280 << 20;
/// What the server may gain by it: pieces that are under way, and what allocators keep.
const GAINED_KIB: u64 = 48 << 10;
/// The same where a text of 8 MiB is taken: it grows by doubling.
const TEXT_KIB: u64 = 128 << 10;
const PART: &str = "--b\r\ncontent-disposition: form-data; name=\"password\"\r\n\r\n";
const FILE: &str = "--b\r\ncontent-disposition: form-data; name=\"f\"; filename=\"a.zip\"\r\n\r\n";

/// Sends a form of 280 MiB in one field, as long as the server takes it; what it answered.
async fn flood(
    server: &Server,
    path: &str,
    headers: &str,
    part: &'static str,
    chunked: bool,
) -> String {
    let (mut reading, mut writing) = connect(server).await.into_split();
    let length = match chunked {
        true => "Transfer-Encoding: chunked".to_owned(),
        false => format!("Content-Length: {}", part.len() + SENT),
    };
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\
         Content-Type: multipart/form-data; boundary=b\r\n{length}\r\n\r\n"
    );
    let sender = tokio::spawn(async move {
        let piece = vec![b'x'; 1 << 20];
        writing.write_all(head.as_bytes()).await?;
        if chunked {
            let first = format!("{:x}\r\n{part}\r\n", part.len());
            writing.write_all(first.as_bytes()).await?;
        } else {
            writing.write_all(part.as_bytes()).await?;
        }
        for _ in 0..SENT / piece.len() {
            if chunked {
                writing.write_all(b"100000\r\n").await?;
            }
            writing.write_all(&piece).await?;
            if chunked {
                writing.write_all(b"\r\n").await?;
            }
        }
        Ok::<_, std::io::Error>(writing)
    });
    let mut said = Vec::new();
    let mut piece = [0; 4096];
    while !said.windows(4).any(|end| end == b"\r\n\r\n") {
        match reading.read(&mut piece).await {
            Ok(0) | Err(_) => break,
            Ok(read) => said.extend_from_slice(&piece[..read]),
        }
    }
    sender.abort();
    String::from_utf8_lossy(&said).into_owned()
}

#[tokio::test]
async fn a_huge_form_from_nobody_costs_nothing() {
    let (server, _client) = server("").await;
    innocent(&server).await;
    let before = peak(&server);
    for path in ["/login", "/setup"] {
        for chunked in [false, true] {
            let said = flood(&server, path, "", PART, chunked).await;
            assert!(said.starts_with("HTTP/1.1 413"), "{path}: {said}");
        }
    }
    let gained = peak(&server) - before;
    assert!(gained < GAINED_KIB, "{gained} KiB more");
    innocent(&server).await;
}

/// A session alone proves nothing: another site's page can have the browser send its cookie in some browsers.
#[tokio::test]
async fn nothing_large_is_read_before_the_sessions_token() {
    let (server, client) = server("").await;
    client.deploy("mine", super::ECHO, json!({})).await;
    let visitor = Browser::logged_in(&server, TOKEN).await;
    let before = peak(&server);
    let cookie = format!("Cookie: {}\r\n", visitor.cookie);
    for path in ["/functions/mine/code", "/new", "/account/password"] {
        for chunked in [false, true] {
            let said = flood(&server, path, &cookie, PART, chunked).await;
            let refused = said.starts_with("HTTP/1.1 403") || said.starts_with("HTTP/1.1 413");
            assert!(refused, "{path}: {said}");
        }
    }
    let gained = peak(&server) - before;
    assert!(gained < GAINED_KIB, "{gained} KiB more");
}

/// Of those who may submit them, the forms take what they need and no more.
#[tokio::test]
async fn forms_for_settings_events_and_code_have_limits_of_their_own() {
    let (server, client) = server("").await;
    client.deploy("mine", super::ECHO, json!({})).await;
    let visitor = Browser::logged_in(&server, TOKEN).await;
    let session = format!(
        "Cookie: {}\r\nX-CSRF-Token: {}\r\n",
        visitor.cookie, visitor.csrf
    );
    let before = peak(&server);
    for path in [
        "/functions/mine/settings",
        "/functions/mine/events",
        "/functions/mine/code",
    ] {
        for part in [PART, FILE] {
            for chunked in [false, true] {
                let said = flood(&server, path, &session, part, chunked).await;
                assert!(said.starts_with("HTTP/1.1 413"), "{path}: {said}");
            }
        }
    }
    let gained = peak(&server) - before;
    assert!(gained < TEXT_KIB, "{gained} KiB more");
    // What fits is looked at.
    for (path, field, bytes) in [
        ("/functions/mine/settings", "env_value", 60 << 10),
        ("/functions/mine/events", "event", 6 << 20),
        ("/functions/mine/code", "code", 7 << 20),
    ] {
        let value = "x".repeat(bytes);
        let answer = visitor.submit(path, &[(field, &value)]).await;
        assert_eq!(answer.status, 422, "{path}: {}", answer.text());
    }
    innocent(&server).await;
}
