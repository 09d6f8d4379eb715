//! One shared mapping of a file. Those of a huge page or more begin at a multiple of one, so that huge pages fit: the kernel
//! aligns such mappings itself only where huge pages in shared memory are enabled host-wide.

use core::ffi::c_void;
use core::ptr;
use std::os::fd::BorrowedFd;

use rustix::io::{Errno, Result};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

/// A huge page of x86-64, and of AArch64 with pages of 4 KiB.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// A mapping of a whole file, unmapped when this is dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: *mut u8,
    len: usize,
}

// SAFETY: an address range that belongs to the process; who accesses it how is decided by those who do.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `len` bytes of a file, which has them and keeps them.
    pub(crate) fn new(fd: BorrowedFd<'_>, len: usize, protection: ProtFlags) -> Result<Self> {
        if len < HUGE_PAGE {
            // SAFETY: a new mapping where the kernel has room replaces nothing.
            let base = unsafe { mmap(ptr::null_mut(), len, protection, MapFlags::SHARED, fd, 0) };
            return base.map(|base| Self {
                base: base.cast(),
                len,
            });
        }
        // Room that the file can be mapped into, wherever it begins.
        let room_len = len.checked_add(HUGE_PAGE).ok_or(Errno::NOMEM)?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: as above.
        let base = unsafe { mmap_anonymous(ptr::null_mut(), room_len, ProtFlags::empty(), flags) }?;
        let room = Self {
            base: base.cast(),
            len: room_len,
        };
        let before = room.base.align_offset(HUGE_PAGE);
        let fixed = MapFlags::SHARED | MapFlags::FIXED;
        // SAFETY: `before` is less than a huge page, so `len` bytes lie behind it in the room, which nobody else uses; the
        // file's mapping replaces them.
        let base = unsafe { mmap(room.base.add(before).cast(), len, protection, fixed, fd, 0) }?;
        let end = before + len;
        // SAFETY: what is left of the room before and behind the mapping, which nobody uses. Files are whole pages, so both
        // parts are.
        unsafe {
            unmap(room.base, before);
            unmap(room.base.add(end), room_len - end);
        }
        core::mem::forget(room);
        Ok(Self {
            base: base.cast(),
            len,
        })
    }

    /// Takes memory for all of it now, and collects it into huge pages; whether the kernel has done that. It needs no setting
    /// in sysfs but that huge pages in shared memory are not denied altogether (`MADV_COLLAPSE`, Linux 6.1).
    pub(crate) fn collapse(&self) -> Result<bool> {
        let base = self.base.cast::<c_void>();
        // SAFETY: the range is this mapping, and neither call changes what it holds.
        unsafe {
            madvise(base, self.len, Advice::LinuxPopulateWrite)?;
            Ok(libc::madvise(base, self.len, libc::MADV_COLLAPSE) == 0)
        }
    }

    /// The first byte.
    #[inline]
    pub(crate) fn base(&self) -> *mut u8 {
        self.base
    }

    /// Bytes mapped.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: nothing refers to the mapping any more: whatever does keeps it.
        unsafe { unmap(self.base, self.len) };
    }
}

/// Unmaps whole pages, if any.
///
/// # Safety
/// They are this process's, and nothing refers to them.
unsafe fn unmap(base: *mut u8, len: usize) {
    if len > 0 {
        // SAFETY: the caller's. It fails only if the process may have no more mappings; then this one stays.
        let _ = unsafe { munmap(base.cast(), len) };
    }
}
