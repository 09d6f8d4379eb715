//! The sending end: places frames in the ring, whole or in pieces.

use core::cmp;

use crate::area::{Area, Control};
use crate::error::{AbiError, Violation};
use crate::frame::{Flags, FrameHeader, Kind};
use crate::layout::{FRAME_ALIGN, FRAME_HEADER_BYTES, frame_bytes, max_payload};
use crate::ring::Producer;

/// Smallest payload of a frame that is not its message's last, in bytes (a quarter of a frame's in rings of less than
/// 32 KiB): keeps a slow consumer from having a large message cut into crumbs.
const MIN_PIECE_BYTES: u64 = 4096;

/// Sends frames to the peer. The peer's position is not trusted: if it is impossible, every call fails from then on.
#[derive(Debug)]
pub struct Sender {
    ring: Producer<Control>,
    area: Area,
    max_payload: u32,
    /// Payload of the last frame: what [`Sender::warm_up`] takes for the next one's.
    last_len: u32,
    broken: Option<Violation>,
}

/// Where a frame goes.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// Bytes of filler before it.
    pad: u64,
    /// Payload it may have.
    len: u32,
}

impl Sender {
    pub(crate) fn new((control, area): (Control, Area)) -> Self {
        let capacity = area.capacity();
        Self {
            ring: Producer::new(control, u64::from(capacity)),
            area,
            max_payload: max_payload(capacity),
            last_len: 0,
            broken: None,
        }
    }

    /// The largest payload of one frame, in bytes: [`max_payload`].
    #[must_use]
    pub fn max_payload(&self) -> usize {
        self.max_payload as usize
    }

    /// Sends one frame. `false`: the ring is too full, nothing was sent.
    ///
    /// # Errors
    /// The payload is longer than [`Sender::max_payload`], `kind` is filler, or the peer broke the protocol.
    #[inline]
    pub fn try_send(
        &mut self,
        kind: Kind,
        flags: Flags,
        id: &[u8; 16],
        payload: &[u8],
    ) -> Result<bool, AbiError> {
        sendable(kind)?;
        let len = self.bounded(payload.len())?;
        let Some(place) = self.guarded(|sender| sender.place_whole(len))? else {
            return Ok(false);
        };
        self.send_at(place, kind, flags, id, payload)?;
        Ok(true)
    }

    /// Sends as much of `payload` as fits, in one frame, and returns how many bytes that were. `None`: the ring is too
    /// full, nothing was sent; `Some(0)` is only answered to an empty payload, which is a frame, too.
    ///
    /// The frame says that more follows if bytes are left or if `more_follows`.
    ///
    /// # Errors
    /// `kind` is filler, or the peer broke the protocol.
    pub fn try_send_piece(
        &mut self,
        kind: Kind,
        id: &[u8; 16],
        payload: &[u8],
        more_follows: bool,
    ) -> Result<Option<usize>, AbiError> {
        sendable(kind)?;
        let Some(place) = self.guarded(|sender| sender.place_piece(payload.len()))? else {
            return Ok(None);
        };
        let (piece, rest) = payload.split_at(cmp::min(place.len as usize, payload.len()));
        self.send_at(
            place,
            kind,
            Flags::more(more_follows || !rest.is_empty()),
            id,
            piece,
        )?;
        Ok(Some(piece.len()))
    }

    /// Whether to ring the peer's bell: asked after sending, once for any number of frames. It takes the peer's
    /// announcement, so it answers `true` once per sleep.
    #[must_use = "the peer sleeps on unless its bell rings"]
    #[inline]
    pub fn bell_needed(&mut self) -> bool {
        self.ring.take_consumer_waiting()
    }

    /// Takes the cache lines where the next frame will lie, if it will be about as long as the last one, back from the peer's
    /// processor. For a side that is about to look for the peer's answer and has nothing else to do meanwhile: its next
    /// frame then goes out without the waiting for each line (about 5 to 40 ns, by where the two processors are), which was
    /// half of a round trip.
    pub fn warm_up(&mut self) {
        let (pad, frame) = self.span_of(self.last_len);
        if self.broken.is_none() && self.ring.free_seen() >= pad + frame {
            let at = self.offset_after(pad);
            // SAFETY: this is the ring's producer, and these bytes are free.
            let claimed = unsafe { self.area.claim(at, frame) };
            debug_assert!(claimed.is_ok(), "the place lies in the ring");
        }
    }

    /// Whether the peer has taken everything that was sent, but for what it may keep back. `false` also when it broke the
    /// protocol.
    pub fn is_drained(&mut self) -> bool {
        self.guarded(|sender| sender.ring.is_drained()) == Ok(true)
    }

