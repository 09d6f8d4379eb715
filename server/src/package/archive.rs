//! Zip archives, hostile until proven otherwise.

use std::io::{BufReader, ErrorKind, Read, Write};

use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

use super::error::{PackageError, quoted};
use super::tree::Tree;
use super::{
    MAX_ENTRIES, MAX_RATIO, MAX_UNPACKED_BYTES, RATIO_FREE_BYTES, bytecode, names, preflight,
};
use crate::uploads::{Reader, Upload};

type Archive<'u> = ZipArchive<BufReader<Reader<'u>>>;

/// Bytes inflated at a time.
const PIECE_BYTES: usize = 64 << 10;

// File type bits of a Unix mode.
const TYPE_MASK: u32 = 0o170_000;
const TYPE_FILE: u32 = 0o100_000;
const TYPE_DIRECTORY: u32 = 0o040_000;
const ANY_EXECUTE: u32 = 0o111;

/// Unpacks a whole archive into `tree`.
pub(super) fn extract(upload: &Upload, tree: &mut Tree<'_>) -> Result<(), PackageError> {
    let expected = preflight::entries(upload)?;
    let mut archive = Archive::new(BufReader::new(upload.reader())).map_err(damaged)?;
    if archive.has_duplicate_names() {
        return Err(PackageError::Duplicate {
            entry: "an entry".to_owned(),
        });
    }
    if archive.len() != expected {
        return Err(PackageError::Damaged(format!(
            "its end record counts {expected} entries, its directory {}",
            archive.len()
        )));
    }
    debug_assert!(archive.len() <= MAX_ENTRIES);
    if archive.has_overlapping_files().map_err(damaged)? {
        return Err(PackageError::Bomb {
            entry: "the archive, whose entries share their data,".to_owned(),
            limit: MAX_RATIO,
        });
    }
    let mut budget = Budget {
        archive: upload.len(),
        unpacked: 0,
    };
    let mut buffer = vec![0; PIECE_BYTES];
    for index in 0..archive.len() {
        extract_one(&mut archive, index, tree, &mut budget, &mut buffer)?;
    }
    Ok(())
}

fn extract_one(
    archive: &mut Archive<'_>,
    index: usize,
    tree: &mut Tree<'_>,
    budget: &mut Budget,
    buffer: &mut [u8],
) -> Result<(), PackageError> {
    let (name, executable, compressed) = {
        let entry = archive.by_index_data(index).map_err(damaged)?;
        let raw = entry.name_raw();
        let name = names::check(raw)?;
        let mode = entry.unix_mode().unwrap_or(0);
        check_type(raw, mode, name.is_dir)?;
        // Byte code that came along may be of any source, or of another interpreter.
        if bytecode::is_reserved(&name.path) {
            return Ok(());
        }
        if entry.encrypted() {
            return Err(PackageError::Encrypted { entry: quoted(raw) });
        }
        let method = entry.compression();
        if !matches!(
            method,
            CompressionMethod::Stored | CompressionMethod::Deflated
        ) {
            return Err(PackageError::Compression {
                entry: quoted(raw),
                method: method_name(method),
            });
        }
        if entry.size() > MAX_UNPACKED_BYTES {
            return Err(PackageError::TooLarge {
                limit: MAX_UNPACKED_BYTES,
            });
        }
        (name, mode & ANY_EXECUTE != 0, entry.compressed_size())
    };
    let shown = quoted(name.path.as_bytes());
    if name.is_dir {
        return tree.add_directory(&name.path);
    }
    let mut source = archive.by_index(index).map_err(damaged)?;
    let mut file = tree.create(&name.path, executable)?;
    let mut written: u64 = 0;
    loop {
        let count = match source.read(buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) if e.raw_os_error().is_some() => return Err(e.into()),
            Err(e) => return Err(PackageError::Damaged(format!("{shown}: {e}"))),
        };
        written += count as u64;
        budget.spend(count as u64, written, compressed, &shown)?;
        file.write_all(&buffer[..count])?;
    }
    if written != source.size() {
        return Err(PackageError::Damaged(format!(
            "{shown} has {written} bytes, not the {} it declares",
            source.size()
        )));
    }
    file.finish();
    Ok(())
}

/// What has been inflated so far: actual bytes, whatever the headers declare.
struct Budget {
    archive: u64,
    unpacked: u64,
}

impl Budget {
    fn spend(
        &mut self,
        count: u64,
        of_entry: u64,
        compressed: u64,
        entry: &str,
    ) -> Result<(), PackageError> {
        self.unpacked += count;
        if self.unpacked > MAX_UNPACKED_BYTES {
            return Err(PackageError::TooLarge {
                limit: MAX_UNPACKED_BYTES,
            });
        }
        let bomb = |entry: String| PackageError::Bomb {
            entry,
            limit: MAX_RATIO,
        };
        if is_bomb(of_entry, compressed) {
            return Err(bomb(format!("the archive's entry {entry}")));
        }
        if is_bomb(self.unpacked, self.archive) {
            return Err(bomb("the archive".to_owned()));
        }
        Ok(())
    }
}

fn is_bomb(unpacked: u64, packed: u64) -> bool {
    unpacked > RATIO_FREE_BYTES && unpacked / MAX_RATIO > packed
}

fn check_type(raw: &[u8], mode: u32, named_directory: bool) -> Result<(), PackageError> {
    let kind = match mode & TYPE_MASK {
        0 => return Ok(()),
        TYPE_FILE if !named_directory => return Ok(()),
        TYPE_DIRECTORY if named_directory => return Ok(()),
        TYPE_FILE => "file with the name of a directory",
        TYPE_DIRECTORY => "directory with the name of a file",
        0o120_000 => "symbolic link",
        0o010_000 => "named pipe",
        0o140_000 => "socket",
        0o020_000 | 0o060_000 => "device",
        _ => "file of an unknown type",
    };
    Err(PackageError::Special {
        entry: quoted(raw),
        kind,
    })
}

fn method_name(method: CompressionMethod) -> String {
    let known = [
        (CompressionMethod::DEFLATE64, "deflate64"),
        (CompressionMethod::BZIP2, "bzip2"),
        (CompressionMethod::LZMA, "LZMA"),
        (CompressionMethod::ZSTD, "Zstandard"),
        (CompressionMethod::XZ, "xz"),
        (CompressionMethod::PPMD, "PPMd"),
    ];
    known
        .iter()
        .find(|(candidate, _)| *candidate == method)
        .map_or_else(|| format!("{method:?}"), |(_, name)| (*name).to_owned())
}

/// What the archive's reader says; a disk that cannot be read is not the archive's fault.
fn damaged(error: ZipError) -> PackageError {
    match error {
        ZipError::Io(error) if error.raw_os_error().is_some() => error.into(),
        error => PackageError::Damaged(error.to_string()),
    }
}
