//! Directories of the host process.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::{Gid, Mode};

/// Makes a directory with this mode, or gives it to one that is there.
pub(crate) fn make_directory(dir: &Path, mode: u32) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(dir)
        .and_then(|()| fs::set_permissions(dir, fs::Permissions::from_mode(mode)))
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", dir.display())))
}

/// Lets this group, and nobody else but root, into a directory.
pub(crate) fn open_to(dir: impl AsFd, readers: Option<Gid>) -> rustix::io::Result<()> {
    rustix::fs::fchown(&dir, None, readers)?;
    let mode = if readers.is_some() { 0o750 } else { 0o700 };
    rustix::fs::fchmod(&dir, Mode::from_raw_mode(mode))
}

/// Removes a directory, if it is there.
pub(crate) fn remove(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
