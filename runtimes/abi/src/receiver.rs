//! The receiving end: checks everything the peer wrote before it is used.

use crate::area::{Area, Control};
use crate::error::Violation;
use crate::frame::{Flags, FrameHeader, Kind};
use crate::layout::{FRAME_HEADER_BYTES, frame_bytes, max_payload};
use crate::ring::Consumer;

/// Receives frames from the peer, which may be hostile. After a [`Violation`] every call answers the same one.
#[derive(Debug)]
pub struct Receiver {
    ring: Consumer<Control>,
    area: Area,
    max_payload: u32,
    broken: Option<Violation>,
    /// The oldest frame's, once [`Receiver::next_frame`] has found one. It stays here, and is never moved: reading back
    /// in large units what was written in small ones makes the processor wait.
    current: Checked,
}

/// A header that has been copied out and checked, but for the checksum.
#[derive(Debug, Clone, Copy)]
struct Checked {
    header: FrameHeader,
    kind: Kind,
    flags: Flags,
}

impl Receiver {
    pub(crate) fn new((control, area): (Control, Area)) -> Self {
        let capacity = area.capacity();
        Self {
            ring: Consumer::new(control, u64::from(capacity)),
            area,
            max_payload: max_payload(capacity),
            broken: None,
            current: Checked {
                header: FrameHeader::new(Kind::Pad, Flags::NONE, &[0; 16], 0),
                kind: Kind::Pad,
                flags: Flags::NONE,
            },
        }
    }

    /// The oldest frame, if there is one. Dropping the frame releases it, read or not.
    ///
    /// # Errors
    /// The peer broke the protocol.
    #[inline]
    pub fn try_recv(&mut self) -> Result<Option<Frame<'_>>, Violation> {
        match self.next_frame() {
            Ok(false) => Ok(None),
            Ok(true) => Ok(Some(Frame { receiver: self })),
            Err(violation) => Err(self.fail(violation)),
        }
    }

    /// Whether [`Receiver::try_recv`] has anything to say: for looking often, at the cost of one shared word.
    #[inline]
    pub fn is_ready(&mut self) -> bool {
        self.broken.is_some() || self.ring.available() != Ok(0)
    }

    /// Whether to ring the peer's bell: asked after releasing, once for any number of frames. It takes the peer's
    /// announcement, so it answers `true` once per sleep.
    #[must_use = "the peer sleeps on unless its bell rings"]
    #[inline]
    pub fn bell_needed(&mut self) -> bool {
        self.ring.take_producer_waiting()
    }

    /// Announces that this side is about to sleep until there is a frame. `false`: there is one now, or the peer broke
    /// the protocol (see [`Receiver::try_recv`]); nothing is announced.
    #[must_use = "sleep only after `true`"]
    pub fn prepare_wait(&mut self) -> bool {
        if self.broken.is_some() {
            return false;
        }
        self.ring.prepare_wait().unwrap_or_else(|violation| {
            self.fail(violation);
            false
        })
    }

    /// Takes the announcement back: called after waking up.
    pub fn cancel_wait(&mut self) {
        self.ring.cancel_wait();
    }

    /// Remembers the first violation, and answers it.
    #[cold]
    pub(crate) fn fail(&mut self, violation: Violation) -> Violation {
        *self.broken.get_or_insert(violation)
    }

    /// Skips filler and checks the header of the frame behind it; whether there is one. At most two rounds: filler leads to the ring's
    /// start, and there it is a violation.
    #[inline]
    fn next_frame(&mut self) -> Result<bool, Violation> {
        if let Some(violation) = self.broken {
            return Err(violation);
        }
        loop {
            let published = self.ring.available()?;
            if published == 0 {
                return Ok(false);
            }
            self.check_header(published)?;
            if self.current.kind != Kind::Pad {
                return Ok(true);
            }
            self.ring.release(frame_bytes(self.current.header.len));
        }
    }

    /// Copies the next header out and checks it against what is published and what the ring can hold.
    #[inline]
    fn check_header(&mut self, published: u64) -> Result<(), Violation> {
        let offset = self.ring.offset();
        let left = self.ring.capacity() - offset;
        let header = FrameHeader::from_words(self.area.read_header(offset)?);
        let max = self.max_payload;
        if header.len > max {
            return Err(Violation::PayloadTooLong {
                len: header.len,
                max,
            });
        }
        let frame = frame_bytes(header.len);
        if frame > published {
            return Err(Violation::BeyondPublished { frame, published });
        }
        if frame > left {
            return Err(Violation::BeyondEnd { frame, left });
        }
        header.check_reserved()?;
        self.current = Checked {
            header,
            kind: Kind::try_from(header.kind)?,
            flags: Flags::try_from(header.flags)?,
        };
        if self.current.kind == Kind::Pad {
            check_pad(&self.current, frame, left, frame_bytes(max))?;
        }
        Ok(())
    }
}

