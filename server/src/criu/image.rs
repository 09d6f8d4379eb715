//! One image: a directory with CRIU's files and a manifest that says what they are.
//!
//! ```text
//! DATA_DIR/images/hello-3-0123456789abcdef/
//!   manifest.json    what it is an image of, and the checksum of each file
//!   criu/            CRIU's files
//! ```
//! An image contains the template's memory and with it the function's environment, so the directory has mode 0700. The
//! files in `criu/` are readable by anyone who can reach them: the sandboxes that get them as a descriptor or a mount,
//! possibly several at a time. An image is written under a temporary name and renamed once it is complete and synced,
//! so a partial image is never used.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;

use super::manifest::{FileNote, Manifest};
use super::{CriuError, Key};

/// Name of CRIU's directory.
const FILES: &str = "criu";
/// Name of the manifest.
const MANIFEST: &str = "manifest.json";
/// Longest manifest that is read. Protects the server from reading some other, huge file.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;
/// Format of what is on disk. Another one is discarded.
const FORMAT: u32 = 4;
/// Rights to CRIU's directory, and to its files. Sandboxes' users read them; the directory that they are in keeps others out.
const DIR_MODE: u32 = 0o755;
const FILE_MODE: u32 = 0o644;
/// Piece in which files are read to sum them.
const PIECE: usize = 256 * 1024;

/// An image that is on disk, complete when it was looked at last.
#[derive(Debug)]
pub struct Image {
    dir: PathBuf,
    pub(super) manifest: Manifest,
    /// Size of CRIU's files.
    pub bytes: u64,
    /// What the files looked like when their checksums were right: inode, size and time of change of each.
    checked: Mutex<Option<Vec<Stamp>>>,
    /// Restores that failed since the last that did not.
    pub(super) failures: AtomicU32,
    /// Restores since then in which CRIU was refused what it needs.
    pub(super) shortages: AtomicU32,
    /// When it was restored last, in the order of [`super::Images`]' own count.
    pub(super) used: AtomicU64,
}

/// Of what an image is made, beside its files.
pub(super) struct Made<'a> {
    /// [`super::HostFingerprint`].
    pub(super) host: &'a str,
    /// Version of the language's runtime.
    pub(super) runtime: &'a str,
    /// How long the boot took.
    pub(super) boot: Duration,
}

type Stamp = (u64, u64, i64, i64);

