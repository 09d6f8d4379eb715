//! Directories and control files.

use std::fs;
use std::io;
use std::path::Path;

/// Removes a cgroup and those below it. Only directories can be removed there; files go with them.
pub(crate) fn remove_tree(dir: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_tree(&entry.path())?;
        }
    }
    fs::remove_dir(dir)
}

/// Writes one control file.
pub(crate) fn put(dir: &Path, file: &str, value: impl ToString) -> io::Result<()> {
    let path = dir.join(file);
    fs::write(&path, value.to_string()).map_err(|error| about(&path, &error))
}

/// The error with the path it is about.
pub fn about(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
