//! A network namespace with nothing but a loopback.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// Makes one and moves the calling thread into it, which should end soon.
pub(super) fn make() -> io::Result<OwnedFd> {
    // SAFETY: the call touches no memory; only this thread's view of the network changes.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } < 0 {
        return Err(io::Error::last_os_error());
    }
    loopback_up()?;
    Ok(File::open("/proc/thread-self/ns/net")?.into())
}

/// As `hearth-init` does in a sandbox.
fn loopback_up() -> io::Result<()> {
    let family = AddressFamily::INET;
    let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: `ifreq` is plain data, and all zeroes is an empty one.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
    // SAFETY: the kernel reads an `ifreq`, which outlives the call.
    match unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
