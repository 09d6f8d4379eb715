//! A shared mapping.
#![allow(unsafe_code)]

use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Memory that is mapped, here and elsewhere.
pub(super) struct Memory {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: it is a mapping of the process, no thread's; methods that write want it exclusively.
unsafe impl Send for Memory {}
// SAFETY: as above; by a shared reference it is only read.
unsafe impl Sync for Memory {}

impl Memory {
    /// Maps a descriptor from its start.
    pub(super) fn shared(descriptor: BorrowedFd<'_>, length: usize) -> Result<Self, Errno> {
        Self::map(descriptor, length, 0, MapFlags::SHARED)
    }

    /// Maps a descriptor from `offset`, and faults its pages in.
    pub(super) fn populated(
        descriptor: BorrowedFd<'_>,
        length: usize,
        offset: u64,
    ) -> Result<Self, Errno> {
        Self::map(
            descriptor,
            length,
            offset,
            MapFlags::SHARED | MapFlags::POPULATE,
        )
    }

    fn map(
        descriptor: BorrowedFd<'_>,
        length: usize,
        offset: u64,
        flags: MapFlags,
    ) -> Result<Self, Errno> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice takes nothing from anybody.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                length,
                access,
                flags,
                descriptor,
                offset,
            )
        }?;
        let start = NonNull::new(start.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self { start, length })
    }

    /// Its address.
    pub(super) fn address(&self) -> u64 {
        self.start.addr().get() as u64
    }

    /// Bytes of frames that the kernel has handed over and does not write until it gets them back.
    pub(super) fn bytes(&self, at: usize, length: usize) -> Option<&[u8]> {
        let start = self.range(at, length)?;
        // SAFETY: within the mapping, as `range` checked, and initialised since it is shared memory. The kernel has released
        // the frame by the ring and gets it back after the borrow of `self` has ended.
        Some(unsafe { std::slice::from_raw_parts(start.as_ptr(), length) })
    }

    /// The same, to write.
    pub(super) fn bytes_mut(&mut self, at: usize, length: usize) -> Option<&mut [u8]> {
        let start = self.range(at, length)?;
        // SAFETY: as in `bytes`; `self` is borrowed exclusively, and nobody else in this process maps the frames.
        Some(unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), length) })
    }

    fn range(&self, at: usize, length: usize) -> Option<NonNull<u8>> {
        if at.checked_add(length)? > self.length {
            return None;
        }
        // SAFETY: within the mapping.
        Some(unsafe { self.start.add(at) })
    }

    /// A pointer to a `T` in the mapping, if it lies in it and is aligned.
    pub(super) fn pointer<T>(&self, at: u64, count: usize) -> Option<NonNull<T>> {
        let at = usize::try_from(at).ok()?;
        let start = self
            .range(at, size_of::<T>().checked_mul(count)?)?
            .cast::<T>();
        start.is_aligned().then_some(start)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and references into it ended before it did.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}
