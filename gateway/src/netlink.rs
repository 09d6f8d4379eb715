//! Netlink: messages of attributes to the kernel, which has acted on them when sending returns.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType};

/// Flags of requests (`linux/netlink.h`).
pub(crate) const REQUEST: u16 = 0x1;
const ACK: u16 = 0x4;
pub(crate) const CREATE: u16 = 0x400;
pub(crate) const EXCLUSIVE: u16 = 0x200;
pub(crate) const APPEND: u16 = 0x800;
pub(crate) const DUMP: u16 = 0x300;

/// Message types of every protocol.
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// Flag of attributes that contain attributes.
const NESTED: u16 = 0x8000;
const HEADER: usize = 16;
/// Largest datagram to read. The kernel's are smaller, also in dumps.
const DATAGRAM: usize = 64 << 10;
/// Largest request: the policy of a sandbox with all its addresses.
const SEND_BUFFER: usize = 4 << 20;

/// An attribute of a message: its kind, which depends on what it is part of, and its value.
#[derive(Clone, Copy)]
pub(crate) enum Attribute<'a> {
    /// Bytes as they are.
    Bytes(u16, &'a [u8]),
    /// Adds a number in network byte order, as netfilter expects.
    U32(u16, u32),
    /// Adds a 64-bit number, likewise.
    U64(u16, u64),
    /// Adds a text with its final NUL.
    Text(u16, &'a str),
    /// Attributes within it.
    Nest(u16, &'a [Self]),
    /// Bytes among attributes that are none.
    Raw(&'a [u8]),
}

/// A message, or several in a row.
#[derive(Default)]
pub(crate) struct Messages {
    bytes: Vec<u8>,
    start: usize,
}

impl Messages {
    /// Starts a message with its type, flags and fixed header.
    pub(crate) fn begin(&mut self, kind: u16, flags: u16, fixed: &[u8]) -> &mut Self {
        self.start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes
            .extend_from_slice(&(flags | REQUEST).to_ne_bytes());
        self.bytes.extend_from_slice(&[0; 8]);
        self.raw(fixed);
        self
    }

    /// Adds attributes.
    pub(crate) fn put(&mut self, attributes: &[Attribute<'_>]) -> &mut Self {
        for attribute in attributes {
            match *attribute {
                Attribute::Bytes(kind, value) => self.attribute(kind, value),
                Attribute::U32(kind, value) => self.attribute(kind, &value.to_be_bytes()),
                Attribute::U64(kind, value) => self.attribute(kind, &value.to_be_bytes()),
                Attribute::Text(kind, text) => self.attribute(kind, format!("{text}\0").as_bytes()),
                Attribute::Nest(kind, inner) => self.nest(kind, |nested| {
                    nested.put(inner);
                }),
                Attribute::Raw(bytes) => self.raw(bytes),
            }
        }
        self
    }

    /// Adds an attribute that holds what `fill` adds.
    pub(crate) fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) {
        let at = self.bytes.len();
        self.attribute(kind | NESTED, &[]);
        fill(self);
        let length = (self.bytes.len() - at) as u16;
        self.bytes[at..at + 2].copy_from_slice(&length.to_ne_bytes());
    }

    fn attribute(&mut self, kind: u16, value: &[u8]) {
        let length = (value.len() + 4) as u16;
        self.bytes.extend_from_slice(&length.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.raw(value);
    }

    /// Adds bytes, pads them, and counts them to the message.
    fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let length = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(length, 0);
        let of_message = (length - self.start) as u32;
        self.bytes[self.start..self.start + 4].copy_from_slice(&of_message.to_ne_bytes());
    }
}

/// A netlink socket of the network namespace in which it was opened.
pub(crate) struct Netlink(OwnedFd);

impl Netlink {
    /// None means `NETLINK_ROUTE`.
    pub(crate) fn open(protocol: Option<Protocol>) -> io::Result<Self> {
        Self::open_in_groups(protocol, 0)
    }

    /// One that was opened elsewhere, non-blocking.
    pub(crate) fn by(socket: OwnedFd) -> Self {
        Self(socket)
    }

    /// One that also gets what the kernel reports to these groups.
    pub(crate) fn open_in_groups(protocol: Option<Protocol>, groups: u32) -> io::Result<Self> {
        let socket = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            protocol,
        )?;
        rustix::net::bind(&socket, &SocketAddrNetlink::new(0, groups))?;
        // Where it may not, small requests work all the same.
        let _ = rustix::net::sockopt::set_socket_send_buffer_size_force(&socket, SEND_BUFFER);
        Ok(Self(socket))
    }

    /// Sends one message, which the kernel acknowledges: its kind, further flags, what precedes its attributes, and these.
    pub(crate) fn request(
        &self,
        kind: u16,
        flags: u16,
        fixed: &[u8],
        attributes: &[Attribute<'_>],
    ) -> io::Result<()> {
        let mut messages = Messages::default();
        messages.begin(kind, flags | ACK, fixed).put(attributes);
        self.send(&messages)
    }

    /// Sends messages and returns once the kernel has acted on them.
    ///
    /// # Errors
    /// The first error that the kernel reported.
    pub(crate) fn send(&self, messages: &Messages) -> io::Result<()> {
        self.ask(messages, |_, _| {})
    }

    /// Sends messages and calls back with each answer: its type and what follows its header.
    pub(crate) fn ask(
        &self,
        messages: &Messages,
        mut answer: impl FnMut(u16, &[u8]),
    ) -> io::Result<()> {
        rustix::net::send(&self.0, &messages.bytes, SendFlags::empty())?;
        let mut result = Ok(());
        let mut datagram = vec![0; DATAGRAM];
        loop {
            // The kernel answers during the send and continues a dump during reads: what is missing now will not come.
            let length = match rustix::net::recv(&self.0, &mut datagram[..], RecvFlags::empty()) {
                Ok((length, _)) => length,
                Err(Errno::AGAIN) => return result,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno.into()),
            };
            let mut rest = &datagram[..length];
            while let Some((kind, body, next)) = split(rest) {
                rest = next;
                match (kind, body) {
                    (ERROR | DONE, &[a, b, c, d, ..]) => {
                        let errno = -i32::from_ne_bytes([a, b, c, d]);
                        if errno > 0 && result.is_ok() {
                            result = Err(io::Error::from_raw_os_error(errno));
                        }
                    }
                    _ => answer(kind, body),
                }
            }
        }
    }

    pub(crate) fn into_fd(self) -> OwnedFd {
        self.0
    }
}

impl AsFd for Netlink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The first message: its type, what follows its header, and the rest.
fn split(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let head: &[u8; HEADER] = bytes.first_chunk()?;
    let length = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]) as usize;
    let body = bytes.get(HEADER..length)?;
    let next = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    Some((u16::from_ne_bytes([head[4], head[5]]), body, next))
}

