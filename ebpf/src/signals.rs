//! Signals, where the kernel gives up a call because one is pending.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::ptr;

/// Signals stay pending for the process, or for this thread, until this is dropped: no handler runs in this thread.
pub(crate) struct Blocked(libc::sigset_t);

impl Blocked {
    pub fn new() -> Self {
        let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: sigfillset initialises the set before it is used; the call, which cannot fail with these arguments, writes the
        // old mask before it is read.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            Self(before.assume_init())
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the mask is one that this thread had.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut()) };
    }
}
