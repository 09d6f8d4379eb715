//! Frames, the units sent through a ring.
//!
//! A frame is a [`FrameHeader`] at the start of a cache line, and a payload from the next cache line on, filled up with zeros
//! to [`crate::layout::FRAME_ALIGN`]. Where one
//! does not fit before the ring's end, a [`Kind::Pad`] frame fills up to it. Kinds are extensible: a new one is a new
//! number here, and a side that does not know it answers with [`Violation::UnknownKind`]; so kinds are added together
//! with a new protocol version.

use crate::checksum::{self, Summed};
use crate::error::Violation;
use crate::layout::FRAME_HEADER_BYTES;

/// Bytes of a [`FrameHeader`].
const BYTES: usize = 32;

/// What a frame carries. `host` is the server's end, `worker` the instance's.
#[repr(u16)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Filler up to the ring's end; never delivered.
    Pad = 1,
    /// host → worker: [`crate::RequestHead`], then the `traceparent` text or nothing. Begins a request.
    RequestHead = 0x10,
    /// host → worker: the event, JSON.
    RequestEvent = 0x11,
    /// host → worker: the raw HTTP body; always sent for HTTP, never else. May be empty.
    RequestBody = 0x12,
    /// host → worker: become a member of a chain; the rest comes on the ready socket. Empty. From then on the channel is not used.
    Join = 0x13,
    /// worker → host: the handler's result, JSON; ends the response.
    ResponseResult = 0x20,
    /// worker → host: status and headers of an HTTP response, JSON, in one frame.
    ResponseHead = 0x21,
    /// worker → host: raw bytes of an HTTP response; the frame without [`Flags::MORE`] ends it.
    ResponseBody = 0x22,
    /// worker → host: the error, JSON; ends the response, after a head as well.
    ResponseError = 0x23,
}

impl TryFrom<u16> for Kind {
    type Error = Violation;

    #[inline]
    fn try_from(value: u16) -> Result<Self, Violation> {
        Ok(match value {
            1 => Self::Pad,
            0x10 => Self::RequestHead,
            0x11 => Self::RequestEvent,
            0x12 => Self::RequestBody,
            0x13 => Self::Join,
            0x20 => Self::ResponseResult,
            0x21 => Self::ResponseHead,
            0x22 => Self::ResponseBody,
            0x23 => Self::ResponseError,
            unknown => return Err(Violation::UnknownKind(unknown)),
        })
    }
}

/// A frame's flags.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Flags(u16);

impl Flags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// The message continues in the next frame of the same kind and id.
    pub const MORE: Self = Self(1);

    /// [`Flags::MORE`] or nothing.
    #[must_use]
    pub const fn more(more: bool) -> Self {
        if more { Self::MORE } else { Self::NONE }
    }

    /// The flags as they stand in a header.
    #[must_use]
    #[inline]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Whether [`Flags::MORE`] is set.
    #[must_use]
    #[inline]
    pub const fn has_more(self) -> bool {
        self.0 & Self::MORE.0 != 0
    }
}

impl TryFrom<u16> for Flags {
    type Error = Violation;

    #[inline]
    fn try_from(bits: u16) -> Result<Self, Violation> {
        if bits & !Self::MORE.0 == 0 {
            Ok(Self(bits))
        } else {
            Err(Violation::UnknownFlags(bits))
        }
    }
}

/// The header of a frame as it lies in the ring. All values are the peer's claims until they are checked.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// Bytes of payload.
    pub len: u32,
    /// A [`Kind`].
    pub kind: u16,
    /// [`Flags`].
    pub flags: u16,
    /// The invocation's UUID, as its 16 bytes.
    pub id: [u8; 16],
    /// See [`crate::checksum`]. For filler: over the header alone.
    pub crc: u32,
    /// Zero.
    pub reserved: u32,
}

/// A header as four little-endian words.
pub type HeaderWords = [u64; BYTES / 8];

const fn halves(id: &[u8; 16]) -> [u64; 2] {
    let id = u128::from_le_bytes(*id);
    [id as u64, (id >> 64) as u64]
}

const _: () = {
    assert!(size_of::<FrameHeader>() == BYTES && align_of::<FrameHeader>() == 4);
    assert!(BYTES <= FRAME_HEADER_BYTES);
};

