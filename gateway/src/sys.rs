//! System calls that need `unsafe`.

#![allow(unsafe_code)]

use std::io;

use rustix::thread::UnshareFlags;

/// Moves the calling thread to a new network namespace.
///
/// # Errors
/// What the kernel says.
pub fn unshare_network() -> io::Result<()> {
    // SAFETY: the flag concerns the network namespace only; descriptors stay those of all threads.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }.map_err(Into::into)
}

/// Ignores signals that a terminal or a service manager sends to all processes at once: the server drains first, and the gateway
/// ends last.
pub(crate) fn ignore_signals() -> io::Result<()> {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        // SAFETY: no handler is installed.
        if unsafe { libc::signal(signal, libc::SIG_IGN) } == libc::SIG_ERR {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
