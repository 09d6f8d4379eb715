//! Large pages for large payloads.
//!
//! 100 MB are 25,000 pages of 4 KiB, and faulting them in one by one costs more than copying the payload. In pages of 2 MiB
//! there are 50 faults (`MADV_HUGEPAGE` in madvise(2), which `transparent_hugepage=madvise`, the usual setting, requires;
//! Documentation/admin-guide/mm/transhuge.rst).

use std::mem::MaybeUninit;

use rustix::mm::{Advice, madvise};
use rustix::param::page_size;

/// Below this many bytes the system call does not pay off.
const LARGE: usize = 4 << 20;

/// Asks the kernel to back `memory` with large pages if it is large. Call it before the first write. A kernel without large
/// pages uses small ones.
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
    use std::path::Path;
    use std::{ptr, slice};

    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

    use super::*;
    use crate::mappings;

    /// Whether the kernel was asked for large pages at this address.
    fn is_large(address: usize) -> bool {
        let mappings = mappings::list().expect("smaps");
        let mapping = mappings
            .iter()
            .find(|mapping| mapping.range.contains(&address));
        mapping.expect("it is mapped").has("hg")
    }

    #[test]
    fn large_memory_is_asked_for_in_large_pages_and_small_memory_is_not() {
        if !Path::new("/sys/kernel/mm/transparent_hugepage/enabled").exists() {
            return;
        }
        for (len, large) in [(LARGE / 2, false), (4 * LARGE, true)] {
            let access = ProtFlags::READ | ProtFlags::WRITE;
            // SAFETY: a mapping of its own, which nothing else knows; the slice is not used after it is unmapped.
            unsafe {
                let at = mmap_anonymous(ptr::null_mut(), len, access, MapFlags::PRIVATE)
                    .expect("memory");
                let memory = slice::from_raw_parts_mut(at.cast::<MaybeUninit<u8>>(), len);
                prefer_large(memory);
                memory.fill(MaybeUninit::new(7));
                assert_eq!(is_large(at.addr() + len / 2), large, "{len}");
                assert!(memory.iter().all(|byte| byte.assume_init() == 7));
                munmap(at, len).expect("it is mapped");
            }
        }
    }

    #[test]
    fn what_lies_in_no_whole_page_is_no_mistake() {
        for (before, len) in [(0, 0), (1, 1), (1, LARGE), (4_095, LARGE + 1)] {
            let mut memory = vec![MaybeUninit::new(7_u8); before + len];
            prefer_large(&mut memory[before..]);
            // SAFETY: all of it was initialised when it was made.
            assert!(memory.iter().all(|byte| unsafe { byte.assume_init() } == 7));
        }
    }
}
