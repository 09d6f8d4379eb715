//! Reads an HTTP/1.1 answer as it comes, and keeps of it what a sample has.

use httparse::Status;

/// Longest head of an answer; one that is longer is refused.
const HEAD_MAX: usize = 64 << 10;

/// Most headers of an answer.
const HEADERS_MAX: usize = 100;

/// Longest line of a chunk's size with its extensions, or of the trailers.
const LINE_MAX: usize = 8 << 10;

/// The answer is not HTTP/1.1, or beyond a limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// How far an answer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    /// So many bytes of the body are to come.
    Length(u64),
    /// Up to the end of the connection.
    UntilClosed,
    /// In a chunk's first line: its size so far, how long the line is, and whether its digits are over.
    ChunkSize {
        size: u64,
        line: usize,
        over: bool,
    },
    /// So many bytes of the chunk are to come.
    ChunkData(u64),
    /// In the line break after a chunk.
    ChunkEnd,
    /// In the trailers: how long the line is, and all of them.
    Trailers {
        line: usize,
        all: usize,
    },
    Whole,
}

/// An answer as far as it has come.
#[derive(Debug)]
pub(super) struct Response {
    state: State,
    /// A head that came in parts.
    head: Vec<u8>,
    pub(super) status: u16,
    /// Whether another request may be sent on the connection.
    pub(super) is_kept: bool,
    /// Bytes of the body.
    pub(super) bytes: u64,
    /// The first of them.
    pub(super) captured: Vec<u8>,
    capture: usize,
}

impl Response {
    /// One that keeps so many bytes of its body.
    pub(super) fn new(capture: usize) -> Self {
        Self {
            state: State::Head,
            head: Vec::new(),
            status: 0,
            is_kept: true,
            bytes: 0,
            captured: Vec::new(),
            capture,
        }
    }

    /// For the next answer on the same connection.
    pub(super) fn reset(&mut self) {
        self.state = State::Head;
        self.head.clear();
        self.status = 0;
        self.is_kept = true;
        self.bytes = 0;
        self.captured.clear();
    }

    pub(super) fn is_whole(&self) -> bool {
        self.state == State::Whole
    }

