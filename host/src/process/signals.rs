//! SIGTERM and SIGINT to the host process are the server's, which drains: they are passed on from the handler, so that
//! nothing has to wait for them.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::time::Duration;

/// The server's pidfd, once there is one. Stays open to the end of the process.
static SERVER: AtomicI32 = AtomicI32::new(-1);
/// A signal came before.
static STOPPED: AtomicBool = AtomicBool::new(false);
/// Seconds that the server may take to end after the first one.
static PATIENCE: AtomicU32 = AtomicU32::new(0);

extern "C" fn pass_on(signal: libc::c_int) {
    if !STOPPED.swap(true, Ordering::Relaxed) {
        // SAFETY: async-signal-safe, and touches no memory. When the time is over, SIGALRM ends this process, and with it a
        // server that takes no signals.
        unsafe { libc::alarm(PATIENCE.load(Ordering::Relaxed)) };
    }
    let server = SERVER.load(Ordering::Relaxed);
    if server < 0 {
        return;
    }
    // SAFETY: both calls are async-signal-safe; the descriptor is never closed; `errno` is put back for whatever was
    // interrupted.
    unsafe {
        let errno = *libc::__errno_location();
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            server,
            signal,
            std::ptr::null::<libc::siginfo_t>(),
            0,
        );
        *libc::__errno_location() = errno;
    }
}

/// Passes the signals on from here on; this long after the first one it is over.
pub(super) fn install(patience: Duration) -> io::Result<()> {
    let seconds = u32::try_from(patience.as_secs()).unwrap_or(u32::MAX);
    PATIENCE.store(seconds, Ordering::Relaxed);
    for signal in [libc::SIGTERM, libc::SIGINT] {
        // SAFETY: `sigaction` is plain data, whose zeroes mean no flags and an empty mask; the handler does only what a
        // handler may.
        let result = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = pass_on as *const () as libc::sighandler_t;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut())
        };
        if result == -1 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Whether one has come.
pub(super) fn stopped() -> bool {
    STOPPED.load(Ordering::Relaxed)
}

/// Passes them on to this process. Leaks the descriptor, which a handler may use at any time.
pub(super) fn pass_on_to(server: OwnedFd) {
    SERVER.store(server.as_raw_fd(), Ordering::Relaxed);
    std::mem::forget(server);
}
