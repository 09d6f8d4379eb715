//! The manifest of an image.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The manifest of an image.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    pub(super) format: u32,
    pub(super) function: String,
    pub(super) version: u32,
    /// [`super::Key::fingerprint`].
    pub(super) fingerprint: String,
    /// [`super::HostFingerprint`], by which images of other circumstances are found without knowing the function.
    pub(super) host: String,
    /// Version of the language's runtime, "3.11.2".
    pub(super) runtime: String,
    /// How long the boot took that it was made of, µs.
    pub(super) boot_us: u64,
    pub(super) created_at: Timestamp,
    pub(super) files: Vec<FileNote>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileNote {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) crc32: u32,
}
