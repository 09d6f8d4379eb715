//! What is passed on to other processes: memory that nobody can change, and the sockets to pass it over.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

/// All that keep it as it is.
pub(crate) fn all_seals() -> SealFlags {
    SealFlags::SEAL | SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK
}

/// A file that exists in memory only, with this content for good: the environment of a function is secret, and may be larger
/// than a datagram.
///
/// # Errors
/// When there is no memory or no descriptor.
pub fn sealed(content: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = File::from(rustix::fs::memfd_create("hearth", flags)?);
    file.write_all(content)?;
    file.rewind()?;
    rustix::fs::fcntl_add_seals(&file, all_seals())?;
    Ok(file.into())
}

/// Two sockets that keep messages apart.
///
/// # Errors
/// When there is no descriptor.
pub fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?)
}
