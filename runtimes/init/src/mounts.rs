//! Mounts made complete before they are attached anywhere, so that nobody ever sees them otherwise.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::mount::{MoveMountFlags, OpenTreeFlags};

use crate::error::JailError;
use crate::sys;

/// Mounts one more directory of the host, read-only, nosuid and nodev from the first moment on, and returns it.
pub fn mount_sealed(source: &Path, target: &Path) -> Result<OwnedFd, JailError> {
    let mount = detached(source)?;
    sys::seal_mount(&mount).map_err(JailError::mount(format!(
        "making {} read-only",
        source.display()
    )))?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    rustix::mount::move_mount(&mount, "", rustix::fs::CWD, target, flags).map_err(
        JailError::mount(format!(
            "mounting {} on {}",
            source.display(),
            target.display()
        )),
    )?;
    Ok(mount)
}

/// A mount of its own for a directory, attached nowhere yet.
pub fn detached(dir: &Path) -> Result<OwnedFd, JailError> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    rustix::mount::open_tree(rustix::fs::CWD, dir, flags).map_err(JailError::mount(format!(
        "copying the mount of {}",
        dir.display()
    )))
}
