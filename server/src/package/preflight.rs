//! Checks a zip archive's end record before anything else is parsed.
//!
//! The end record must be the last signature in the file, its comment must reach exactly to the end, and the directory
//! must lie directly before it. The zip reader then cannot interpret the file differently, so the number of entries is
//! bounded before the first of them is parsed.

use super::error::PackageError;
use super::{MAX_ENTRIES, PackageError as Error};
use crate::uploads::Upload;

/// `PK\x05\x06`, the end record's signature.
const END_SIGNATURE: [u8; 4] = *b"PK\x05\x06";
/// `PK\x01\x02`, a directory header's signature.
const HEADER_SIGNATURE: [u8; 4] = *b"PK\x01\x02";
/// Length of the end record without its comment.
const END_BYTES: usize = 22;
/// Longest comment: its length is a u16.
const MAX_COMMENT_BYTES: usize = u16::MAX as usize;

/// Checks the end record and returns the number of entries, 1 to [`MAX_ENTRIES`].
pub(super) fn entries(archive: &Upload) -> Result<usize, PackageError> {
    let longest = END_BYTES + MAX_COMMENT_BYTES;
    let tail_start = archive.len().saturating_sub(longest as u64);
    let tail = archive.part(tail_start, longest)?;
    let Some(last_start) = tail.len().checked_sub(END_BYTES) else {
        return Err(Error::NotAZip("it is too short"));
    };
    let Some(at) = (0..=tail.len() - END_SIGNATURE.len())
        .rev()
        .find(|&at| tail[at..].starts_with(&END_SIGNATURE))
    else {
        return Err(if archive.part(0, 4)?.starts_with(b"PK\x03\x04") {
            Error::Damaged("its end is missing".to_owned())
        } else {
            Error::NotAZip("it has no end-of-directory record")
        });
    };
    if at > last_start {
        return Err(Error::Damaged("its end record is cut off".to_owned()));
    }
    let record = &tail[at..];
    let (disk, directory_disk) = (u16_at(record, 4), u16_at(record, 6));
    let (here, count) = (u16_at(record, 8), u16_at(record, 10));
    let (size, offset) = (u32_at(record, 12), u32_at(record, 16));
    if END_BYTES + usize::from(u16_at(record, 20)) != record.len() {
        return Err(Error::Damaged(
            "its comment does not end where the file ends".to_owned(),
        ));
    }
    if usize::from(count) > MAX_ENTRIES {
        return Err(Error::TooManyEntries {
            found: count.into(),
            limit: MAX_ENTRIES,
        });
    }
    if size == u32::MAX || offset == u32::MAX {
        return Err(Error::Zip64);
    }
    if disk != 0 || directory_disk != 0 || here != count {
        return Err(Error::Damaged("it is one part of several".to_owned()));
    }
    if count == 0 {
        return Err(Error::NotAZip("it contains no files"));
    }
    let end = tail_start + at as u64;
    let starts_well = match end.checked_sub(size.into()) {
        Some(start) if start >= offset.into() => {
            // Only what is before the end record counts.
            let most = HEADER_SIGNATURE.len().min(size as usize);
            archive.part(start, most)?.starts_with(&HEADER_SIGNATURE)
        }
        _ => false,
    };
    if !starts_well {
        return Err(Error::Damaged(
            "its directory is not where its end record says".to_owned(),
        ));
    }
    Ok(count.into())
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
