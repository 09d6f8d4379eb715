//! A worker that keeps to no rule: a second mapping of the region, written to at will.
#![allow(dead_code, reason = "no test uses all of it")]

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hearth_abi::checksum::BLOCK;
use hearth_abi::layout::{
    FRAME_ALIGN, FRAME_HEADER_BYTES, HEADER_BYTES, LINE_BYTES, MIN_RING_BYTES, TO_HOST_CONTROL,
    TO_WORKER_CONTROL, frame_bytes,
};
use hearth_abi::{Flags, FrameHeader, Kind, Region};
use memmap2::{MmapOptions, MmapRaw};

/// Size of the rings of these tests: the smallest, so that every end and wrap is near.
pub const RING: u64 = MIN_RING_BYTES as u64;

/// A position that the peer shares with the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// The host's own: what it has sent.
    HostSent,
    /// What the worker has taken.
    WorkerTook,
    /// What the worker has sent.
    WorkerSent,
    /// The host's own: what it has taken.
    HostTook,
}

/// The raw mapping.
pub struct Peer {
    map: MmapRaw,
    _fd: OwnedFd,
}

impl Peer {
    /// A region's host end and its hostile peer.
    pub fn new() -> (hearth_abi::Endpoint, Self) {
        let (region, fd) = Region::create(MIN_RING_BYTES).expect("a region");
        let map = MmapOptions::new()
            .map_raw(fd.as_raw_fd())
            .expect("a second mapping");
        (region.host(), Self { map, _fd: fd })
    }

    fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset <= self.map.len() && len <= self.map.len() - offset);
        // SAFETY: just checked to lie in the mapping.
        unsafe { self.map.as_mut_ptr().add(offset) }
    }

    /// A shared position.
    pub fn position(&self, word: Word) -> &AtomicU64 {
        let offset = match word {
            Word::HostSent => TO_WORKER_CONTROL,
            Word::WorkerTook => TO_WORKER_CONTROL + LINE_BYTES,
            Word::WorkerSent => TO_HOST_CONTROL,
            Word::HostTook => TO_HOST_CONTROL + LINE_BYTES,
        };
        // SAFETY: in the mapping, aligned, and used as an atomic by everybody.
        unsafe { &*self.at(offset, 8).cast::<AtomicU64>() }
    }

    /// Loads a shared position.
    pub fn load(&self, word: Word) -> u64 {
        self.position(word).load(Ordering::Acquire)
    }

    /// Stores a shared position.
    pub fn store(&self, word: Word, position: u64) {
        self.position(word).store(position, Ordering::Release);
    }

    /// Where an honest worker's next frame would lie, if what stands in the shared words can be true.
    pub fn next(&self) -> Option<u64> {
        let (sent, took) = (self.load(Word::WorkerSent), self.load(Word::HostTook));
        (sent.is_multiple_of(FRAME_ALIGN) && sent.wrapping_sub(took) <= RING / 2).then_some(sent)
    }

    /// One of the four announcements.
    pub fn announcement(&self, index: usize) -> &AtomicU32 {
        let control = if index & 1 == 0 {
            TO_WORKER_CONTROL
        } else {
            TO_HOST_CONTROL
        };
        let offset = control + (2 + (index >> 1 & 1)) * LINE_BYTES;
        // SAFETY: as above.
        unsafe { &*self.at(offset, 4).cast::<AtomicU32>() }
    }

    /// Writes `bytes` into the ring worker → host, from `offset` up to the ring's end at most.
    pub fn write(&self, offset: u64, bytes: &[u8]) {
        let offset = offset % RING;
        let len = bytes.len().min((RING - offset) as usize);
        let to = self.at(HEADER_BYTES + RING as usize + offset as usize, len);
        // SAFETY: `at` checked the bounds.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, len) };
    }

    /// Everything the host must never write: the region's header and the bytes of the ring worker → host.
    pub fn not_the_hosts(&self) -> Vec<u8> {
        let mut bytes = vec![0; LINE_BYTES + RING as usize];
        let (header, ring) = bytes.split_at_mut(LINE_BYTES);
        // SAFETY: `at` checked the bounds; the vector is private.
        unsafe {
            let from = self.at(0, LINE_BYTES);
            std::ptr::copy_nonoverlapping(from, header.as_mut_ptr(), LINE_BYTES);
            let from = self.at(HEADER_BYTES + RING as usize, RING as usize);
            std::ptr::copy_nonoverlapping(from, ring.as_mut_ptr(), RING as usize);
        }
        bytes
    }

    /// Writes a frame at `position` as a worker would, after `tamper` has had the header, and publishes it.
    pub fn send(
        &self,
        position: u64,
        kind: Kind,
        payload: &[u8],
        tamper: impl FnOnce(&mut FrameHeader),
    ) {
        let mut header = FrameHeader::new(kind, Flags::NONE, &[9; 16], payload.len() as u32);
        header.crc = header.checksum(payload);
        tamper(&mut header);
        let mut blocks = payload.to_vec();
        blocks.resize(payload.len().next_multiple_of(BLOCK), 0);
        self.write(position + FRAME_HEADER_BYTES as u64, &blocks);
        self.write(position, &header.to_bytes());
        self.store(
            Word::WorkerSent,
            position.wrapping_add(frame_bytes(payload.len() as u32)),
        );
    }
}
