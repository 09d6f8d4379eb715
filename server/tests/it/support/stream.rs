//! Answers that come bit by bit.

use std::time::Duration;

use reqwest::{RequestBuilder, Response};
use serde_json::Value;

/// How long one line may take before a test fails: generous, it asserts nothing.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A streamed text answer, line by line. Dropping it hangs up.
pub struct Lines {
    /// Status and headers.
    pub response: Response,
    buffer: Vec<u8>,
}

impl Lines {
    /// Sends a request and returns when its head was answered.
    pub async fn open(request: RequestBuilder) -> Self {
        let response = request.send().await.expect("the server answers");
        Self {
            response,
            buffer: Vec::new(),
        }
    }

    /// The next line without its end; `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(at) = self.buffer.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=at).collect();
                return Some(String::from_utf8_lossy(&line[..at]).into_owned());
            }
            let chunk = tokio::time::timeout(TIMEOUT, self.response.chunk())
                .await
                .expect("a line in time")
                .expect("the stream is whole");
            match chunk {
                Some(chunk) => self.buffer.extend_from_slice(&chunk),
                None => return None,
            }
        }
    }

    /// The next line of an NDJSON stream.
    pub async fn json(&mut self) -> Value {
        let line = self.next().await.expect("one more line");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("not JSON ({error}): {line}"))
    }

    /// The next server-sent event: its name and its data. Comments are passed over.
    pub async fn event(&mut self) -> Option<(String, Value)> {
        let (mut name, mut data) = (String::new(), String::new());
        loop {
            let line = self.next().await?;
            match line.split_once(':') {
                Some(("event", text)) => name = text.trim().to_owned(),
                Some(("data", text)) => data.push_str(text.trim()),
                None if line.is_empty() && !data.is_empty() => {
                    let data = serde_json::from_str(&data)
                        .unwrap_or_else(|error| panic!("not JSON ({error}): {data}"));
                    return Some((name, data));
                }
                _ => {}
            }
        }
    }
}
