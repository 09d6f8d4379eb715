//! Attaching by link, and by nothing else: what is attached is gone when the last descriptor of its link is closed, however
//! the process ends that held it.
//!
//! The crate that loads the programs attaches, too, but where the kernel knows no links it falls back to what outlives the
//! process, and it does not give the links' descriptors away.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

const BPF_PROG_ATTACH: libc::c_int = 8;
const BPF_LINK_CREATE: libc::c_int = 28;
const BPF_LINK_UPDATE: libc::c_int = 29;
const BPF_SK_MSG_VERDICT: u32 = 7;
const BPF_SK_LOOKUP: u32 = 36;
const BPF_XDP: u32 = 37;
const BPF_TCX_INGRESS: u32 = 46;
const BPF_TCX_EGRESS: u32 = 47;
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;

/// To what a program is attached.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'a> {
    /// What the driver of an interface receives.
    Driver(u32),
    /// What the stack receives from an interface.
    Stack(u32),
    /// What comes in by an interface, after the socket buffer was made (tcx, Linux 6.6).
    Incoming(u32),
    /// What leaves by an interface (tcx, Linux 6.6).
    Outgoing(u32),
    /// Connections to a network namespace.
    Connections(BorrowedFd<'a>),
}

impl Place<'_> {
    /// Target, kind of attachment and flags, as the system call wants them.
    fn words(self) -> [u32; 3] {
        match self {
            Self::Driver(index) => [index, BPF_XDP, XDP_FLAGS_DRV_MODE],
            Self::Stack(index) => [index, BPF_XDP, XDP_FLAGS_SKB_MODE],
            Self::Incoming(index) => [index, BPF_TCX_INGRESS, 0],
            Self::Outgoing(index) => [index, BPF_TCX_EGRESS, 0],
            Self::Connections(namespace) => [number(namespace), BPF_SK_LOOKUP, 0],
        }
    }
}

/// An attached program. Dropping it detaches, unless its descriptor was duplicated.
#[derive(Debug)]
pub(crate) struct Link(OwnedFd);

impl Link {
    /// Attaches a program.
    pub(crate) fn new(program: BorrowedFd<'_>, place: Place<'_>) -> io::Result<Self> {
        let [target, kind, flags] = place.words();
        // `link_create` of `union bpf_attr`; what follows (where in the order of programs, revision) may all be 0.
        let mut attributes = [number(program), target, kind, flags, 0, 0, 0, 0];
        let made = call(BPF_LINK_CREATE, &mut attributes)?;
        // SAFETY: the kernel has just made this descriptor for the caller, who owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(made) }))
    }

    /// Puts another program in its place, in one step.
    pub(crate) fn replace(&self, program: BorrowedFd<'_>) -> io::Result<()> {
        // `link_update`: link, new program, flags, old program.
        let mut attributes = [number(self.0.as_fd()), number(program), 0, 0, 0, 0, 0, 0];
        call(BPF_LINK_UPDATE, &mut attributes).map(drop)
    }

    /// Its descriptor.
    pub(crate) fn into_inner(self) -> OwnedFd {
        self.0
    }
}

/// Runs a program on what is sent through the sockets of a map, as long as the map lives: older kernels have no links for that, and
/// a map outlives no process that has it.
pub(crate) fn attach_to_sockets(program: BorrowedFd<'_>, map: BorrowedFd<'_>) -> io::Result<()> {
    // `prog_attach`: target, program, kind of attachment, flags.
    let mut attributes = [
        number(map),
        number(program),
        BPF_SK_MSG_VERDICT,
        0,
        0,
        0,
        0,
        0,
    ];
    call(BPF_PROG_ATTACH, &mut attributes).map(drop)
}

fn number(fd: BorrowedFd<'_>) -> u32 {
    fd.as_raw_fd().cast_unsigned()
}

fn call(command: libc::c_int, attributes: &mut [u32; 8]) -> io::Result<RawFd> {
    // SAFETY: `attributes` is as large as is said and lives as long as the call, which only reads it; these commands take no
    // pointers.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            attributes.as_mut_ptr(),
            size_of_val(attributes),
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    RawFd::try_from(result).map_err(io::Error::other)
}
