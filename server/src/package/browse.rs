//! Lists and reads the files of an unpacked package.
//!
//! Packages contain only directories and regular files ([`super::tree`] created them) and never change, so a checked
//! path cannot lead elsewhere. Byte code ([`super::bytecode`]) is not shown.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::error::PackageError;
use super::{bytecode, names};

const ANY_EXECUTE: u32 = 0o111;

/// Metadata of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMeta {
    /// Its size.
    pub bytes: u64,
    /// Whether it may be executed.
    pub executable: bool,
}

/// Everything in a package.
#[derive(Debug, Default)]
pub struct Listing {
    /// Files by path.
    pub files: BTreeMap<String, FileMeta>,
    /// Directories with nothing in them.
    pub empty_directories: Vec<String>,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its own name.
    pub name: String,
    /// Its path in the package.
    pub path: String,
    /// Its metadata; nothing for a directory.
    pub file: Option<FileMeta>,
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// UTF-8 without NUL.
    Text(String),
    /// Anything else, and its size.
    Binary(u64),
    /// More than was asked for, and its size.
    Large(u64),
}

/// All files, blocking.
///
/// # Errors
/// The disk's.
pub fn walk(root: &Path) -> io::Result<Listing> {
    let mut listing = Listing::default();
    let mut directories = vec![String::new()];
    while let Some(directory) = directories.pop() {
        let entries = read_directory(root, &directory)?;
        if entries.is_empty() && !directory.is_empty() {
            listing.empty_directories.push(directory);
        }
        for entry in entries {
            match entry.file {
                Some(file) => drop(listing.files.insert(entry.path, file)),
                None => directories.push(entry.path),
            }
        }
    }
    Ok(listing)
}

/// The entries of one directory, directories first, both by name; `None` when there is no such directory. The empty
/// path is the root. Blocking.
///
/// # Errors
/// The disk's.
pub fn directory(root: &Path, path: &str) -> io::Result<Option<Vec<Entry>>> {
    let Some(path) = checked(path) else {
        return Ok(None);
    };
    match read_directory(root, &path) {
        Ok(mut entries) => {
            entries.sort_by(|a, b| (a.file.is_some(), &a.name).cmp(&(b.file.is_some(), &b.name)));
            Ok(Some(entries))
        }
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The content of a file of at most `most` bytes; `None` if there is no such file. Blocking.
///
/// # Errors
/// The disk's.
pub fn read(root: &Path, path: &str, most: u64) -> io::Result<Option<Content>> {
    let Some((file, bytes)) = open(root, path)? else {
        return Ok(None);
    };
    if bytes > most {
        return Ok(Some(Content::Large(bytes)));
    }
    let mut content = Vec::with_capacity(usize::try_from(bytes).unwrap_or_default());
    file.take(most).read_to_end(&mut content)?;
    Ok(Some(match String::from_utf8(content) {
        Ok(text) if !text.contains('\0') => Content::Text(text),
        _ => Content::Binary(bytes),
    }))
}

/// Whether files of two packages have the same content, blocking. Missing files differ.
///
/// # Errors
/// The disk's.
pub fn same(left: (&Path, &str), right: (&Path, &str)) -> io::Result<bool> {
    let (Some((mut left, left_bytes)), Some((mut right, right_bytes))) =
        (open(left.0, left.1)?, open(right.0, right.1)?)
    else {
        return Ok(false);
    };
    if left_bytes != right_bytes {
        return Ok(false);
    }
    let mut pieces = [vec![0; PIECE_BYTES], vec![0; PIECE_BYTES]];
    let [a, b] = &mut pieces;
    loop {
        let count = left.read(a)?;
        if count == 0 {
            return Ok(true);
        }
        match right.read_exact(&mut b[..count]) {
            Ok(()) if a[..count] == b[..count] => {}
            Ok(()) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}

/// Bytes compared at a time.
const PIECE_BYTES: usize = 64 << 10;

/// A file and its size; `None` if there is no file at this path.
pub(super) fn open(root: &Path, path: &str) -> io::Result<Option<(File, u64)>> {
    let Some(path) = checked(path).filter(|path| !path.is_empty()) else {
        return Ok(None);
    };
    match File::open(root.join(path)) {
        Ok(file) => {
            let meta = file.metadata()?;
            Ok(meta.is_file().then_some((file, meta.len())))
        }
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A plain relative path, or nothing. The empty path stays: it is the root.
fn checked(path: &str) -> Option<String> {
    if path.is_empty() {
        return Some(String::new());
    }
    let name: Result<names::EntryName, PackageError> = names::check(path.as_bytes());
    name.ok()
        .map(|name| name.path)
        .filter(|path| !bytecode::is_reserved(path))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory
    )
}

fn read_directory(root: &Path, path: &str) -> io::Result<Vec<Entry>> {
    let place: PathBuf = match path {
        "" => root.to_owned(),
        path => root.join(path),
    };
    let mut entries = Vec::new();
    for entry in fs::read_dir(place)? {
        let entry = entry?;
        // Names were UTF-8 when they were unpacked.
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        if name == bytecode::DIRECTORY {
            continue;
        }
        let meta = entry.metadata()?;
        entries.push(Entry {
            path: match path {
                "" => name.clone(),
                path => format!("{path}/{name}"),
            },
            name,
            file: meta.is_file().then(|| FileMeta {
                bytes: meta.len(),
                executable: meta.permissions().mode() & ANY_EXECUTE != 0,
            }),
        });
    }
    Ok(entries)
}
