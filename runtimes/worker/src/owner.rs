//! Which process an instance is. A process that a handler forks has a copy of all that the instance has, and must use none of it.
//!
//! `getpid` says so too, but it is a system call, which at several of them in each hop of a chain is a good part of it. So the
//! instance has a page that the kernel fills with zeros in whatever is forked (`MADV_WIPEONFORK` in madvise(2)).

use core::sync::atomic::{AtomicU32, Ordering};
use std::ptr::{self, NonNull};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use rustix::process::{Pid, getpid};

/// What the page says in the instance itself.
const HERE: u32 = 1;

/// The instance's process.
#[derive(Debug)]
pub(crate) struct Owner {
    pid: Pid,
    /// None where the kernel does not wipe pages.
    mark: Option<Mark>,
}

impl Owner {
    /// The calling process.
    pub(crate) fn this_process() -> Self {
        Self {
            pid: getpid(),
            mark: Mark::new(),
        }
    }

    /// Its id, as it sees it.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Whether the caller is that process. A `vfork` shares the instance's memory, and is taken for it until it executes a
    /// program.
    #[inline]
    pub(crate) fn is_here(&self) -> bool {
        match &self.mark {
            Some(mark) => mark.word().load(Ordering::Relaxed) == HERE,
            None => getpid() == self.pid,
        }
    }
}

/// The page.
#[derive(Debug)]
struct Mark(NonNull<AtomicU32>);

// SAFETY: all that is behind it is an atomic, in a mapping that every thread may use.
unsafe impl Send for Mark {}
// SAFETY: as above.
unsafe impl Sync for Mark {}

impl Mark {
    const BYTES: usize = size_of::<AtomicU32>();

    fn new() -> Option<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, at an address of the kernel's choice.
        let at = unsafe { mmap_anonymous(ptr::null_mut(), Self::BYTES, access, MapFlags::PRIVATE) };
        let mark = Self(NonNull::new(at.ok()?)?.cast());
        // SAFETY: the mapping is this one's own, and what is in it is needed in this process only.
        unsafe { madvise(at.ok()?, Self::BYTES, Advice::LinuxWipeOnFork) }.ok()?;
        mark.word().store(HERE, Ordering::Relaxed);
        Some(mark)
    }

    #[inline]
    fn word(&self) -> &AtomicU32 {
        // SAFETY: a mapping begins at a page's first byte, stays as long as `self`, and begins as zeros, which are valid.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` and unmapped nowhere else; no reference outlives `self`. It cannot fail.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), Self::BYTES) };
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use rustix::process::{WaitOptions, waitpid};

    use super::*;

    #[test]
    fn a_forked_process_is_another_one() {
        let owner = Owner::this_process();
        assert!(owner.mark.is_some(), "Linux has wiped pages since 4.14");
        assert_eq!(owner.pid(), getpid());
        let by_pid = Owner {
            pid: getpid(),
            mark: None,
        };
        assert!(owner.is_here() && by_pid.is_here());
        // SAFETY: the child loads a word, asks for its number and ends.
        let child = match unsafe { libc::fork() } {
            0 => {
                let is_wrong = owner.is_here() || by_pid.is_here();
                // SAFETY: `_exit` runs nothing of this process.
                unsafe { libc::_exit(is_wrong.into()) }
            }
            child => Pid::from_raw(child).expect("a child"),
        };
        let (_, status) = waitpid(Some(child), WaitOptions::empty())
            .expect("its end")
            .expect("its status");
        assert_eq!(status.exit_status(), Some(0));
        assert!(owner.is_here());
    }
}
