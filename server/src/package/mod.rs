//! Uploaded code: checked, unpacked into a directory, hashed. A rejected upload leaves nothing behind.
//!
//! ```text
//! Code::Inline ─▶ the entry's file ────┐
//!                                      ├─▶ tree (create_new, hash) ─▶ module (is it there?) ─▶ seal (0444, 0755)
//! Code::Zip ─▶ preflight ─▶ names ─────┤        any error: everything in `dest` is removed again
//!                                      │
//! Code::Edits ─▶ browse (the base) ─▶ edit
//! ```
//!
//! [`Packages`] is the directory that holds the packages. [`browse`] reads an unpacked package, [`pack`] creates an
//! archive from it. [`bytecode`] is stored in packages but is not part of them: it is not shown, and uploads cannot contain
//! any.

mod archive;
pub mod browse;
pub mod bytecode;
mod edit;
mod error;
mod executable;
mod module;
mod names;
mod pack;
mod packages;
mod preflight;
#[cfg(test)]
mod tests;
mod tree;

use std::path::Path;

use crate::model::Code;

pub use edit::MAX_EDITS;
pub use error::PackageError;
pub use module::Entry;
pub use pack::pack;
pub use packages::{Package, Packages, Staged};
use tree::Tree;

/// Entries an archive may hold: bounds the inodes one upload can take. Some scientific packages together have 10,000.
pub const MAX_ENTRIES: usize = 50_000;
/// Bytes of all unpacked files: bounds the disk one upload can take. Twice Lambda's 250 MB.
pub const MAX_UNPACKED_BYTES: u64 = 512 << 20;
/// Largest expansion of one entry, and of the whole archive, once it is past [`RATIO_FREE_BYTES`].
pub const MAX_RATIO: u64 = 100;
/// Unpacked bytes below which the expansion does not matter: small, very regular files are no bombs.
pub const RATIO_FREE_BYTES: u64 = 10 << 20;

/// An unpacked package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacked {
    /// SHA-256 over the sorted file names, modes and contents, hex: the same code has the same hash however it came.
    pub sha256: String,
    /// Bytes of all files.
    pub bytes: u64,
}

/// Unpacks `code` into the existing empty directory `dest` (files 0444 or 0555, directories 0755), blocking.
/// Inline code becomes the entry's file. Edits are applied to `base`, the directory of the package they are meant for; other
/// code needs none.
///
/// Of an archive, the entry may be in a directory; its file must be there. On any error `dest` is left empty, as it was.
pub fn unpack(
    code: &Code,
    base: Option<&Path>,
    entry: &Entry,
    dest: &Path,
) -> Result<Unpacked, PackageError> {
    if std::fs::read_dir(dest)?.next().is_some() {
        return Err(PackageError::Io(std::io::Error::other(
            "the directory for the code is not empty",
        )));
    }
    let mut tree = Tree::new(dest);
    let outcome = fill(code, base, entry, &mut tree).and_then(|()| Ok(tree.seal()?));
    if outcome.is_err() {
        tree::clear(dest)?;
    }
    outcome
}

fn fill(
    code: &Code,
    base: Option<&Path>,
    entry: &Entry,
    tree: &mut Tree<'_>,
) -> Result<(), PackageError> {
    match code {
        Code::Inline(source) => {
            let (path, executable) = entry.file()?;
            let mut file = tree.create(&path, executable)?;
            std::io::copy(&mut source.reader(), &mut file)?;
            file.finish();
        }
        Code::Zip(upload) => {
            archive::extract(upload, tree)?;
        }
        Code::Edits { edits, .. } => {
            let base = base.ok_or_else(|| std::io::Error::other("edits without a base"))?;
            edit::apply(base, edits, tree)?;
        }
    }
    entry.check(tree)
}