impl Image {
    /// Makes an image of what CRIU has left in `staging/criu` and moves it to its place. Blocking.
    ///
    /// # Errors
    /// [`CriuError::File`].
    pub(super) fn complete(
        staging: &Path,
        images: &Path,
        key: &Key,
        made: &Made,
    ) -> Result<Self, CriuError> {
        let files_dir = staging.join(FILES);
        let mut files = Vec::new();
        for entry in fs::read_dir(&files_dir).map_err(CriuError::file(&files_dir))? {
            let path = entry.map_err(CriuError::file(&files_dir))?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                continue;
            };
            let note = fs::set_permissions(&path, fs::Permissions::from_mode(FILE_MODE))
                .and_then(|()| File::open(&path))
                .and_then(|file| {
                    let (bytes, crc32) = sum(&file)?;
                    file.sync_all()?;
                    Ok(FileNote {
                        name: name.to_owned(),
                        bytes,
                        crc32,
                    })
                })
                .map_err(CriuError::file(&path))?;
            files.push(note);
        }
        let manifest = Manifest {
            format: FORMAT,
            function: key.function.clone(),
            version: key.version,
            fingerprint: key.fingerprint.clone(),
            host: made.host.to_owned(),
            runtime: made.runtime.to_owned(),
            boot_us: u64::try_from(made.boot.as_micros()).unwrap_or(u64::MAX),
            created_at: Timestamp::now(),
            files,
        };
        let dir = images.join(key.directory());
        let place = || -> io::Result<()> {
            let mut file = fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(staging.join(MANIFEST))?;
            file.write_all(&serde_json::to_vec(&manifest)?)?;
            file.sync_all()?;
            fs::set_permissions(&files_dir, fs::Permissions::from_mode(DIR_MODE))?;
            File::open(&files_dir)?.sync_all()?;
            File::open(staging)?.sync_all()?;
            remove(&dir)?;
            fs::rename(staging, &dir)?;
            File::open(images)?.sync_all()
        };
        place().map_err(CriuError::file(&dir))?;
        let image = Self::new(dir, manifest);
        // They have just been summed.
        *image.checked.lock() = Some(image.stamps()?);
        Ok(image)
    }

    /// Reads an image's manifest; its files are looked at by [`Self::check`].
    ///
    /// # Errors
    /// [`CriuError::File`], [`CriuError::Damaged`].
    pub(super) fn open(dir: PathBuf) -> Result<Self, CriuError> {
        let path = dir.join(MANIFEST);
        let mut text = Vec::new();
        File::open(&path)
            .and_then(|file| file.take(MANIFEST_BYTES_MAX).read_to_end(&mut text))
            .map_err(CriuError::file(&path))?;
        let manifest: Manifest =
            serde_json::from_slice(&text).map_err(|error| CriuError::Damaged(error.to_string()))?;
        if manifest.format != FORMAT {
            return Err(CriuError::Damaged(format!("format {}", manifest.format)));
        }
        if manifest.files.iter().any(|file| file.name.contains('/')) {
            return Err(CriuError::Damaged("a name with a slash".into()));
        }
        Ok(Self::new(dir, manifest))
    }

    fn new(dir: PathBuf, manifest: Manifest) -> Self {
        Self {
            dir,
            bytes: manifest.files.iter().map(|file| file.bytes).sum(),
            manifest,
            checked: Mutex::default(),
            failures: AtomicU32::new(0),
            shortages: AtomicU32::new(0),
            used: AtomicU64::new(0),
        }
    }

    /// Directory of CRIU's files.
    pub fn files(&self) -> PathBuf {
        self.dir.join(FILES)
    }

    /// The runtime's version, "3.11.2".
    pub fn runtime(&self) -> &str {
        &self.manifest.runtime
    }

    /// How long a boot of the same takes.
    pub fn boot(&self) -> Duration {
        Duration::from_micros(self.manifest.boot_us)
    }

    /// When it was made.
    pub fn created_at(&self) -> Timestamp {
        self.manifest.created_at
    }

    /// Whether it is what was written. The checksums are taken once; later it is enough that no file was touched.
    /// Blocking: a few ms for 14 MB the first time, microseconds then.
    ///
    /// # Errors
    /// [`CriuError::Damaged`], [`CriuError::File`].
    pub fn check(&self) -> Result<(), CriuError> {
        let mut checked = self.checked.lock();
        let now = self.stamps()?;
        if checked.as_ref() == Some(&now) {
            return Ok(());
        }
        for note in &self.manifest.files {
            let path = self.files().join(&note.name);
            let found = File::open(&path)
                .and_then(|file| sum(&file))
                .map_err(CriuError::file(&path))?;
            if found != (note.bytes, note.crc32) {
                return Err(CriuError::Damaged(format!("{} has changed", note.name)));
            }
        }
        *checked = Some(now);
        Ok(())
    }

    fn stamps(&self) -> Result<Vec<Stamp>, CriuError> {
        let stamp = |note: &FileNote| {
            let path = self.files().join(&note.name);
            let meta = fs::symlink_metadata(&path).map_err(CriuError::file(&path))?;
            Ok((meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec()))
        };
        self.manifest.files.iter().map(stamp).collect()
    }

    /// Takes it off the disk. What cannot be removed now is, at the next start.
    pub(super) fn remove(&self) {
        if let Err(error) = remove(&self.dir) {
            tracing::warn!(image = %self.dir.display(), %error, "cannot remove an image");
        }
    }

    /// Counts a failed restore; the number of those in a row.
    pub(super) fn count_failure(&self) -> u32 {
        self.failures.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Counts a restore in which CRIU was refused something; the number of those in a row.
    pub(super) fn count_shortage(&self) -> u32 {
        self.shortages.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// Makes the directories of a new image; CRIU's is returned.
pub(super) fn stage(staging: &Path) -> Result<PathBuf, CriuError> {
    let files = staging.join(FILES);
    for dir in [staging, &files] {
        fs::DirBuilder::new()
            .mode(0o700)
            .create(dir)
            .map_err(CriuError::file(dir))?;
    }
    Ok(files)
}

/// Bytes of the files in a directory.
pub(super) fn stored(dir: &Path) -> Result<u64, CriuError> {
    let sizes = fs::read_dir(dir)
        .and_then(|entries| entries.map(|entry| Ok(entry?.metadata()?.len())).sum());
    sizes.map_err(CriuError::file(dir))
}

/// Removes a directory. The name goes first, so that one that is half removed does not look like an image.
pub(super) fn remove(dir: &Path) -> io::Result<()> {
    match fs::remove_file(dir.join(MANIFEST)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Size and checksum of a file.
fn sum(mut file: &File) -> io::Result<(u64, u32)> {
    let mut hasher = crc32fast::Hasher::new();
    let mut piece = vec![0; PIECE];
    let mut bytes = 0;
    loop {
        let length = file.read(&mut piece)?;
        if length == 0 {
            return Ok((bytes, hasher.finalize()));
        }
        hasher.update(&piece[..length]);
        bytes += length as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::criu::Key;

    fn image(dir: &Path) -> Image {
        let staging = dir.join("staging");
        let files = stage(&staging).unwrap();
        fs::write(files.join("pages-1.img"), vec![7; 600_000]).unwrap();
        fs::write(files.join("core-1000.img"), "registers").unwrap();
        let key = Key {
            function: "f".into(),
            version: 1,
            fingerprint: "0123456789abcdef".repeat(4),
        };
        let made = Made {
            host: "host",
            runtime: "3.11.2",
            boot: Duration::from_millis(1234),
        };
        Image::complete(&staging, dir, &key, &made).unwrap()
    }

    #[test]
    fn what_was_written_is_read_by_who_is_let_in() {
        let dir = tempfile::tempdir().unwrap();
        let written = image(dir.path());
        assert_eq!(written.bytes, 600_009);
        let read = Image::open(written.dir.clone()).unwrap();
        read.check().unwrap();
        read.check().unwrap();
        assert_eq!(read.runtime(), written.runtime());
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(read.dir.clone()), 0o700);
        assert_eq!(mode(read.files()), 0o755);
        assert_eq!(mode(read.files().join("pages-1.img")), 0o644);
        assert_eq!(mode(read.dir.join(MANIFEST)), 0o600);
        assert!(!dir.path().join("staging").exists());
    }

    #[test]
    fn a_changed_byte_is_found_also_after_a_good_look() {
        let dir = tempfile::tempdir().unwrap();
        let image = image(dir.path());
        image.check().unwrap();
        let path = image.files().join("pages-1.img");
        let mut bytes = fs::read(&path).unwrap();
        bytes[599_999] ^= 1;
        fs::write(&path, bytes).unwrap();
        assert!(matches!(image.check(), Err(CriuError::Damaged(_))));
        fs::remove_file(&path).unwrap();
        assert!(matches!(image.check(), Err(CriuError::File { .. })));
    }

    #[test]
    fn a_directory_without_a_good_manifest_is_no_image() {
        let dir = tempfile::tempdir().unwrap();
        let image = image(dir.path());
        let manifest = image.dir.join(MANIFEST);
        let text = fs::read_to_string(&manifest).unwrap();
        for bad in [
            "",
            &text[..text.len() / 2],
            &text.replace("\"format\":4", "\"format\":1"),
        ] {
            fs::write(&manifest, bad).unwrap();
            assert!(Image::open(image.dir.clone()).is_err());
        }
        fs::remove_file(&manifest).unwrap();
        assert!(Image::open(image.dir.clone()).is_err());
    }
}
