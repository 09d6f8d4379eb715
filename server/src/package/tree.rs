//! The target directory: every file is newly created, hashed as it is written, and sealed at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::Unpacked;
use super::error::{PackageError, quoted};

/// Modes of the finished tree: code is read, never written.
/// Its owner is no privileged user, and must be able to add byte code and to remove it; sandboxes see it read-only.
pub(super) const SEALED_DIRECTORY: u32 = 0o755;
const SEALED_EXECUTABLE: u32 = 0o555;
pub(super) const SEALED_FILE: u32 = 0o444;
/// Modes while writing.
const OPEN_DIRECTORY: u32 = 0o755;
pub(super) const OPEN_FILE: u32 = 0o600;

/// Separates this hash from any other use of SHA-256 over the same bytes.
const HASH_DOMAIN: &[u8] = b"hearth code package 1\0";

/// A finished file.
#[derive(Debug)]
struct Entry {
    executable: bool,
    bytes: u64,
    sha256: [u8; 32],
}

/// A directory being filled. Paths have been checked by [`super::names`]: relative, plain components, `/` between them.
pub(super) struct Tree<'a> {
    dest: &'a Path,
    files: BTreeMap<String, Entry>,
    directories: BTreeSet<String>,
}

impl<'a> Tree<'a> {
    pub fn new(dest: &'a Path) -> Self {
        Self {
            dest,
            files: BTreeMap::new(),
            directories: BTreeSet::new(),
        }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.dest
    }

    /// Makes a file executable; false if there is none.
    pub fn make_executable(&mut self, path: &str) -> bool {
        let file = self.files.get_mut(path);
        file.map(|file| file.executable = true).is_some()
    }

    /// Whether this file was written.
    pub fn has(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// Paths of all files, sorted.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Makes a directory and its parents, unless they are there. The empty path is the root, which is.
    pub fn add_directory(&mut self, path: &str) -> Result<(), PackageError> {
        let ends = path
            .match_indices('/')
            .map(|(at, _)| at)
            .chain((!path.is_empty()).then_some(path.len()));
        for end in ends {
            let directory = &path[..end];
            if self.files.contains_key(directory) {
                return Err(duplicate(directory));
            }
            if !self.directories.contains(directory) {
                DirBuilder::new()
                    .mode(OPEN_DIRECTORY)
                    .create(self.dest.join(directory))?;
                self.directories.insert(directory.to_owned());
            }
        }
        Ok(())
    }

    /// Creates a file, which must be new, with its parents.
    pub fn create<'t>(
        &'t mut self,
        path: &str,
        executable: bool,
    ) -> Result<NewFile<'t>, PackageError> {
        if let Some((parent, _)) = path.rsplit_once('/') {
            self.add_directory(parent)?;
        }
        if self.files.contains_key(path) || self.directories.contains(path) {
            return Err(duplicate(path));
        }
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(OPEN_FILE)
            .open(self.dest.join(path))?;
        Ok(NewFile {
            file,
            hash: Sha256::new(),
            bytes: 0,
            executable,
            path: path.to_owned(),
            files: &mut self.files,
        })
    }

    /// Makes everything read-only, deepest first, and hashes the whole.
    pub fn seal(&self) -> io::Result<Unpacked> {
        let mut hash = Sha256::new();
        hash.update(HASH_DOMAIN);
        let mut bytes = 0;
        for (path, entry) in &self.files {
            let mode = if entry.executable {
                SEALED_EXECUTABLE
            } else {
                SEALED_FILE
            };
            fs::set_permissions(self.dest.join(path), Permissions::from_mode(mode))?;
            hash.update((path.len() as u64).to_le_bytes());
            hash.update(path.as_bytes());
            hash.update([u8::from(entry.executable)]);
            hash.update(entry.bytes.to_le_bytes());
            hash.update(entry.sha256);
            bytes += entry.bytes;
        }
        for directory in self.directories.iter().rev() {
            let sealed = Permissions::from_mode(SEALED_DIRECTORY);
            fs::set_permissions(self.dest.join(directory), sealed)?;
        }
        fs::set_permissions(self.dest, Permissions::from_mode(SEALED_DIRECTORY))?;
        Ok(Unpacked {
            sha256: hex::encode(hash.finalize()),
            bytes,
        })
    }
}

/// A file being written; only [`NewFile::finish`] adds it to the tree.
pub(super) struct NewFile<'t> {
    file: File,
    hash: Sha256,
    bytes: u64,
    executable: bool,
    path: String,
    files: &'t mut BTreeMap<String, Entry>,
}

impl NewFile<'_> {
    /// The file is complete.
    pub fn finish(self) {
        let entry = Entry {
            executable: self.executable,
            bytes: self.bytes,
            sha256: self.hash.finalize().into(),
        };
        self.files.insert(self.path, entry);
    }
}

impl Write for NewFile<'_> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let count = self.file.write(piece)?;
        self.hash.update(&piece[..count]);
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Removes everything below `dest`, sealed or not; `dest` itself stays. Follows no links (there are none to follow).
pub(super) fn clear(dest: &Path) -> io::Result<()> {
    fs::set_permissions(dest, Permissions::from_mode(OPEN_DIRECTORY))?;
    for entry in fs::read_dir(dest)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            clear(&entry.path())?;
            fs::remove_dir(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn duplicate(path: &str) -> PackageError {
    PackageError::Duplicate {
        entry: quoted(path.as_bytes()),
    }
}
