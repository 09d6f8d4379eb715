//! Large pages for large payloads.
//!
//! 100 MB lie in 25,000 pages of 4 KiB, and to be given each of them at its first touch costs a process more than the copy
//! that touches it. In pages of 2 MiB it is given them 50 times (`MADV_HUGEPAGE` in madvise(2), which the kernel's default,
//! `transparent_hugepage=madvise`, waits for; Documentation/admin-guide/mm/transhuge.rst).

use std::mem::MaybeUninit;

use rustix::mm::{Advice, madvise};
use rustix::param::page_size;

/// Less than this is not worth the system call, in bytes.
const LARGE: usize = 4 << 20;

/// Asks for large pages where `memory`, which nothing has been written to yet, is large. A kernel that has none goes on
/// with small ones.
pub fn prefer_large(memory: &mut [MaybeUninit<u8>]) {
    if memory.len() < LARGE {
        return;
    }
    let page = page_size();
    let inside = memory.as_ptr().align_offset(page);
    let Some(whole) = memory.get_mut(inside..) else {
        return;
    };
    let len = whole.len() - whole.len() % page;
    // SAFETY: the pages are within a slice that is borrowed for writing, and the advice leaves their content alone.
    let _ = unsafe { madvise(whole.as_mut_ptr().cast(), len, Advice::LinuxHugepage) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_slice_will_do() {
        for (before, len) in [(0, 0), (1, 1), (0, LARGE), (1, LARGE), (4_095, LARGE + 1)] {
            let mut memory = vec![MaybeUninit::new(7); before + len];
            prefer_large(&mut memory[before..]);
        }
    }
}
