//! Creates a zip archive from a package, reproducibly: no timestamps, files sorted by name.

use std::io::{Seek, Write};
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::browse;
use super::error::PackageError;

/// Writes all files below `root` as an archive, blocking. What comes out can be uploaded again, and has the same hash.
///
/// # Errors
/// [`PackageError::Io`].
pub fn pack(root: &Path, out: impl Write + Seek) -> Result<(), PackageError> {
    let listing = browse::walk(root)?;
    let mut archive = ZipWriter::new(out);
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    for directory in &listing.empty_directories {
        archive
            .add_directory(directory.as_str(), options)
            .map_err(std::io::Error::from)?;
    }
    for (path, meta) in &listing.files {
        let mode = if meta.executable { 0o755 } else { 0o644 };
        archive
            .start_file(path.as_str(), options.unix_permissions(mode))
            .map_err(std::io::Error::from)?;
        let (mut file, _) = browse::open(root, path)?
            .ok_or_else(|| std::io::Error::other(format!("{path:?} is gone")))?;
        std::io::copy(&mut file, &mut archive)?;
    }
    archive.finish().map_err(std::io::Error::from)?;
    Ok(())
}
