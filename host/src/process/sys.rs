//! System calls that need `unsafe`.

#![allow(unsafe_code)]

use std::io;

/// Gives this process a mount namespace of its own. It must have one thread only.
///
/// # Errors
/// What the kernel says.
pub fn unshare_mounts() -> io::Result<()> {
    // SAFETY: the call touches no memory, and there is no other thread whose view of the file system it could change.
    match unsafe { libc::unshare(libc::CLONE_NEWNS) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Closes every descriptor from `first` on. For the start of the program, before it has opened any.
///
/// # Errors
/// What the kernel says.
pub fn close_from(first: u32) -> io::Result<()> {
    // SAFETY: called before this process owns any descriptor but the standard ones; what is closed was inherited by
    // mistake and has no owner here.
    match unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