impl FrameHeader {
    /// A header without its checksum.
    #[must_use]
    #[inline]
    pub const fn new(kind: Kind, flags: Flags, id: &[u8; 16], len: u32) -> Self {
        Self {
            len,
            kind: kind as u16,
            flags: flags.bits(),
            id: *id,
            crc: 0,
            reserved: 0,
        }
    }

    /// The header as it lies in the ring, in words: put together in registers, because bytes that are written singly and
    /// read back in larger units make the processor wait.
    #[must_use]
    #[inline]
    pub const fn to_words(&self) -> HeaderWords {
        let [low, high] = halves(&self.id);
        [
            self.len as u64 | (self.kind as u64) << 32 | (self.flags as u64) << 48,
            low,
            high,
            self.crc as u64 | (self.reserved as u64) << 32,
        ]
    }

    /// The header that `words` hold, unchecked.
    #[must_use]
    #[inline]
    pub const fn from_words(words: HeaderWords) -> Self {
        let id = words[1] as u128 | (words[2] as u128) << 64;
        Self {
            len: words[0] as u32,
            kind: (words[0] >> 32) as u16,
            flags: (words[0] >> 48) as u16,
            id: id.to_le_bytes(),
            crc: words[3] as u32,
            reserved: (words[3] >> 32) as u32,
        }
    }

    /// The header as bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        for (bytes, word) in bytes.chunks_exact_mut(8).zip(self.to_words()) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The checksum that header and `payload` make.
    #[must_use]
    pub fn checksum(&self, payload: &[u8]) -> u32 {
        checksum::sum(self.summed(), payload)
    }

    /// What is summed of the header: all but its checksum and the reserved word.
    #[inline]
    pub(crate) const fn summed(&self) -> Summed {
        let [a, b, c, _] = self.to_words();
        [a, b, c]
    }

    /// Checks header and `payload` against the header's checksum.
    ///
    /// # Errors
    /// [`Violation::Checksum`].
    pub fn verify(&self, payload: &[u8]) -> Result<(), Violation> {
        self.compare(self.checksum(payload))
    }

    /// Checks what was computed against the header's checksum.
    #[inline]
    pub(crate) fn compare(&self, computed: u32) -> Result<(), Violation> {
        if computed != self.crc {
            return Err(Violation::Checksum {
                found: self.crc,
                computed,
            });
        }
        self.check_reserved()
    }

    /// Checks the word that no checksum covers.
    #[inline]
    pub(crate) const fn check_reserved(&self) -> Result<(), Violation> {
        match self.reserved {
            0 => Ok(()),
            reserved => Err(Violation::ReservedNotZero(reserved)),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_its_bytes() {
        let mut header = FrameHeader::new(Kind::ResponseBody, Flags::MORE, &[7; 16], 0x0102_0304);
        header.crc = 0xdead_beef;
        let bytes = header.to_bytes();
        assert_eq!(bytes[..8], [4, 3, 2, 1, 0x22, 0, 1, 0]);
        assert_eq!(bytes[8..24], [7; 16]);
        assert_eq!(bytes[24..], [0xef, 0xbe, 0xad, 0xde, 0, 0, 0, 0]);
        assert_eq!(FrameHeader::from_words(header.to_words()), header);
    }

    #[test]
    fn the_checksum_covers_every_bit_of_header_and_payload() {
        let payload = *b"payload";
        let mut header = FrameHeader::new(Kind::RequestEvent, Flags::NONE, &[1; 16], 7);
        header.crc = header.checksum(&payload);
        assert_eq!(header.verify(&payload), Ok(()));
        for bit in 0..BYTES * 8 {
            let mut words = header.to_words();
            words[bit / 64] ^= 1 << (bit % 64);
            assert!(
                FrameHeader::from_words(words).verify(&payload).is_err(),
                "bit {bit}"
            );
        }
        for bit in 0..payload.len() * 8 {
            let mut other = payload;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(header.verify(&other).is_err(), "payload bit {bit}");
        }
    }

    #[test]
    fn kinds_and_flags_are_the_known_ones_only() {
        let known = (0..=u16::MAX)
            .filter(|&value| Kind::try_from(value).is_ok_and(|kind| kind as u16 == value));
        assert_eq!(
            known.collect::<Vec<_>>(),
            [1, 0x10, 0x11, 0x12, 0x13, 0x20, 0x21, 0x22, 0x23]
        );
        assert_eq!(
            (0..=u16::MAX)
                .filter(|&bits| Flags::try_from(bits).is_ok())
                .collect::<Vec<_>>(),
            [0, 1]
        );
    }
}
