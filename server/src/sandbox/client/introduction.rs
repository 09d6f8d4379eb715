//! The host process's first messages, which describe it.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use hearth_host::cgroup::Version;
use hearth_host::protocol::Reply;

use crate::sandbox::Capability;
use crate::sandbox::link::receive;

/// The host process as it describes itself.
pub(in crate::sandbox) struct Introduction {
    pub(in crate::sandbox) capabilities: Vec<Capability>,
    pub(super) version: Version,
    /// Directory of all sandboxes' cgroups in the memory hierarchy.
    pub(super) cgroups: PathBuf,
    /// The same in that of the processor.
    pub(super) cpu_cgroups: PathBuf,
    pub(in crate::sandbox) init: String,
}

/// Reads the host process's first messages. Blocks briefly at most.
pub(in crate::sandbox) fn introduction(socket: &OwnedFd) -> io::Result<Introduction> {
    let mut capabilities = Vec::new();
    loop {
        match receive(socket)? {
            Some((Reply::Capability(capability), _)) => capabilities.push(capability.into()),
            Some((
                Reply::Up {
                    v2,
                    cgroups,
                    cpu_cgroups,
                    init,
                },
                _,
            )) => {
                return Ok(Introduction {
                    capabilities,
                    version: if v2 { Version::V2 } else { Version::V1 },
                    cgroups: cgroups.into(),
                    cpu_cgroups: cpu_cgroups.into(),
                    init,
                });
            }
            Some(_) => return Err(io::Error::other("the host process says something else")),
            None => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}
