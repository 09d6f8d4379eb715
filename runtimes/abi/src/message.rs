//! The payloads that have a binary shape of their own. All others are JSON or raw bytes.

use core::str;

/// Longest `traceparent` text that travels, in bytes; the one of W3C's version 00 has 55. It keeps a request's head
/// small enough for one frame of the smallest ring.
pub const MAX_TRACEPARENT_BYTES: usize = 512;

/// Bytes of a [`RequestHead`].
pub const REQUEST_HEAD_BYTES: usize = 16;

/// A request head could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// Fewer bytes than a head has, or more than head and `traceparent` can have.
    #[error("a request head of {0} bytes")]
    Length(usize),
    /// A trigger that this version does not know.
    #[error("unknown trigger {0}")]
    UnknownTrigger(u16),
    /// The `traceparent` is not text.
    #[error("the traceparent is not UTF-8")]
    TraceParent,
}

/// What caused an invocation.
#[repr(u16)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// The API's synchronous invoke.
    Invoke = 1,
    /// A request to the function's own URL.
    Http = 2,
    /// An accepted event from the queue.
    Async = 3,
    /// The function's schedule.
    Schedule = 4,
    /// A datagram on the function's port.
    Udp = 5,
    /// Another function of a chain.
    Chain = 6,
    /// A piece of a byte stream on the function's port.
    Tcp = 7,
}

impl TryFrom<u16> for Trigger {
    type Error = HeadError;

    fn try_from(value: u16) -> Result<Self, HeadError> {
        Ok(match value {
            1 => Self::Invoke,
            2 => Self::Http,
            3 => Self::Async,
            4 => Self::Schedule,
            5 => Self::Udp,
            6 => Self::Chain,
            7 => Self::Tcp,
            unknown => return Err(HeadError::UnknownTrigger(unknown)),
        })
    }
}

/// First bytes of the payload of a [`crate::Kind::RequestHead`] frame; the `traceparent` text follows, or nothing.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestHead {
    /// When the host will kill the instance, in microseconds since the Unix epoch.
    pub deadline_unix_us: u64,
    /// What caused the invocation.
    pub trigger: Trigger,
    /// Whether the host has a free CPU for an instance that spins for its next request. When all are busy, spinning
    /// delays the peer itself.
    pub free_core: bool,
    /// Sent as zero, ignored when read: room for a later version.
    reserved: [u8; 5],
}

const _: () = assert!(size_of::<RequestHead>() == REQUEST_HEAD_BYTES);

impl RequestHead {
    /// A head from a host without a free CPU.
    #[must_use]
    pub const fn new(deadline_unix_us: u64, trigger: Trigger) -> Self {
        Self {
            deadline_unix_us,
            trigger,
            free_core: false,
            reserved: [0; 5],
        }
    }

    /// The same with [`RequestHead::free_core`] as given.
    #[must_use]
    pub const fn with_free_core(self, free_core: bool) -> Self {
        Self { free_core, ..self }
    }

    /// The frame's payload. A `traceparent` longer than [`MAX_TRACEPARENT_BYTES`] is not a valid one and is left out.
    #[must_use]
    pub fn encode(&self, traceparent: Option<&str>) -> Vec<u8> {
        let text = traceparent
            .filter(|text| text.len() <= MAX_TRACEPARENT_BYTES)
            .unwrap_or_default();
        let mut payload = Vec::with_capacity(REQUEST_HEAD_BYTES + text.len());
        payload.extend_from_slice(&self.deadline_unix_us.to_le_bytes());
        payload.extend_from_slice(&(self.trigger as u16).to_le_bytes());
        payload.push(u8::from(self.free_core));
        payload.extend_from_slice(&self.reserved);
        payload.extend_from_slice(text.as_bytes());
        payload
    }

    /// Reads a frame's payload: the head and the `traceparent`, if there is one.
    ///
    /// # Errors
    /// The payload is not one that [`RequestHead::encode`] makes.
    pub fn decode(payload: &[u8]) -> Result<(Self, Option<&str>), HeadError> {
        let Some((head, text)) = payload.split_first_chunk::<REQUEST_HEAD_BYTES>() else {
            return Err(HeadError::Length(payload.len()));
        };
        if text.len() > MAX_TRACEPARENT_BYTES {
            return Err(HeadError::Length(payload.len()));
        }
        let [d0, d1, d2, d3, d4, d5, d6, d7, t0, t1, free_core, ..] = *head;
        let deadline = u64::from_le_bytes([d0, d1, d2, d3, d4, d5, d6, d7]);
        let trigger = Trigger::try_from(u16::from_le_bytes([t0, t1]))?;
        let text = str::from_utf8(text).map_err(|_| HeadError::TraceParent)?;
        Ok((
            Self::new(deadline, trigger).with_free_core(free_core != 0),
            (!text.is_empty()).then_some(text),
        ))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_request_head_survives_its_bytes() {
        let head = RequestHead::new(0x1122_3344_5566_7788, Trigger::Schedule);
        let busy = head.with_free_core(true);
        assert_eq!(RequestHead::decode(&busy.encode(None)), Ok((busy, None)));
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert_eq!(
            RequestHead::decode(&head.encode(Some(trace))),
            Ok((head, Some(trace)))
        );
        assert_eq!(RequestHead::decode(&head.encode(None)), Ok((head, None)));
        let overlong = "0".repeat(MAX_TRACEPARENT_BYTES + 1);
        assert_eq!(
            RequestHead::decode(&head.encode(Some(&overlong))),
            Ok((head, None))
        );
    }

    #[test]
    fn a_bad_request_head_is_a_typed_error() {
        let good = RequestHead::new(1, Trigger::Http).encode(None);
        assert_eq!(RequestHead::decode(&good[..15]), Err(HeadError::Length(15)));
        assert_eq!(
            RequestHead::decode(&[0; 16]),
            Err(HeadError::UnknownTrigger(0))
        );
        assert_eq!(
            RequestHead::decode(&[good.clone(), vec![0xff]].concat()),
            Err(HeadError::TraceParent)
        );
        let long = [good, vec![b'0'; MAX_TRACEPARENT_BYTES + 1]].concat();
        assert_eq!(
            RequestHead::decode(&long),
            Err(HeadError::Length(long.len()))
        );
    }
}
