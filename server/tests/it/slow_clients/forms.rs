//! Forms that are larger than any form of the console, from people who have proven nothing.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{connect, innocent, server};
use crate::support::{Browser, Server, TOKEN};

/// What is sent: far more than the server may gain.
const SENT: usize = 280 << 20;
/// What the server may gain by it: pieces that are under way, and what allocators keep.
const GAINED_KIB: u64 = 48 << 10;
const PART: &str = "--b\r\ncontent-disposition: form-data; name=\"password\"\r\n\r\n";

/// The most memory that the server had so far, in KiB.
fn peak(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.expect("VmHWM").parse().expect("a number")
}

/// Sends a form of 280 MiB in one field, as long as the server takes it; what it answered.
async fn flood(server: &Server, path: &str, headers: &str, chunked: bool) -> String {
    let (mut reading, mut writing) = connect(server).await.into_split();
    let length = match chunked {
        true => "Transfer-Encoding: chunked".to_owned(),
        false => format!("Content-Length: {}", PART.len() + SENT),
    };
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\
         Content-Type: multipart/form-data; boundary=b\r\n{length}\r\n\r\n"
    );
    let sender = tokio::spawn(async move {
        let piece = vec![b'x'; 1 << 20];
        writing.write_all(head.as_bytes()).await?;
        if chunked {
            let part = format!("{:x}\r\n{PART}\r\n", PART.len());
            writing.write_all(part.as_bytes()).await?;
        } else {
            writing.write_all(PART.as_bytes()).await?;
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
            let said = flood(&server, path, "", chunked).await;
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
            let said = flood(&server, path, &cookie, chunked).await;
            let refused = said.starts_with("HTTP/1.1 403") || said.starts_with("HTTP/1.1 413");
            assert!(refused, "{path}: {said}");
        }
    }
    let gained = peak(&server) - before;
    assert!(gained < GAINED_KIB, "{gained} KiB more");
}
