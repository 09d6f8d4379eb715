//! What is passed on in memory.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};

use rustix::fs::MemfdFlags;

/// A file that exists in memory only: the environment of a function is secret, and may be larger than a datagram.
pub(crate) fn in_memory(content: &[u8]) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create(
        "hearth-jail",
        MemfdFlags::CLOEXEC,
    )?);
    file.write_all(content)?;
    file.rewind()?;
    Ok(file)
}
