//! Forks: plain, into new namespaces, with a number.

use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};

use rustix::process::Pid;

use super::NAMESPACES;

/// Which side of a fork this is.
pub enum Fork {
    /// The caller. The pidfd is absent for a plain fork.
    Parent(Pid, Option<OwnedFd>),
    /// The new process.
    Child,
}

/// Forks into new user, mount, pid, ipc, uts, net and cgroup namespaces.
///
/// With `sibling`, the child's parent is the caller's parent (`CLONE_PARENT`), which is how PID 1 becomes a child of
/// the host process while the process that built its root goes away.
///
/// The caller must have one thread only.
pub fn fork_into_namespaces(sibling: bool) -> io::Result<Fork> {
    let mut pidfd: RawFd = -1;
    let (parent, exit_signal) = if sibling {
        (libc::CLONE_PARENT, 0) // the kernel takes over the caller's exit signal
    } else {
        (0, libc::SIGCHLD)
    };
    // SAFETY: `clone_args` is plain data, and all zeroes is its documented empty value.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = (NAMESPACES | parent | libc::CLONE_PIDFD) as u64;
    args.pidfd = (&raw mut pidfd) as u64;
    args.exit_signal = exit_signal as u64;
    // SAFETY: without CLONE_VM and with no stack given this is fork(2): the child runs on a copy of this address space.
    // `hearth-init` has one thread, so no lock can be held by a thread that does not exist in the child. `args` and
    // `pidfd` outlive the call.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            &raw mut args,
            size_of::<libc::clone_args>(),
        )
    };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => {
            let pid = Pid::from_raw(pid as i32).ok_or(io::ErrorKind::Other)?;
            // SAFETY: the kernel has just stored a new descriptor there, which nobody else owns.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            Ok(Fork::Parent(pid, Some(pidfd)))
        }
    }
}

/// Forks. The caller must have one thread only.
pub fn fork() -> io::Result<Fork> {
    // SAFETY: `hearth-init` has one thread, so the child may do whatever the parent could.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(
            Pid::from_raw(pid).ok_or(io::ErrorKind::Other)?,
            None,
        )),
    }
}

/// Forks a child with this number in the caller's own pid namespace. Needs `CAP_CHECKPOINT_RESTORE` or `CAP_SYS_ADMIN`
/// there. The caller must have one thread only.
pub fn fork_numbered(number: i32) -> io::Result<Fork> {
    let numbers = [number];
    // SAFETY: `clone_args` is plain data, and all zeroes is its documented empty value.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.exit_signal = libc::SIGCHLD as u64;
    args.set_tid = numbers.as_ptr() as u64;
    args.set_tid_size = numbers.len() as u64;
    // SAFETY: as in `fork_into_namespaces`; `numbers` outlives the call, which only reads it.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            &raw mut args,
            size_of::<libc::clone_args>(),
        )
    };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(
            Pid::from_raw(pid as i32).ok_or(io::ErrorKind::Other)?,
            None,
        )),
    }
}
