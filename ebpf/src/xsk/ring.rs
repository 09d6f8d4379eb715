//! A ring of a socket: one side produces, the other consumes, each with a counter that only it writes.
#![allow(unsafe_code)]

use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::net::xdp::{XdpRingFlags, XdpRingOffset};

use super::memory::Memory;

/// One of the four rings. This process produces on two of them and consumes on the others.
pub(super) struct Ring<T> {
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: Option<NonNull<AtomicU32>>,
    entries: NonNull<T>,
    size: u32,
    /// This side's counter, ahead of the shared one until it is published.
    own: u32,
    /// Keeps the pointers valid.
    _memory: Memory,
}

// SAFETY: the pointers are into `_memory`, which no thread owns. Methods that move a counter want it exclusively.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    /// Maps a ring of `size` entries (a power of two).
    pub(super) fn map(
        socket: BorrowedFd<'_>,
        page: u64,
        offsets: XdpRingOffset,
        size: u32,
    ) -> Result<Self, Errno> {
        let entries = size as usize * size_of::<T>();
        let length = usize::try_from(offsets.desc).map_err(|_| Errno::INVAL)? + entries;
        let memory = Memory::populated(socket, length, page)?;
        let counter = |offset| memory.pointer::<AtomicU32>(offset, 1).ok_or(Errno::INVAL);
        Ok(Self {
            producer: counter(offsets.producer)?,
            consumer: counter(offsets.consumer)?,
            flags: offsets.flags.map(counter).transpose()?,
            entries: memory
                .pointer(offsets.desc, size as usize)
                .ok_or(Errno::INVAL)?,
            size,
            own: 0,
            _memory: memory,
        })
    }

    fn shared(&self, counter: NonNull<AtomicU32>) -> &AtomicU32 {
        // SAFETY: it points into `_memory`, as `map` checked, and both sides access it atomically.
        unsafe { counter.as_ref() }
    }

    fn entry(&self, number: u32) -> NonNull<T> {
        // SAFETY: the remainder is below `size`, and `map` checked that as many entries lie in `_memory`.
        unsafe { self.entries.add((number & (self.size - 1)) as usize) }
    }

    /// Puts an entry where the kernel will find it after [`submit`](Self::submit). There is room: a ring has as many
    /// entries as there are frames that could be in it.
    pub(super) fn push(&mut self, value: T) {
        // SAFETY: in bounds (see `entry`). The kernel reads an entry only after the producer has passed it, and has consumed
        // the one that was there, since there are no more frames than entries.
        unsafe { self.entry(self.own).write(value) };
        self.own = self.own.wrapping_add(1);
    }

    /// Publishes what was pushed.
    pub(super) fn submit(&self) {
        self.shared(self.producer)
            .store(self.own, Ordering::Release);
    }

    /// The next entry that the kernel has put there.
    pub(super) fn pop(&mut self) -> Option<T> {
        let produced = self.shared(self.producer).load(Ordering::Acquire);
        if produced == self.own {
            return None;
        }
        // SAFETY: in bounds (see `entry`); the kernel wrote it before it published the producer, which was read with Acquire,
        // and does not write it again before the consumer has passed it. `T` is an integer or made of them.
        let value = unsafe { self.entry(self.own).read() };
        self.own = self.own.wrapping_add(1);
        Some(value)
    }

    /// Gives the entries that were popped back.
    pub(super) fn release(&self) {
        self.shared(self.consumer)
            .store(self.own, Ordering::Release);
    }

    /// Whether the kernel sleeps until it is told that there is something in the ring.
    pub(super) fn needs_wakeup(&self) -> bool {
        let flags = self
            .flags
            .map(|flags| self.shared(flags).load(Ordering::Acquire));
        flags.is_none_or(|flags| flags & XdpRingFlags::XDP_RING_NEED_WAKEUP.bits() != 0)
    }
}
