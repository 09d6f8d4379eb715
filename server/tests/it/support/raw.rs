//! HTTP by hand, for what a proper client refuses to send.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long a server may take to answer before a test fails: generous, it asserts nothing.
const TIMEOUT: Duration = Duration::from_secs(20);

/// What came back, taken apart just enough to look at it.
#[derive(Debug)]
pub struct RawAnswer {
    /// HTTP status; 0 when the connection was closed without an answer.
    pub status: u16,
    /// Status line and headers.
    pub head: String,
    /// What followed, still chunked if it was.
    pub body: Vec<u8>,
}

impl RawAnswer {
    /// Checks that it is the problem with this status and code.
    #[track_caller]
    pub fn problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        let problem: Value = serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("not JSON ({error}): {self:?}"));
        assert_eq!(problem["code"], code, "{problem}");
        problem
    }
}

/// Connects and sends the beginning of a request; the connection stays open until it is dropped.
pub async fn half_a_request(url: &str, bytes: &[u8]) -> TcpStream {
    let address = url.strip_prefix("http://").expect("an http address");
    let mut stream = TcpStream::connect(address).await.expect("the server");
    stream.write_all(bytes).await.expect("the server reads");
    stream
}

/// Sends these bytes and reads until the server closes, or until an answer with a Content-Length is whole.
pub async fn exchange(url: &str, bytes: &[u8]) -> RawAnswer {
    let address = url.strip_prefix("http://").expect("an http address");
    let mut stream = TcpStream::connect(address).await.expect("the server");
    // A server that refuses early may close while we still write: what it said counts.
    let _ = stream.write_all(bytes).await;
    let mut all = Vec::new();
    let read = tokio::time::timeout(TIMEOUT, async {
        let mut buffer = [0; 8192];
        while !is_whole(&all) {
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(count) => all.extend_from_slice(&buffer[..count]),
            }
        }
    });
    read.await.expect("an answer or the end of the connection");
    let at = head_end(&all).unwrap_or(all.len());
    let head = String::from_utf8_lossy(&all[..at]).into_owned();
    RawAnswer {
        status: head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .unwrap_or(0),
        head,
        body: all[at..].to_vec(),
    }
}

fn head_end(bytes: &[u8]) -> Option<usize> {
    let blank_line = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some(blank_line + 4)
}

fn is_whole(bytes: &[u8]) -> bool {
    let Some(at) = head_end(bytes) else {
        return false;
    };
    let head = String::from_utf8_lossy(&bytes[..at]).to_ascii_lowercase();
    head.split("\r\n")
        .filter_map(|line| line.strip_prefix("content-length:"))
        .filter_map(|length| length.trim().parse::<usize>().ok())
        .any(|length| bytes.len() >= at + length)
}
