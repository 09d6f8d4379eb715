//! Uploaded code: checked, unpacked into a directory, hashed. Nothing of a refused upload stays behind.

use std::path::Path;

use crate::model::Code;

/// What was unpacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacked {
    /// SHA-256 over the sorted file names, modes and contents, hex: the same code has the same hash however it came.
    pub sha256: String,
    /// Bytes of all files.
    pub bytes: u64,
}

/// Why an upload was refused.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// The disk would not take it.
    #[error("cannot write the code: {0}")]
    Io(#[from] std::io::Error),
}

/// Unpacks `code` into the existing empty directory `dest` (files 0444 or 0555, directories 0555), blocking.
/// Inline source becomes `{module}.{extension}`.
#[allow(unused_variables, clippy::unimplemented)]
pub fn unpack(
    code: &Code,
    module: &str,
    extension: &str,
    dest: &Path,
) -> Result<Unpacked, PackageError> {
    unimplemented!()
}
