//! Fills another process's memory page by page as the kernel itself would: `userfaultfd(2)`, `UFFDIO_COPY`. This avoids
//! clearing each page first and looking it up again. Besides `sys` and `inject` the only module with `unsafe`.

#![allow(unsafe_code)]

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

/// Flags of `userfaultfd(2)` that need no privilege. No fault is ever waited for here.
pub const FLAGS: u64 = (libc::O_CLOEXEC | 1) as u64; // UFFD_USER_MODE_ONLY

/// `UFFD_API`.
const API: u64 = 0xaa;
/// `UFFDIO_API`, `UFFDIO_REGISTER`, `UFFDIO_COPY`.
const ASK: libc::Ioctl = 0xc018_aa3f_u32 as libc::Ioctl;
const REGISTER: libc::Ioctl = 0xc020_aa00_u32 as libc::Ioctl;
const COPY: libc::Ioctl = 0xc028_aa03_u32 as libc::Ioctl;
/// `UFFDIO_REGISTER_MODE_MISSING`.
const MISSING: u64 = 1;

/// `struct uffdio_api`.
#[repr(C)]
struct Ask {
    api: u64,
    features: u64,
    ioctls: u64,
}

/// `struct uffdio_register`.
#[repr(C)]
struct Register {
    start: u64,
    length: u64,
    mode: u64,
    ioctls: u64,
}

/// `struct uffdio_copy`.
#[repr(C)]
struct Copy {
    to: u64,
    from: u64,
    length: u64,
    mode: u64,
    copied: i64,
}

/// Access to the missing pages of one process. When it is dropped, the process is as if there had been none.
#[derive(Debug)]
pub struct Missing(OwnedFd);

impl Missing {
    /// Takes over a descriptor that the process has made.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        let mut ask = Ask {
            api: API,
            features: 0,
            ioctls: 0,
        };
        // SAFETY: the kernel reads and writes a structure of the type that belongs to the request.
        check(unsafe { libc::ioctl(fd.as_raw_fd(), ASK, &raw mut ask) })?;
        Ok(Self(fd))
    }

    /// Registers a mapping of the process to fill.
    pub fn register(&self, mapping: &Range<u64>) -> io::Result<()> {
        let mut register = Register {
            start: mapping.start,
            length: mapping.end - mapping.start,
            mode: MISSING,
            ioctls: 0,
        };
        // SAFETY: as above.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), REGISTER, &raw mut register) })
    }

    /// Fills pages of a mapping so named that are not there yet, from `at` on.
    pub fn fill(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let length = bytes.len() as u64;
        let mut done = 0;
        while done < length {
            let mut copy = Copy {
                to: at + done,
                from: bytes.as_ptr().addr() as u64 + done,
                length: length - done,
                mode: 0,
                copied: 0,
            };
            // SAFETY: as above; the kernel reads what is left of `bytes`, and writes to another process's memory.
            let result = check(unsafe { libc::ioctl(self.0.as_raw_fd(), COPY, &raw mut copy) });
            match (result, u64::try_from(copy.copied)) {
                (_, Ok(copied)) if copied > 0 => done += copied,
                // The kernel is about to change the mappings.
                (Err(error), _) if error.raw_os_error() == Some(libc::EAGAIN) => {}
                (Err(error), _) => return Err(error),
                (Ok(()), _) => return Err(io::ErrorKind::WriteZero.into()),
            }
        }
        Ok(())
    }
}

/// A descriptor of another process, which this one may trace.
pub fn descriptor_of(pid: rustix::process::Pid, fd: u64) -> io::Result<OwnedFd> {
    let process = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())?;
    let fd = libc::c_int::try_from(fd).map_err(io::Error::other)?;
    // SAFETY: the call takes numbers only.
    let copy = unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), fd, 0) };
    let copy = libc::c_int::try_from(copy).map_err(io::Error::other)?;
    check(copy)?;
    // SAFETY: the kernel has just made this descriptor; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
