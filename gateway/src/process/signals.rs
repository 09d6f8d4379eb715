//! Signals that a terminal or a service manager sends to all processes at once.

#![allow(unsafe_code)]

use std::io;

/// Ignores them: the server drains first, and the gateway ends after it.
pub(super) fn ignore() -> io::Result<()> {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        // SAFETY: no handler is installed.
        if unsafe { libc::signal(signal, libc::SIG_IGN) } == libc::SIG_ERR {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