/// The value of an attribute among attributes, the kernel's or [nested](Messages::nest).
pub(crate) fn attribute(mut bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    while let [l0, l1, k0, k1, ..] = *bytes {
        let length = usize::from(u16::from_ne_bytes([l0, l1]));
        let value = bytes.get(4..length)?;
        if u16::from_ne_bytes([k0, k1]) & 0x3fff == wanted {
            return Some(value);
        }
        bytes = bytes.get(length.next_multiple_of(4)..)?;
    }
    None
}

/// A number in network byte order in such an attribute.
pub(crate) fn number(bytes: &[u8], wanted: u16) -> Option<u64> {
    let value: [u8; 8] = attribute(bytes, wanted)?.try_into().ok()?;
    Some(u64::from_be_bytes(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_laid_out_as_the_kernel_reads_them() {
        let mut messages = Messages::default();
        let inner = [
            Attribute::Bytes(2, &[1, 2, 3, 4, 5]),
            Attribute::Text(3, "abc"),
        ];
        messages
            .begin(7, ACK, &[9, 9, 9, 9])
            .put(&[Attribute::Nest(1, &inner)]);
        messages.begin(8, 0, &[]).put(&[Attribute::U32(4, 5)]);
        let (kind, body, rest) = split(&messages.bytes).unwrap();
        assert_eq!((kind, body.len()), (7, 4 + 4 + 12 + 8));
        let nested = attribute(&body[4..], 1).unwrap();
        assert_eq!(attribute(nested, 2), Some(&[1, 2, 3, 4, 5][..]));
        assert_eq!(attribute(nested, 3), Some(&b"abc\0"[..]));
        assert_eq!(attribute(nested, 4), None);
        let (kind, body, rest) = split(rest).unwrap();
        assert_eq!((kind, attribute(body, 4)), (8, Some(&[0, 0, 0, 5][..])));
        assert!(split(rest).is_none());
    }

    #[test]
    fn what_is_cut_short_is_passed_over() {
        let mut messages = Messages::default();
        messages.begin(7, 0, &[]).put(&[Attribute::U64(4, 5)]);
        for length in 0..messages.bytes.len() {
            assert!(split(&messages.bytes[..length]).is_none(), "{length}");
        }
        let (_, body, _) = split(&messages.bytes).unwrap();
        assert_eq!(number(body, 4), Some(5));
        for length in 0..body.len() {
            assert_eq!(number(&body[..length], 4), None);
        }
        assert_eq!(attribute(&[0; 64], 4), None, "a length of zero");
    }
}
