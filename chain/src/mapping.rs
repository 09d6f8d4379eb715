//! One shared mapping of a file. Those of a huge page or more begin at a multiple of one, so that huge pages fit: the kernel
//! aligns such mappings itself only where huge pages in shared memory are enabled host-wide.

use core::ffi::c_void;
use core::mem::ManuallyDrop;
use core::ops::Range;
use core::ptr;
use std::os::fd::BorrowedFd;

use rustix::io::{Errno, Result};
use rustix::mm::{
    Advice, MapFlags, MremapFlags, ProtFlags, madvise, mmap, mmap_anonymous, mremap_fixed, munmap,
};

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

    /// Gives the mapping up, but for these ranges of whole pages, in ascending order: there a private copy takes the place of what
    /// is shared, at once for whoever reads and writes.
    ///
    /// If that fails, all of it stays mapped for good, some ranges as copies.
    pub(crate) fn leave_copies(self, ranges: &[Range<usize>]) -> Result<Vec<Self>> {
        assert!(ranges.is_sorted_by(|one, next| one.end <= next.start));
        // Somebody has addresses in it: nothing may unmap it before all copies are there.
        let all = ManuallyDrop::new(self);
        for range in ranges {
            all.replace_by_copy(range)?;
        }
        let mut left = Vec::with_capacity(ranges.len());
        let mut end = 0;
        for range in ranges {
            // SAFETY: what lies between two copies, or before the first, and no one has addresses in.
            unsafe { unmap(all.base.add(end), range.start - end) };
            left.push(Self {
                // SAFETY: `replace_by_copy` has checked that the range lies in the mapping.
                base: unsafe { all.base.add(range.start) },
                len: range.len(),
            });
            end = range.end;
        }
        // SAFETY: what lies behind the last, which no one has addresses in.
        unsafe { unmap(all.base.add(end), all.len - end) };
        Ok(left)
    }

    /// Puts a private copy of what is there in the place of these pages.
    fn replace_by_copy(&self, range: &Range<usize>) -> Result<()> {
        let len = range.len();
        assert!(range.start < range.end && range.end <= self.len);
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping where the kernel has room replaces nothing.
        let base = unsafe { mmap_anonymous(ptr::null_mut(), len, protection, MapFlags::PRIVATE)? };
        let copy = Self {
            base: base.cast(),
            len,
        };
        // SAFETY: the copy's source lies in this mapping (just checked) and its destination is new. Moving it to its fixed place
        // replaces that part of this mapping, which nothing of this crate refers to any more.
        unsafe {
            let at = self.base.add(range.start);
            ptr::copy_nonoverlapping(at, copy.base, len);
            mremap_fixed(base, len, len, MremapFlags::MAYMOVE, at.cast())?;
        }
        // It is not there any more.
        core::mem::forget(copy);
        Ok(())
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