    /// Takes what was read. Anything after the answer's end is malformed: nothing else was asked for.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> Result<(), Malformed> {
        while !bytes.is_empty() {
            let used = match self.state {
                State::Whole => return Err(Malformed),
                State::Head => self.feed_head(bytes)?,
                _ => self.feed_body(bytes)?,
            };
            bytes = &bytes[used..];
        }
        Ok(())
    }

    /// The connection has ended. Whether that makes the answer whole.
    pub(super) fn close(&mut self) -> bool {
        if self.state == State::UntilClosed {
            self.state = State::Whole;
        }
        self.is_kept = false;
        self.is_whole()
    }

    fn feed_head(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        if self.head.is_empty() {
            if let Some(length) = self.parse(bytes)? {
                return Ok(length);
            }
            self.head.extend_from_slice(bytes);
            return self.bounded(bytes.len());
        }
        let before = self.head.len();
        self.head.extend_from_slice(bytes);
        let head = std::mem::take(&mut self.head);
        let parsed = self.parse(&head)?;
        self.head = head;
        match parsed {
            None => self.bounded(bytes.len()),
            Some(length) => {
                self.head.clear();
                Ok(length - before)
            }
        }
    }

    fn bounded(&self, used: usize) -> Result<usize, Malformed> {
        if self.head.len() > HEAD_MAX {
            return Err(Malformed);
        }
        Ok(used)
    }

    /// The head's length, once it is whole. An interim answer is passed over.
    fn parse(&mut self, bytes: &[u8]) -> Result<Option<usize>, Malformed> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut head = httparse::Response::new(&mut headers);
        let length = match head.parse(bytes) {
            Ok(Status::Complete(length)) => length,
            Ok(Status::Partial) => return Ok(None),
            Err(_) => return Err(Malformed),
        };
        let status = head.code.ok_or(Malformed)?;
        if (100..200).contains(&status) {
            // Nothing is switched to, because nothing asks for it.
            return if status == 101 {
                Err(Malformed)
            } else {
                Ok(Some(length))
            };
        }
        self.status = status;
        self.is_kept = head.version == Some(1);
        let mut body = None;
        let mut is_chunked = false;
        for header in head.headers.iter() {
            if header.name.eq_ignore_ascii_case("content-length") {
                let text = std::str::from_utf8(header.value).map_err(|_| Malformed)?;
                let length = text.trim().parse().map_err(|_| Malformed)?;
                if body
                    .replace(length)
                    .is_some_and(|other: u64| other != length)
                {
                    return Err(Malformed);
                }
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                is_chunked = header.value.eq_ignore_ascii_case(b"chunked");
                if !is_chunked {
                    return Err(Malformed);
                }
            } else if header.name.eq_ignore_ascii_case("connection") {
                let has = |token: &[u8]| {
                    let mut tokens = header.value.split(|byte| *byte == b',');
                    tokens.any(|one| one.trim_ascii().eq_ignore_ascii_case(token))
                };
                self.is_kept = !has(b"close") && (self.is_kept || has(b"keep-alive"));
            }
        }
        self.state = match body {
            _ if status == 204 || status == 304 => State::Whole,
            _ if is_chunked => State::ChunkSize {
                size: 0,
                line: 0,
                over: false,
            },
            Some(0) => State::Whole,
            Some(length) => State::Length(length),
            None => {
                self.is_kept = false;
                State::UntilClosed
            }
        };
        Ok(Some(length))
    }

    /// How much it took.
    fn feed_body(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        match self.state {
            State::UntilClosed => self.keep(bytes, u64::MAX),
            State::Length(left) => {
                let used = self.keep(bytes, left)?;
                let left = left - used as u64;
                self.state = if left == 0 {
                    State::Whole
                } else {
                    State::Length(left)
                };
                Ok(used)
            }
            State::ChunkData(left) => {
                let used = self.keep(bytes, left)?;
                let left = left - used as u64;
                self.state = if left == 0 {
                    State::ChunkEnd
                } else {
                    State::ChunkData(left)
                };
                Ok(used)
            }
            _ => self.feed_line(bytes[0]).map(|()| 1),
        }
    }

    /// Counts and captures at most `left` bytes.
    fn keep(&mut self, bytes: &[u8], left: u64) -> Result<usize, Malformed> {
        let used = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let room = self.capture - self.captured.len();
        self.captured.extend_from_slice(&bytes[..used.min(room)]);
        self.bytes = self.bytes.checked_add(used as u64).ok_or(Malformed)?;
        Ok(used)
    }

    /// A byte of the lines around chunks (RFC 9112, 7.1).
    fn feed_line(&mut self, byte: u8) -> Result<(), Malformed> {
        self.state = match self.state {
            State::ChunkSize { size, line, .. } if byte == b'\n' => match (line, size) {
                // A line without a digit.
                (0, _) => return Err(Malformed),
                (_, 0) => State::Trailers { line: 0, all: 0 },
                (_, size) => State::ChunkData(size),
            },
            State::ChunkSize { line, .. } if line > LINE_MAX => return Err(Malformed),
            State::ChunkSize {
                size,
                line,
                over: false,
            } if byte.is_ascii_hexdigit() => {
                let digit = (byte as char).to_digit(16).ok_or(Malformed)?;
                let size = size.checked_mul(16).ok_or(Malformed)?;
                State::ChunkSize {
                    size: size + u64::from(digit),
                    line: line + 1,
                    over: false,
                }
            }
            State::ChunkSize { size, line, over } => {
                let may_follow = over || (line > 0 && b"; \t\r".contains(&byte));
                if !may_follow {
                    return Err(Malformed);
                }
                State::ChunkSize {
                    size,
                    line: line + 1,
                    over: true,
                }
            }
            State::ChunkEnd => match byte {
                b'\r' => State::ChunkEnd,
                b'\n' => State::ChunkSize {
                    size: 0,
                    line: 0,
                    over: false,
                },
                _ => return Err(Malformed),
            },
            State::Trailers { line: 0, .. } if byte == b'\n' => State::Whole,
            State::Trailers { all, .. } if all > LINE_MAX => return Err(Malformed),
            State::Trailers { all, .. } if byte == b'\n' => State::Trailers {
                line: 0,
                all: all + 1,
            },
            State::Trailers { line, all } => State::Trailers {
                line: line + usize::from(byte != b'\r'),
                all: all + 1,
            },
            other => other,
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests;
