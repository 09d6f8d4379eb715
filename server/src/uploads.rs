//! Uploaded code before unpacking: in an unnamed file, counted against a budget.
//!
//! ```text
//! body ─▶ Spool (256 KiB) ─▶ file in the data directory ─▶ Upload ─▶ package::unpack
//!             └─ UploadSpace: what all uploads take together, until the last part of one is dropped
//! ```
//!
//! The file has no name (`O_TMPFILE`), so the kernel removes it with its last descriptor, even after a crash.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use crate::limits::budget::{Budget, Claim, Full};
use crate::limits::{UPLOAD_FREE, UPLOADS_IN_MEMORY, UPLOADS_ON_DISK};

/// Why an upload was not taken. Nothing of it is kept.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The others take all there is.
    #[error("concurrent uploads use all of the {} bytes available; try again", .0.most)]
    Full(Full),
    /// It could not be written.
    #[error("cannot store the upload in the data directory: {0}")]
    Io(#[from] io::Error),
}

/// All uploads of the server. Cheap to clone.
#[derive(Clone)]
pub struct Uploads(Arc<Shared>);

struct Shared {
    dir: PathBuf,
    disk: Budget,
    memory: Budget,
}

impl Uploads {
    /// Those whose files are in `dir`, which must exist.
    pub fn new(dir: &Path) -> Self {
        Self::with(dir, UPLOADS_ON_DISK, UPLOADS_IN_MEMORY)
    }

    fn with(dir: &Path, on_disk: usize, in_memory: usize) -> Self {
        Self(Arc::new(Shared {
            dir: dir.to_owned(),
            disk: Budget::of(on_disk),
            memory: Budget::of(in_memory),
        }))
    }

    #[cfg(test)]
    pub(crate) fn for_tests() -> Self {
        Self::new(&std::env::temp_dir())
    }

    /// Begins an upload.
    pub fn spool(&self) -> Spool {
        Spool {
            buffer: Vec::new(),
            file: None,
            written: 0,
            uploads: self.clone(),
            held: UploadSpace(self.0.disk.claim()),
        }
    }

    /// Counts what is held in memory beside: nothing yet.
    pub fn in_memory(&self) -> UploadSpace {
        UploadSpace(self.0.memory.claim())
    }
}

impl fmt::Debug for Uploads {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Uploads").field(&self.0.dir).finish()
    }
}

/// Bytes that are counted until it is dropped.
#[derive(Debug)]
pub struct UploadSpace(Claim);

impl UploadSpace {
    /// Counts what has grown to `bytes`. What is small is not counted.
    ///
    /// # Errors
    /// [`UploadError::Full`] when all together would be too large; then nothing more is counted.
    pub fn grow_to(&mut self, bytes: usize) -> Result<(), UploadError> {
        let counted = self.0.bytes();
        if bytes <= counted.max(UPLOAD_FREE) {
            return Ok(());
        }
        // By whole steps, so that the count is not touched for each piece.
        let more = (bytes - counted).next_multiple_of(UPLOAD_FREE);
        self.0.grow(more).map_err(UploadError::Full)
    }
}

/// An upload that is arriving.
#[derive(Debug)]
pub struct Spool {
    /// What is not in the file yet.
    buffer: Vec<u8>,
    /// Once it is larger than [`UPLOAD_FREE`].
    file: Option<Arc<File>>,
    /// Bytes in the file.
    written: usize,
    uploads: Uploads,
    held: UploadSpace,
}

impl Spool {
    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.written + self.buffer.len()
    }

    /// Whether nothing has come.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the next piece. The caller bounds the whole.
    ///
    /// # Errors
    /// [`UploadError`]; the upload is of no use then.
    pub async fn write(&mut self, piece: &[u8]) -> Result<(), UploadError> {
        self.buffer.extend_from_slice(piece);
        match self.buffer.len() > UPLOAD_FREE {
            true => self.flush().await,
            false => Ok(()),
        }
    }

    /// All of it.
    ///
    /// # Errors
    /// [`UploadError`].
    pub async fn finish(mut self) -> Result<Upload, UploadError> {
        if self.file.is_some() {
            self.flush().await?;
        }
        let content = match self.file {
            Some(file) => Content::File {
                file,
                bytes: self.written as u64,
            },
            None => Content::Memory(self.buffer.into()),
        };
        Ok(Upload::of(content, self.held))
    }

    async fn flush(&mut self) -> Result<(), UploadError> {
        self.held.grow_to(self.len())?;
        let mut buffer = std::mem::take(&mut self.buffer);
        let (uploads, file) = (self.uploads.clone(), self.file.take());
        let written = tokio::task::spawn_blocking(move || {
            let file = match file {
                Some(file) => file,
                None => Arc::new(tempfile::tempfile_in(&uploads.0.dir)?),
            };
            (&*file).write_all(&buffer)?;
            let count = buffer.len();
            buffer.clear();
            Ok::<_, io::Error>((file, buffer, count))
        });
        let (file, buffer, count) = written.await.map_err(io::Error::other)??;
        self.written += count;
        self.file = Some(file);
        self.buffer = buffer;
        Ok(())
    }
}

/// An upload that has arrived. Its copies are one; it is counted until the last of them is dropped.
#[derive(Debug, Clone)]
pub struct Upload(Arc<Whole>);

#[derive(Debug)]
struct Whole {
    content: Content,
    _held: Option<UploadSpace>,
}

#[derive(Debug)]
enum Content {
    Memory(Bytes),
    File { file: Arc<File>, bytes: u64 },
}

