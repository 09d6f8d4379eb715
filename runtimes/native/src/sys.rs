//! Fork and exit.

use std::io::{self, Write as _};

use hearth_worker::sys::Forked;
use rustix::process::Pid;

/// Forks. `in_child` runs first in the child.
///
/// # Errors
/// There is no memory or no process number left.
pub(crate) fn fork<T>(in_child: impl FnOnce() -> T) -> io::Result<Forked<T>> {
    // SAFETY: C libraries hold their own locks during a fork, so what this crate and the standard library do in the child finds
    // them free. A template with further threads, which could hold others, is forked only if its user has said so
    // (`start: "fork"`).
    match unsafe { libc::fork() } {
        0 => Ok(Forked::Child(in_child())),
        pid => {
            let error = io::Error::last_os_error();
            Pid::from_raw(pid.max(0)).map(Forked::Parent).ok_or(error)
        }
    }
}

/// Ends an instance without the template's exit handlers, once what it has printed is out.
pub(crate) fn leave(code: i32) -> ! {
    // There is nobody left to hear of an error.
    let _ = io::stdout().flush();
    hearth_worker::sys::flush_c_streams();
    // SAFETY: runs nothing of this process.
    unsafe { libc::_exit(code) }
}
