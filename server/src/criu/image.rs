//! One image: CRIU's files, and a manifest that describes them.
//!
//! ```text
//! DATA_DIR/images/hello-3-0123456789abcdef/criu/       CRIU's files: the host process's, this one may read them
//! DATA_DIR/manifests/hello-3-0123456789abcdef.json     what it is an image of, and the checksum of each file
//! ```
//! The host process writes the files and never lets go of them, because sandboxes are restored from them; a server that was
//! taken over cannot make an image, or change one. The manifest is written last, under a temporary name, and renamed: files
//! without a manifest are no image. The checksums find what a disk or a crash did to the files; they are no proof of who
//! wrote them, and need not be.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;

use super::manifest::{FileNote, Manifest};
use super::{CriuError, Key};

/// Name of CRIU's directory.
const FILES: &str = "criu";
/// Ending of a manifest's name.
const MANIFEST: &str = "json";
/// Longest manifest that is read. Protects the server from reading some other, huge file.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;
/// Format version on disk. Other versions are discarded.
const FORMAT: u32 = 5;
/// Piece in which files are read to sum them.
const PIECE: usize = 256 * 1024;

/// An image that is on disk, complete when it was looked at last.
#[derive(Debug)]
pub struct Image {
    name: String,
    files: PathBuf,
    /// The manifest's path.
    note: PathBuf,
    pub(super) manifest: Manifest,
    /// Size of CRIU's files.
    pub bytes: u64,
    /// Inode, size and change time of each file when its checksum was last verified.
    checked: Mutex<Option<Vec<Stamp>>>,
    /// Restores that failed since the last that did not.
    pub(super) failures: AtomicU32,
    /// Restores since then in which CRIU was refused what it needs.
    pub(super) shortages: AtomicU32,
    /// When it was restored last, in the order of [`super::Images`]' own count.
    pub(super) used: AtomicU64,
}

/// What an image was made from, beside its files.
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
    /// Makes an image of the files that the host process has placed, by writing its manifest. Blocking.
    ///
    /// # Errors
    /// [`CriuError::File`].
    pub(super) fn complete(place: &Place, key: &Key, made: &Made) -> Result<Self, CriuError> {
        let name = key.directory();
        let files_dir = place.files(&name);
        let mut files = Vec::new();
        for entry in fs::read_dir(&files_dir).map_err(CriuError::file(&files_dir))? {
            let path = entry.map_err(CriuError::file(&files_dir))?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                continue;
            };
            let (bytes, crc32) = File::open(&path)
                .and_then(|file| sum(&file))
                .map_err(CriuError::file(&path))?;
            files.push(FileNote {
                name: name.to_owned(),
                bytes,
                crc32,
            });
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
        let note = place.manifest(&name);
        let write = || -> io::Result<()> {
            let draft = note.with_extension("new");
            let mut file = fs::OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&draft)?;
            file.write_all(&serde_json::to_vec(&manifest)?)?;
            file.sync_all()?;
            fs::rename(&draft, &note)?;
            File::open(&place.manifests)?.sync_all()
        };
        write().map_err(CriuError::file(&note))?;
        let image = Self::new(place, name, manifest);
        // They have just been summed.
        *image.checked.lock() = Some(image.stamps()?);
        Ok(image)
    }

    /// Reads an image's manifest; its files are looked at by [`Self::check`].
    ///
    /// # Errors
    /// [`CriuError::File`], [`CriuError::Damaged`].
    pub(super) fn open(place: &Place, name: String) -> Result<Self, CriuError> {
        let path = place.manifest(&name);
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
        Ok(Self::new(place, name, manifest))
    }

    fn new(place: &Place, name: String, manifest: Manifest) -> Self {
        Self {
            files: place.files(&name),
            note: place.manifest(&name),
            name,
            bytes: manifest.files.iter().map(|file| file.bytes).sum(),
            manifest,
            checked: Mutex::default(),
            failures: AtomicU32::new(0),
            shortages: AtomicU32::new(0),
            used: AtomicU64::new(0),
        }
    }

    /// Its name, by which the host process knows it.
    pub fn name(&self) -> String {
        self.name.clone()
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

    /// Whether the files are as written. Checksums are computed once; later it is enough that no file was touched.
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
            let path = self.files.join(&note.name);
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
            let path = self.files.join(&note.name);
            let meta = fs::symlink_metadata(&path).map_err(CriuError::file(&path))?;
            Ok((meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec()))
        };
        self.manifest.files.iter().map(stamp).collect()
    }

    /// Removes its manifest: the rest is no image any more, and the host process removes it.
    pub(super) fn disown(&self) {
        if let Err(error) = remove_file(&self.note) {
            tracing::warn!(manifest = %self.note.display(), %error, "cannot remove a manifest");
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

/// Where images are.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// The host process's directory, of which this one may read.
    pub(super) images: PathBuf,
    /// This process's own.
    pub(super) manifests: PathBuf,
}

impl Place {
    fn files(&self, name: &str) -> PathBuf {
        self.images.join(name).join(FILES)
    }

    fn manifest(&self, name: &str) -> PathBuf {
        self.manifests.join(format!("{name}.{MANIFEST}"))
    }

    /// Bytes of the files of an image to be.
    pub(super) fn stored(&self, name: &str) -> Result<u64, CriuError> {
        let dir = self.files(name);
        let sizes = fs::read_dir(&dir)
            .and_then(|entries| entries.map(|entry| Ok(entry?.metadata()?.len())).sum());
        sizes.map_err(CriuError::file(dir))
    }

    /// Removes the manifests of images that are not there.
    pub(super) fn clear_manifests(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.manifests)? {
            let path = entry?.path();
            let stem = path.file_stem().unwrap_or_default();
            if path.extension() != Some(MANIFEST.as_ref()) || !self.images.join(stem).is_dir() {
                remove_file(&path)?;
            }
        }
        Ok(())
    }
}

fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
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

    fn image(dir: &Path) -> (Place, Image) {
        let place = Place {
            images: dir.join("images"),
            manifests: dir.join("manifests"),
        };
        let key = Key {
            function: "f".into(),
            version: 1,
            fingerprint: "0123456789abcdef".repeat(4),
        };
        let files = place.files(&key.directory());
        fs::create_dir_all(&files).unwrap();
        fs::create_dir(&place.manifests).unwrap();
        fs::write(files.join("pages-1.img"), vec![7; 600_000]).unwrap();
        fs::write(files.join("core-1000.img"), "registers").unwrap();
        let made = Made {
            host: "host",
            runtime: "3.11.2",
            boot: Duration::from_millis(1234),
        };
        let image = Image::complete(&place, &key, &made).unwrap();
        (place, image)
    }

    #[test]
    fn what_was_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let (place, written) = image(dir.path());
        assert_eq!(written.bytes, 600_009);
        assert_eq!(place.stored(&written.name()).unwrap(), 600_009);
        let read = Image::open(&place, written.name()).unwrap();
        read.check().unwrap();
        read.check().unwrap();
        assert_eq!(read.runtime(), written.runtime());
        let mode = fs::metadata(&read.note).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_changed_byte_is_found_also_after_a_good_look() {
        let dir = tempfile::tempdir().unwrap();
        let (_, image) = image(dir.path());
        image.check().unwrap();
        let path = image.files.join("pages-1.img");
        let mut bytes = fs::read(&path).unwrap();
        bytes[599_999] ^= 1;
        fs::write(&path, bytes).unwrap();
        assert!(matches!(image.check(), Err(CriuError::Damaged(_))));
        fs::remove_file(&path).unwrap();
        assert!(matches!(image.check(), Err(CriuError::File { .. })));
    }

    #[test]
    fn files_without_a_good_manifest_are_no_image() {
        let dir = tempfile::tempdir().unwrap();
        let (place, image) = image(dir.path());
        let text = fs::read_to_string(&image.note).unwrap();
        for bad in [
            "",
            &text[..text.len() / 2],
            &text.replace("\"format\":5", "\"format\":4"),
        ] {
            fs::write(&image.note, bad).unwrap();
            assert!(Image::open(&place, image.name()).is_err());
        }
        image.disown();
        assert!(Image::open(&place, image.name()).is_err());
    }

    #[test]
    fn a_manifest_without_files_goes() {
        let dir = tempfile::tempdir().unwrap();
        let (place, image) = image(dir.path());
        let draft = place.manifests.join("other.new");
        fs::write(&draft, "").unwrap();
        place.clear_manifests().unwrap();
        assert!(image.note.exists() && !draft.exists());
        fs::remove_dir_all(place.images.join(image.name())).unwrap();
        place.clear_manifests().unwrap();
        assert!(!image.note.exists());
    }
}
