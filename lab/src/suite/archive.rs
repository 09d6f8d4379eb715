//! What is staged, as a zip.

use std::fs::{self, File};
use std::io::{self, Cursor};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::stage::StageError;

/// Up to this size files are stored as they are: packing and unpacking are as fast as copying, and the way to the server is short.
const STORED_MAX: u64 = 160 << 20;

/// Longest archive that the server takes.
const ARCHIVE_MAX: usize = 256 << 20;

/// Packs a directory. Modes are kept, which the tool chain's programs need.
///
/// # Errors
/// A file that cannot be read, or more than the server takes.
pub(super) fn pack(root: &Path) -> Result<Vec<u8>, StageError> {
    let mut files = Vec::new();
    let mut bytes = 0;
    list(root, &mut files, &mut bytes)?;
    // The same files make the same archive.
    files.sort();
    let method = match bytes <= STORED_MAX {
        true => CompressionMethod::Stored,
        false => CompressionMethod::Deflated,
    };
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for path in files {
        let failed = |error: io::Error| StageError::File(path.clone(), error);
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy();
        let mut file = File::open(&path).map_err(failed)?;
        let mode = file.metadata().map_err(failed)?.permissions().mode();
        let options = SimpleFileOptions::default()
            .compression_method(method)
            .unix_permissions(mode);
        zip.start_file(name.as_ref(), options)
            .map_err(|error| failed(error.into()))?;
        io::copy(&mut file, &mut zip).map_err(failed)?;
    }
    let failed = |error: zip::result::ZipError| StageError::File(root.to_owned(), error.into());
    let archive = zip.finish().map_err(failed)?.into_inner();
    if archive.len() > ARCHIVE_MAX {
        let reason = format!(
            "{} MiB packed, and the server takes {}",
            archive.len() >> 20,
            ARCHIVE_MAX >> 20
        );
        return Err(StageError::TooLarge("the suite".into(), reason));
    }
    Ok(archive)
}

fn list(directory: &Path, files: &mut Vec<PathBuf>, bytes: &mut u64) -> Result<(), StageError> {
    let failed = |error| StageError::File(directory.to_owned(), error);
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let metadata = entry.metadata().map_err(failed)?;
        if metadata.is_dir() {
            list(&entry.path(), files, bytes)?;
        } else {
            *bytes += metadata.len();
            files.push(entry.path());
        }
    }
    Ok(())
}
