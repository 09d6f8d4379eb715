//! System calls that need `unsafe`.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

use rustix::thread::UnshareFlags;

/// Moves the calling thread to a new network namespace.
pub(super) fn unshare_network() -> io::Result<()> {
    // SAFETY: the flag concerns the network namespace only; descriptors stay those of all threads.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }.map_err(Into::into)
}

/// Lets a socket bind to an address that does not exist yet.
pub(super) fn bind_freely(socket: impl AsFd) -> io::Result<()> {
    let yes: libc::c_int = 1;
    // SAFETY: the kernel reads only the given number of bytes of `yes`, which outlives the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_IP,
            libc::IP_FREEBIND,
            (&raw const yes).cast(),
            size_of_val(&yes) as libc::socklen_t,
        )
    };
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