    /// Announces that this side is about to sleep until a frame of `len` bytes of payload, or the largest frame if that
    /// is less, fits. `false`: it fits now, or the peer broke the protocol (sending again reports it); nothing is
    /// announced.
    #[must_use = "sleep only after `true`"]
    pub fn prepare_wait(&mut self, len: usize) -> bool {
        let len = u32::try_from(len).unwrap_or(u32::MAX).min(self.max_payload);
        let (pad, frame) = self.span_of(len);
        self.guarded(|sender| sender.ring.prepare_wait(pad + frame))
            .unwrap_or(false)
    }

    /// Takes the announcement back: called after waking up.
    pub fn cancel_wait(&mut self) {
        self.ring.cancel_wait();
    }

    /// Runs `step` unless the peer has broken the protocol, and remembers it if it does.
    #[inline]
    fn guarded<T>(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<T, Violation>,
    ) -> Result<T, Violation> {
        if let Some(violation) = self.broken {
            return Err(violation);
        }
        step(self).inspect_err(|&violation| self.broken = Some(violation))
    }

    #[inline]
    fn bounded(&self, len: usize) -> Result<u32, AbiError> {
        let max = self.max_payload as usize;
        if len > max {
            return Err(AbiError::TooLarge { len, max });
        }
        Ok(len as u32)
    }

    /// Bytes of filler and of frame that `len` bytes of payload take at the present position.
    #[inline]
    fn span_of(&self, len: u32) -> (u64, u64) {
        let frame = frame_bytes(len);
        let left = self.ring.capacity() - self.ring.offset();
        (if frame <= left { 0 } else { left }, frame)
    }

    /// Room for a frame of `len` bytes of payload, after filler if need be.
    #[inline]
    fn place_whole(&mut self, len: u32) -> Result<Option<Place>, Violation> {
        let (pad, frame) = self.span_of(len);
        let fits = self.ring.free(pad + frame)? >= pad + frame;
        Ok(fits.then_some(Place { pad, len }))
    }

    /// Room for a frame with all `len` bytes, or else for a chunk large enough to send.
    fn place_piece(&mut self, len: usize) -> Result<Option<Place>, Violation> {
        let whole = u32::try_from(len).unwrap_or(u32::MAX).min(self.max_payload);
        if let Some(place) = self.place_whole(whole)? {
            return Ok(Some(place));
        }
        let free = self.ring.free_seen();
        let left = self.ring.capacity() - self.ring.offset();
        let (before_end, after_end) = (free.min(left), free.saturating_sub(left));
        let (pad, room) = if before_end >= after_end {
            (0, before_end)
        } else {
            (left, after_end)
        };
        let min_piece = MIN_PIECE_BYTES.min(self.ring.capacity() / 8);
        let room = room.saturating_sub(FRAME_HEADER_BYTES as u64);
        if room < min_piece {
            return Ok(None);
        }
        let len = u32::try_from(room).unwrap_or(u32::MAX).min(whole);
        Ok(Some(Place { pad, len }))
    }

    /// Writes a frame to its place and publishes it.
    #[inline]
    fn send_at(
        &mut self,
        place: Place,
        kind: Kind,
        flags: Flags,
        id: &[u8; 16],
        payload: &[u8],
    ) -> Result<(), Violation> {
        let mut header = FrameHeader::new(kind, flags, id, payload.len() as u32);
        let at = self.offset_after(place.pad) + FRAME_HEADER_BYTES as u64;
        header.crc = self.area.write_payload(at, payload, header.summed())?;
        self.publish(place.pad, &header)
    }

    /// Writes filler and header, and publishes them with the payload that is already there.
    #[inline]
    fn publish(&mut self, pad: u64, header: &FrameHeader) -> Result<(), Violation> {
        if pad > 0 {
            self.fill(pad)?;
        }
        self.area
            .write_header(self.offset_after(pad), header.to_words())?;
        self.ring.publish(pad + frame_bytes(header.len));
        self.last_len = header.len;
        Ok(())
    }

    /// Writes filler of `pad` bytes, header included.
    #[cold]
    fn fill(&mut self, pad: u64) -> Result<(), Violation> {
        let len = (pad - FRAME_HEADER_BYTES as u64) as u32;
        let mut filler = FrameHeader::new(Kind::Pad, Flags::NONE, &[0; 16], len);
        filler.crc = filler.checksum(&[]);
        self.area
            .write_header(self.ring.offset(), filler.to_words())
    }

    /// Offset in the ring of the frame that begins after `pad` bytes of filler.
    #[inline]
    fn offset_after(&self, pad: u64) -> u64 {
        debug_assert!(pad.is_multiple_of(FRAME_ALIGN));
        (self.ring.offset() + pad) & (self.ring.capacity() - 1)
    }
}

#[inline]
fn sendable(kind: Kind) -> Result<(), AbiError> {
    if kind == Kind::Pad {
        Err(AbiError::NotSendable(kind))
    } else {
        Ok(())
    }
}
