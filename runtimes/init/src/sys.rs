//! System calls that need `unsafe`. Besides `inject` and `uffd` the only module of this crate that has any.

#![allow(unsafe_code)]

mod fork;

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};

pub use fork::{Fork, fork, fork_into_namespaces, fork_numbered};

/// The shortest slice that the kernel grants, in nanoseconds.
const SHORT_SLICE: u64 = 100_000;

/// All namespaces of a sandbox.
const NAMESPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWCGROUP;

/// Enters every namespace of the process behind the pidfd but the user namespace, the pid namespace for children.
pub fn enter_namespaces(pidfd: &OwnedFd) -> io::Result<()> {
    let namespaces = NAMESPACES & !libc::CLONE_NEWUSER;
    // SAFETY: the call touches no memory; descriptors stay valid, and this process has one thread.
    check(unsafe { libc::setns(pidfd.as_raw_fd(), namespaces) })
}

/// Switches on the loopback device of the caller's network namespace. Needs `CAP_NET_ADMIN` there.
pub fn loopback_up() -> io::Result<()> {
    // SAFETY: the call touches no memory; the descriptor is nobody else's yet.
    let socket = unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        check(fd)?;
        OwnedFd::from_raw_fd(fd)
    };
    // SAFETY: `ifreq` is plain data, and all zeroes is an empty one.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
    // SAFETY: the kernel reads an `ifreq`, which outlives the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) })
}

/// Leaves the parent's mounts behind.
pub fn unshare_mounts() -> io::Result<()> {
    // SAFETY: CLONE_NEWNS touches no memory; descriptors stay valid, and this process has one thread.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS) })
}

/// Makes a mount read-only, nosuid and nodev, before it is attached anywhere.
pub fn seal_mount(mount: &OwnedFd) -> io::Result<()> {
    /// `struct mount_attr`, its first version.
    #[repr(C)]
    struct Attributes {
        set: u64,
        clear: u64,
        propagation: u64,
        user_namespace: u64,
    }
    const RDONLY: u64 = 1;
    const NOSUID: u64 = 2;
    const NODEV: u64 = 4;
    let attributes = Attributes {
        set: RDONLY | NOSUID | NODEV,
        clear: 0,
        propagation: 0,
        user_namespace: 0,
    };
    // SAFETY: the kernel reads an empty path and the given number of bytes of `attributes`, which outlive the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const attributes,
            size_of::<Attributes>(),
        )
    };
    check(result as i32)
}

/// Leaves the session keyring that came from the server's own login session, so that none of its keys shows in
/// `/proc/keys`. A kernel without keyrings has nothing to hide.
pub fn forget_session_keyring() {
    const KEYCTL_JOIN_SESSION_KEYRING: libc::c_long = 1;
    // SAFETY: a null name asks for a new anonymous keyring; no memory is passed.
    unsafe {
        libc::syscall(
            libc::SYS_keyctl,
            KEYCTL_JOIN_SESSION_KEYRING,
            std::ptr::null::<libc::c_char>(),
        );
    }
}

/// A descriptor that is readable when a child has changed state; SIGCHLD is blocked from here on.
pub fn child_events() -> io::Result<OwnedFd> {
    // SAFETY: `sigset_t` is plain data that `sigemptyset` fills; both calls get pointers to live locals.
    let fd = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        check(libc::sigprocmask(
            libc::SIG_BLOCK,
            &raw const set,
            std::ptr::null_mut(),
        ))?;
        libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    check(fd)?;
    // SAFETY: the kernel has just made this descriptor; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Closes every descriptor from `first` on. For the start of the program, before it has opened any.
pub fn close_from(first: RawFd) -> io::Result<()> {
    // SAFETY: called before this process owns any descriptor but the standard ones; what is closed was inherited by
    // mistake and has no owner here.
    check(unsafe {
        libc::syscall(
            libc::SYS_close_range,
            first as libc::c_uint,
            libc::c_uint::MAX,
            0 as libc::c_uint,
        )
    } as i32)
}

/// Marks every descriptor from `first` on to be closed at exec.
pub fn close_on_exec_from(first: RawFd) -> io::Result<()> {
    // SAFETY: only sets a flag on descriptors, closes none.
    let result = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            first as libc::c_uint,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC as libc::c_uint,
        )
    };
    check(result as i32)
}

/// The kernel's Landlock ABI.
pub fn landlock_abi() -> io::Result<i32> {
    const LANDLOCK_CREATE_RULESET_VERSION: u32 = 1;
    // SAFETY: with this flag the call takes no memory and only returns a number.
    let abi = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u8>(),
            0_usize,
            LANDLOCK_CREATE_RULESET_VERSION,
        )
    } as i32;
    check(abi)?;
    Ok(abi)
}

/// Whether the kernel can filter system calls with an errno.
pub fn seccomp_available() -> io::Result<()> {
    let action: u32 = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the call reads four bytes from `action`, which outlives it.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_GET_ACTION_AVAIL,
            0,
            &raw const action,
        )
    };
    check(result as i32)
}

/// Has the calling thread run as soon as what it waits for is there, before others have used up their time, and be
/// interrupted as early: it asks for short slices (`Documentation/scheduler/sched-eevdf.rst`). Kernels before 6.12 take no
/// notice.
pub fn ask_for_short_slices() {
    /// `struct sched_attr`, its first version.
    #[repr(C)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime: u64,
        deadline: u64,
        period: u64,
    }
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: libc::SCHED_OTHER as u32,
        flags: 0,
        nice: 0,
        priority: 0,
        runtime: SHORT_SLICE,
        deadline: 0,
        period: 0,
    };
    // SAFETY: the call reads the structure, by the size that stands in it. Whether it is obeyed changes no result.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

fn check(result: i32) -> io::Result<()> {
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
