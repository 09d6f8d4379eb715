//! The messages of the control socket and the ready socket that no language makes itself: pure functions over bytes.

use std::fmt::Write;

/// Bytes of a START message: its tag and a sequence number.
pub const START_BYTES: usize = 9;

/// What the server sends over the ready socket when it wants the instance: before START for a start, later for a
/// pre-forked instance.
pub const GO: u8 = b'G';

/// What a pre-forked instance says over the ready socket once it has prepared, before it waits for [`GO`].
pub const WAITING: u8 = b'W';

const FORK_TAG: u8 = b'F';
const BECOME_TAG: u8 = b'B';
const READY_TAG: u8 = b'R';

/// How a template is to start an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Start an instance by a fork: FORK.
    Fork,
    /// Start it by becoming it, with all threads: BECOME. The process is no template from then on.
    Become,
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It called `exit`.
    Code(i32),
    /// A signal killed it.
    Signal(i32),
}

/// The kind and the sequence number of a START message, or nothing if it is not one.
#[must_use]
pub fn parse_start(message: &[u8]) -> Option<(Way, u64)> {
    let [tag, number @ ..] = *<&[u8; START_BYTES]>::try_from(message).ok()?;
    let way = match tag {
        FORK_TAG => Way::Fork,
        BECOME_TAG => Way::Become,
        _ => return None,
    };
    Some((way, u64::from_le_bytes(number)))
}

/// The bytes of a START message.
#[must_use]
pub fn start(way: Way, sequence: u64) -> [u8; START_BYTES] {
    let tag = match way {
        Way::Fork => FORK_TAG,
        Way::Become => BECOME_TAG,
    };
    let mut message = [tag; START_BYTES];
    message[1..].copy_from_slice(&sequence.to_le_bytes());
    message
}

/// What an instance sends when it can take a request: its process id as it sees it.
#[must_use]
pub fn ready(pid: u32) -> [u8; 5] {
    let [a, b, c, d] = pid.to_le_bytes();
    [READY_TAG, a, b, c, d]
}

/// Reports that a child exited.
#[must_use]
pub fn exited(pid: u32, end: End) -> String {
    match end {
        End::Code(code) => format!(r#"{{"type":"exited","pid":{pid},"code":{code}}}"#),
        End::Signal(signal) => format!(r#"{{"type":"exited","pid":{pid},"signal":{signal}}}"#),
    }
}

/// Reports that a START message created no instance, with the errno if there is one.
#[must_use]
pub fn fork_failed(sequence: u64, reason: &str, errno: Option<i32>) -> String {
    let reason = escaped(reason);
    let errno = errno.map_or("null".to_owned(), |errno| errno.to_string());
    format!(r#"{{"type":"fork_failed","seq":{sequence},"message":"{reason}","errno":{errno}}}"#)
}

/// `text` as the inside of a JSON string.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if u32::from(c) < 0x20 => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// Bytes of an id's text.
pub const ID_TEXT_BYTES: usize = 36;

/// The invocation's UUID as text, written into `text`.
#[must_use]
pub fn id_text<'a>(id: &[u8; 16], text: &'a mut [u8; ID_TEXT_BYTES]) -> &'a str {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut at = 0;
    for (index, byte) in id.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text[at] = b'-';
            at += 1;
        }
        text[at] = HEX[usize::from(byte >> 4)];
        text[at + 1] = HEX[usize::from(byte & 15)];
        at += 2;
    }
    // Nothing but ASCII was written.
    std::str::from_utf8(text).unwrap_or_default()
}
