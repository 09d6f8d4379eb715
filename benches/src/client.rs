//! A minimal HTTP client: one keep-alive socket, requests prepared in advance. It shares the machine with the server it
//! measures.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::bail;

/// The token that benchmarks give to a server.
pub const TOKEN: &str = "hth_benchmark_token_0123456789";

/// Room for an answer at first; more is made where it is not enough.
const ROOM: usize = 64 * 1024;

/// One connection that is kept alive.
pub struct Connection {
    /// The socket.
    pub stream: TcpStream,
    /// How much of the request is sent.
    sent: usize,
    /// What has come of the answer, and room for more.
    buffer: Vec<u8>,
    filled: usize,
    /// Where the answer's body begins and how long it is, once its head is there.
    body: Option<(usize, Extent)>,
}

/// An answer, in the connection's buffer.
pub struct Answer<'a> {
    /// HTTP status.
    pub status: u16,
    /// Head as it came.
    pub head: &'a str,
    /// The body.
    pub body: &'a [u8],
}

impl Answer<'_> {
    /// A header's value; `name` in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(self.head, name)
    }

    /// Fails unless the status is a good one.
    pub fn good(&self) -> anyhow::Result<()> {
        if (200..300).contains(&self.status) {
            return Ok(());
        }
        bail!("{} {}", self.status, String::from_utf8_lossy(self.body));
    }

    /// The body as JSON; null where the status says that there is none.
    pub fn json(&self) -> anyhow::Result<serde_json::Value> {
        self.good()?;
        if self.status == 204 {
            return Ok(serde_json::Value::Null);
        }
        Ok(serde_json::from_slice(self.body)?)
    }
}

impl Connection {
    /// Connects.
    pub fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            sent: 0,
            // What is here now is not cleared again for each answer.
            buffer: vec![0; ROOM],
            filled: 0,
            body: None,
        })
    }

    /// Sends a request that was put together before and reads the answer whole.
    pub fn exchange(&mut self, request: &[u8]) -> anyhow::Result<Answer<'_>> {
        self.begin(request)?;
        while !self.go_on(request)? {}
        self.answer()
    }

    /// Begins an exchange: sends what can be sent of the request without waiting, or, on a socket that blocks, all of it.
    pub fn begin(&mut self, request: &[u8]) -> anyhow::Result<()> {
        self.sent = 0;
        self.filled = 0;
        self.body = None;
        self.send(request)
    }

    /// Goes on with it as far as it goes without waiting, or to its end. True when the answer is whole.
    pub fn go_on(&mut self, request: &[u8]) -> anyhow::Result<bool> {
        self.send(request)?;
        loop {
            if self.is_whole()? {
                return Ok(true);
            }
            if self.filled == self.buffer.len() {
                self.buffer.resize(self.filled * 2, 0);
            }
            match self.stream.read(&mut self.buffer[self.filled..]) {
                Ok(0) => bail!("the server closed the connection"),
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error.into()),
            }
            if self.body.is_none() {
                self.body = head_end(&self.buffer[..self.filled])?;
            }
        }
    }

    fn send(&mut self, request: &[u8]) -> anyhow::Result<()> {
        while self.sent < request.len() {
            match self.stream.write(&request[self.sent..]) {
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Whether the answer is whole. A body in chunks is put together then.
    fn is_whole(&mut self) -> anyhow::Result<bool> {
        match self.body {
            None => Ok(false),
            Some((start, Extent::Bytes(length))) => Ok(self.filled >= start + length),
            Some((start, Extent::Chunks)) => {
                let Some(body) = joined(&self.buffer[start..self.filled])? else {
                    return Ok(false);
                };
                self.filled = start + body.len();
                self.buffer[start..self.filled].copy_from_slice(&body);
                self.body = Some((start, Extent::Bytes(body.len())));
                Ok(true)
            }
        }
    }

    /// The answer, when it is whole.
    pub fn answer(&self) -> anyhow::Result<Answer<'_>> {
        let start = self.body.map_or(0, |(start, _)| start);
        parse(&self.buffer[..self.filled], start)
    }
}

/// How long a body is.
#[derive(Clone, Copy)]
enum Extent {
    Bytes(usize),
    Chunks,
}

/// A body in chunks (RFC 9112, 7.1) without them; none until it is whole.
fn joined(mut bytes: &[u8]) -> anyhow::Result<Option<Vec<u8>>> {
    let mut body = Vec::new();
    loop {
        let Some(end) = bytes.windows(2).position(|window| window == b"\r\n") else {
            return Ok(None);
        };
        let length = usize::from_str_radix(std::str::from_utf8(&bytes[..end])?, 16)?;
        let Some((chunk, rest)) = bytes[end + 2..].split_at_checked(length + 2) else {
            return Ok(None);
        };
        if length == 0 {
            return Ok(Some(body));
        }
        body.extend_from_slice(&chunk[..length]);
        bytes = rest;
    }
}

/// Where the body begins and how long it is, once the head is complete.
fn head_end(bytes: &[u8]) -> anyhow::Result<Option<(usize, Extent)>> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(&bytes[..end])?;
    let length = match header(head, "content-length") {
        Some(length) => Extent::Bytes(length.parse()?),
        // 204 has no body.
        None if head.split(' ').nth(1) == Some("204") => Extent::Bytes(0),
        None if header(head, "transfer-encoding") == Some("chunked") => Extent::Chunks,
        None => bail!("an answer without content-length: {head}"),
    };
    Ok(Some((end + 4, length)))
}

/// An answer that is complete.
fn parse(bytes: &[u8], start: usize) -> anyhow::Result<Answer<'_>> {
    let (head, body) = bytes.split_at(start);
    let head = std::str::from_utf8(head)?;
    let status = head.split(' ').nth(1).unwrap_or_default().parse()?;
    Ok(Answer { status, head, body })
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// A request as bytes.
pub fn request(method: &str, path: &str, body: &[u8]) -> Vec<u8> {
    request_of(method, path, "application/json", body)
}

/// The same with a body of another media type.
pub fn request_of(method: &str, path: &str, media_type: &str, body: &[u8]) -> Vec<u8> {
    let mut request = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
         content-type: {media_type}\r\ncontent-length: {}\r\n\r\n",
        TOKEN,
        body.len()
    )
    .into_bytes();
    request.extend_from_slice(body);
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_joined_once_all_are_there() {
        let whole = b"3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n";
        for end in 0..whole.len() {
            assert_eq!(joined(&whole[..end]).expect("chunks"), None, "{end}");
        }
        let body = joined(whole).expect("chunks").expect("whole");
        assert_eq!(body, b"abc0123456789");
        assert!(joined(b"x\r\n").is_err());
    }
}