/// Filler ends at the ring's end, is shorter than the longest frame (else that frame would have fitted), carries no flag
/// and has its header's checksum.
#[cold]
fn check_pad(checked: &Checked, frame: u64, left: u64, longest: u64) -> Result<(), Violation> {
    if frame != left || frame >= longest {
        return Err(Violation::BadPad { frame, left });
    }
    if checked.flags != Flags::NONE {
        return Err(Violation::UnknownFlags(checked.flags.bits()));
    }
    checked.header.verify(&[])
}

/// A received frame, still in the ring. Its header is a checked private copy. Dropping it releases it.
#[derive(Debug)]
pub struct Frame<'a> {
    receiver: &'a mut Receiver,
}

impl Frame<'_> {
    /// What the frame carries; never filler.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.receiver.current.kind
    }

    /// The frame's flags.
    #[must_use]
    pub fn flags(&self) -> Flags {
        self.receiver.current.flags
    }

    /// The invocation's id.
    #[must_use]
    pub fn id(&self) -> &[u8; 16] {
        &self.receiver.current.header.id
    }

    /// Bytes of payload.
    #[must_use]
    pub fn len(&self) -> usize {
        self.receiver.current.header.len as usize
    }

    /// Whether the payload is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends the payload to `into`, then checks header and copy against the checksum: what the peer writes
    /// afterwards does not matter. On an error `into` is as before.
    ///
    /// Header fields are only as good as the checksum, so copy before acting on them.
    ///
    /// # Errors
    /// The peer broke the protocol.
    #[inline]
    pub fn copy_to(&mut self, into: &mut Vec<u8>) -> Result<(), Violation> {
        let before = into.len();
        let (at, len) = (self.payload_offset(), self.len());
        let Receiver { area, current, .. } = &*self.receiver;
        let summed = area.append_to(at, len, into, current.header.summed());
        let checked = summed.and_then(|sum| current.header.compare(sum));
        checked.map_err(|violation| {
            into.truncate(before);
            self.receiver.fail(violation)
        })
    }

    /// The payload in place, checked against the checksum.
    ///
    /// # Safety
    /// The peer is trusted not to write what it has published: true for a worker, whose peer is the host, and never
    /// true for the host.
    ///
    /// # Errors
    /// The peer broke the protocol.
    pub unsafe fn payload(&mut self) -> Result<&[u8], Violation> {
        let (at, len) = (self.payload_offset(), self.len());
        // SAFETY: this is the ring's consumer, `check_header` found the bytes published, they are released when the frame
        // is dropped, which the borrow prevents, and the caller vouches for the producer.
        let verified = unsafe { self.receiver.area.bytes(at, len) }
            .and_then(|bytes| self.receiver.current.header.verify(bytes));
        if let Err(violation) = verified {
            return Err(self.receiver.fail(violation));
        }
        // SAFETY: as above.
        unsafe { self.receiver.area.bytes(at, len) }
    }

    /// Releases the frame; the same as dropping it, said aloud.
    #[inline]
    pub fn consume(self) {}

    #[inline]
    fn payload_offset(&self) -> u64 {
        self.receiver.ring.offset() + FRAME_HEADER_BYTES as u64
    }
}

impl Drop for Frame<'_> {
    #[inline]
    fn drop(&mut self) {
        // After a violation the ring is given up, and its positions with it.
        if self.receiver.broken.is_none() {
            self.receiver
                .ring
                .release(frame_bytes(self.receiver.current.header.len));
        }
    }
}

#[cfg(test)]
mod tests;