impl Upload {
    fn of(content: Content, held: impl Into<Option<UploadSpace>>) -> Self {
        Self(Arc::new(Whole {
            content,
            _held: held.into(),
        }))
    }

    /// Text that came as a part of something else, and how it is counted.
    pub fn text(text: String, held: Option<UploadSpace>) -> Self {
        Self::of(Content::Memory(text.into()), held)
    }

    /// Bytes of it.
    pub fn len(&self) -> u64 {
        match &self.0.content {
            Content::Memory(bytes) => bytes.len() as u64,
            Content::File { bytes, .. } => *bytes,
        }
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads it from its beginning.
    pub fn reader(&self) -> Reader<'_> {
        Reader {
            upload: self,
            at: 0,
        }
    }

    /// `count` bytes from `at` on, or as many as there are.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn part(&self, at: u64, count: usize) -> io::Result<Vec<u8>> {
        let mut reader = Reader { upload: self, at };
        let mut part = Vec::new();
        reader.by_ref().take(count as u64).read_to_end(&mut part)?;
        Ok(part)
    }
}

impl From<Vec<u8>> for Upload {
    fn from(bytes: Vec<u8>) -> Self {
        Self::of(Content::Memory(bytes.into()), None)
    }
}

impl From<&str> for Upload {
    fn from(text: &str) -> Self {
        Self::text(text.to_owned(), None)
    }
}

/// Reads an upload where it is.
#[derive(Debug)]
pub struct Reader<'u> {
    upload: &'u Upload,
    at: u64,
}

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match &self.upload.0.content {
            Content::Memory(bytes) => {
                let from = usize::try_from(self.at).map_or(bytes.len(), |at| at.min(bytes.len()));
                (&bytes[from..]).read(buffer)?
            }
            Content::File { file, .. } => file.read_at(buffer, self.at)?,
        };
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Reader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.upload.len().checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(uploads: &Uploads) -> (usize, usize) {
        (uploads.0.disk.taken(), uploads.0.memory.taken())
    }

    async fn upload(uploads: &Uploads, bytes: usize) -> Result<Upload, UploadError> {
        let mut spool = uploads.spool();
        let content: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
        for piece in content.chunks(100_000) {
            spool.write(piece).await?;
        }
        assert_eq!(spool.len(), bytes);
        spool.finish().await
    }

    #[tokio::test]
    async fn all_uploads_together_have_a_budget_that_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let uploads = Uploads::with(dir.path(), 8 * UPLOAD_FREE, 4 * UPLOAD_FREE);
        let first = upload(&uploads, 6 * UPLOAD_FREE).await.unwrap();
        let small = upload(&uploads, UPLOAD_FREE).await.unwrap();
        assert_eq!(taken(&uploads).0, 6 * UPLOAD_FREE, "small ones pass");
        let refused = upload(&uploads, 3 * UPLOAD_FREE).await;
        assert!(matches!(refused, Err(UploadError::Full(_))), "{refused:?}");
        assert_eq!(taken(&uploads).0, 6 * UPLOAD_FREE, "and leaves nothing");
        let copy = first.clone();
        drop(first);
        assert!(upload(&uploads, 3 * UPLOAD_FREE).await.is_err());
        drop(copy);
        assert!(upload(&uploads, 3 * UPLOAD_FREE).await.is_ok());
        // One that breaks off.
        let mut spool = uploads.spool();
        spool.write(&vec![0; 2 * UPLOAD_FREE]).await.unwrap();
        assert_eq!(taken(&uploads).0, 2 * UPLOAD_FREE);
        drop((spool, small));
        // Memory has a share of its own.
        let mut held = uploads.in_memory();
        held.grow_to(4 * UPLOAD_FREE).unwrap();
        assert!(uploads.in_memory().grow_to(2 * UPLOAD_FREE).is_err());
        drop(Upload::text("x".into(), Some(held)));
        assert_eq!(taken(&uploads), (0, 0));
    }

    #[tokio::test]
    async fn a_large_upload_is_a_file_without_a_name_and_reads_as_it_came() {
        let dir = tempfile::tempdir().unwrap();
        let uploads = Uploads::new(dir.path());
        for bytes in [0, 1, UPLOAD_FREE, UPLOAD_FREE + 1, 3 * UPLOAD_FREE + 7] {
            let upload = upload(&uploads, bytes).await.unwrap();
            let on_disk = matches!(upload.0.content, Content::File { .. });
            assert_eq!(on_disk, bytes > UPLOAD_FREE, "{bytes}");
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
            assert_eq!(upload.len(), bytes as u64);
            let whole = upload.part(0, bytes + 1).unwrap();
            assert!(
                whole
                    .iter()
                    .enumerate()
                    .all(|(at, b)| *b == (at % 251) as u8)
            );
            assert_eq!(whole.len(), bytes);
            let mut reader = upload.reader();
            reader.seek(SeekFrom::End(0)).unwrap();
            assert_eq!(reader.read(&mut [0; 9]).unwrap(), 0);
            assert!(reader.seek(SeekFrom::Current(-(bytes as i64) - 1)).is_err());
            assert!(upload.part(bytes as u64 + 9, 9).unwrap().is_empty());
        }
    }

    #[tokio::test]
    async fn what_cannot_be_written_is_an_error_of_the_disk() {
        let uploads = Uploads::new(Path::new("/nowhere/at/all"));
        let refused = upload(&uploads, UPLOAD_FREE + 1).await;
        assert!(matches!(refused, Err(UploadError::Io(_))), "{refused:?}");
        assert_eq!(taken(&uploads), (0, 0));
    }
}
