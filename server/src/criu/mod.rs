//! CRIU images of templates, for the start kind `restore`.
//!
//! ```text
//!  boot of a version ──▶ (idle) ──▶ a second sandbox boots the same ──▶ CRIU dumps it ──▶ image on disk
//!                                                                                          │
//!  sandbox made anew ──▶ PID 1 has CRIU restore the template into it ◀──────────────────────┘
//! ```
//! - [`key`]: what an image depends on; when any of it changes, the image is discarded.
//! - [`image`]: one image on disk: files, checksums, and its [`manifest`]. [`dump`]: creates one.
//! - [`images`]: all of them; [`keeping`]: which stay, under a size budget. [`counters`]: counters.
//!
//! CRIU and its files belong to the host process: this module decides which images exist, and knows what they contain.
//!
//! `server/docs/restore.md` explains how a restore works and what it trusts.

mod counters;
mod dump;
mod image;
mod images;
mod keeping;
mod key;
mod manifest;

use std::path::PathBuf;

use crate::host_error::{HostError, is_shortage, tells_of_shortage};

pub use counters::{Counters, Totals};
pub use dump::Source;
pub use image::Image;
pub use images::{Images, Settings};
pub use key::{HostFingerprint, Key};

/// Why there is no image, or no usable one.
#[derive(Debug, thiserror::Error)]
pub enum CriuError {
    /// There is no CRIU that works here.
    #[error("{0}")]
    Unavailable(String),
    /// A file of an image, or its directory.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// An image is damaged.
    #[error("the image is damaged: {0}")]
    Damaged(String),
    /// The host lacks resources for a dump.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The dump failed.
    #[error("the dump failed: {0}")]
    Dump(String),
    /// A template has too many memory mappings: its dump would take seconds.
    #[error(
        "the template has more than {max} memory mappings (/proc/PID/maps), which would take too long to dump"
    )]
    TooManyMappings {
        /// Most that are dumped.
        max: u64,
    },
    /// One image is larger than all may be.
    #[error("the image of {bytes} bytes is larger than the budget of {budget}")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// `HEARTH_IMAGE_BUDGET_MB`.
        budget: u64,
    },
}

impl CriuError {
    /// Whether it says nothing about the template or the image.
    #[must_use]
    pub fn is_of_host(&self) -> bool {
        match self {
            Self::Host(_) => true,
            Self::File { source, .. } => is_shortage(source),
            // CRIU's own words.
            Self::Dump(said) => tells_of_shortage(said),
            Self::Unavailable(_)
            | Self::Damaged(_)
            | Self::TooManyMappings { .. }
            | Self::TooLarge { .. } => false,
        }
    }

    /// For `map_err`: a file and its error.
    fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}
