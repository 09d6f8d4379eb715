//! The leanest HTTP client that does: a blocking socket, kept alive, requests put together before. It shares the machine
//! with what it measures.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::bail;

/// Room that is made for an answer at a time.
const ROOM: usize = 64 * 1024;

/// One connection that is kept alive.
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
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

    /// The body as JSON.
    pub fn json(&self) -> anyhow::Result<serde_json::Value> {
        self.good()?;
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
            buffer: Vec::with_capacity(ROOM),
        })
    }

    /// Sends a request that was put together before and reads the answer whole.
    pub fn exchange(&mut self, request: &[u8]) -> anyhow::Result<Answer<'_>> {
        self.stream.write_all(request)?;
        self.buffer.clear();
        let (start, length) = loop {
            self.read_some()?;
            if let Some(found) = head_end(&self.buffer)? {
                break found;
            }
        };
        while self.buffer.len() < start + length {
            self.read_some()?;
        }
        parse(&self.buffer, start)
    }

    fn read_some(&mut self) -> anyhow::Result<()> {
        let filled = self.buffer.len();
        self.buffer.resize(filled + ROOM, 0);
        let read = self.stream.read(&mut self.buffer[filled..]);
        self.buffer.truncate(filled + *read.as_ref().unwrap_or(&0));
        if read? == 0 {
            bail!("the server closed the connection");
        }
        Ok(())
    }
}

/// Where the body begins and how long it is, once the head is complete.
pub fn head_end(bytes: &[u8]) -> anyhow::Result<Option<(usize, usize)>> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(&bytes[..end])?;
    let length = match header(head, "content-length") {
        Some(length) => length.parse()?,
        // 204 has no body.
        None if head.split(' ').nth(1) == Some("204") => 0,
        None => bail!("an answer without content-length: {head}"),
    };
    Ok(Some((end + 4, length)))
}

/// An answer that is complete.
pub fn parse(bytes: &[u8], start: usize) -> anyhow::Result<Answer<'_>> {
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
        "{method} {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {}\r\n\
         content-type: {media_type}\r\ncontent-length: {}\r\n\r\n",
        crate::server::TOKEN,
        body.len()
    )
    .into_bytes();
    request.extend_from_slice(body);
    request
}
