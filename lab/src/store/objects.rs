//! The objects: files without a name, so that nothing is left of them when the process ends.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::OBJECT_MAX;

/// Most bytes of all objects together, those that are being written or read included.
const TOTAL_MAX: u64 = 4 << 30;

/// Most objects: each is an open file.
const COUNT_MAX: usize = 2_048;

/// Bytes that are read at a time.
const PART: u64 = 256 << 10;

/// Why there is no room for an object.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoRoom {
    /// It is larger than one may be.
    #[error("an object has at most {0} bytes")]
    TooLarge(u64),
    /// All room is taken by objects that are being written or read.
    #[error("the store is full")]
    Full,
    /// The directory does not take it.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) object: u64,
    pub(super) total: u64,
    pub(super) count: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            object: OBJECT_MAX,
            total: TOTAL_MAX,
            count: COUNT_MAX,
        }
    }
}

/// All objects. To make room, the oldest go.
#[derive(Debug)]
pub(super) struct Objects {
    directory: PathBuf,
    limits: Limits,
    used: Arc<AtomicU64>,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    by_key: HashMap<String, Arc<Object>>,
    /// Keys by the number of their objects, which rise with time.
    by_age: BTreeMap<u64, String>,
    next: u64,
}

/// Bytes of the store's, taken until this value is dropped.
#[derive(Debug)]
struct Share {
    used: Arc<AtomicU64>,
    bytes: u64,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// One that is being written.
#[derive(Debug)]
pub(super) struct Incoming {
    file: File,
    written: u64,
    share: Share,
}

/// One that is complete.
#[derive(Debug)]
pub(super) struct Object {
    file: File,
    number: u64,
    share: Share,
}

impl Incoming {
    /// Adds bytes.
    ///
    /// # Errors
    /// What the file system says; more bytes than were announced.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len() as u64;
        if self.written > self.share.bytes {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.file.write_all(bytes)
    }
}

impl Object {
    /// In bytes.
    pub(super) fn length(&self) -> u64 {
        self.share.bytes
    }

    /// A tag that no other object has.
    pub(super) fn tag(&self) -> String {
        format!("\"{:032x}\"", self.number)
    }

    /// The part of it that begins there.
    ///
    /// # Errors
    /// What the file system says.
    pub(super) fn read(&self, at: u64) -> io::Result<Vec<u8>> {
        let left = self.length().saturating_sub(at);
        let mut part = vec![0; left.min(PART) as usize];
        self.file.read_exact_at(&mut part, at)?;
        Ok(part)
    }
}

impl Kept {
    fn remove(&mut self, key: &str) -> bool {
        let removed = self.by_key.remove(key);
        if let Some(object) = &removed {
            self.by_age.remove(&object.number);
        }
        removed.is_some()
    }

    /// Whether there was one.
    fn remove_oldest(&mut self) -> bool {
        let Some((_, key)) = self.by_age.pop_first() else {
            return false;
        };
        self.by_key.remove(&key);
        true
    }
}

impl Objects {
    /// None yet; their files are in this directory.
    pub(super) fn new(directory: PathBuf, limits: Limits) -> Self {
        Self {
            directory,
            limits,
            used: Arc::default(),
            kept: Mutex::default(),
        }
    }

    /// Makes room for an object of so many bytes.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn begin(&self, length: u64) -> Result<Incoming, NoRoom> {
        if length > self.limits.object {
            return Err(NoRoom::TooLarge(self.limits.object));
        }
        let share = loop {
            if let Some(share) = self.take(length) {
                break share;
            }
            if !self.kept().remove_oldest() {
                return Err(NoRoom::Full);
            }
        };
        Ok(Incoming {
            file: tempfile::tempfile_in(&self.directory)?,
            written: 0,
            share,
        })
    }

    /// Puts an object in its place; one that is there is replaced.
    ///
    /// # Errors
    /// It is not complete.
    pub(super) fn finish(&self, key: &str, incoming: Incoming) -> io::Result<Arc<Object>> {
        if incoming.written != incoming.share.bytes {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut kept = self.kept();
        kept.remove(key);
        while kept.by_key.len() >= self.limits.count && kept.remove_oldest() {}
        let number = kept.next;
        kept.next += 1;
        let object = Arc::new(Object {
            file: incoming.file,
            number,
            share: incoming.share,
        });
        kept.by_age.insert(number, key.to_owned());
        kept.by_key.insert(key.to_owned(), object.clone());
        Ok(object)
    }

    /// The object of a key.
    pub(super) fn get(&self, key: &str) -> Option<Arc<Object>> {
        self.kept().by_key.get(key).cloned()
    }

    /// Removes the object of a key, if there is one.
    pub(super) fn remove(&self, key: &str) {
        self.kept().remove(key);
    }

    fn take(&self, bytes: u64) -> Option<Share> {
        let room = |used: u64| {
            let used = used.checked_add(bytes)?;
            (used <= self.limits.total).then_some(used)
        };
        let order = Ordering::Relaxed;
        self.used.fetch_update(order, order, room).ok()?;
        Some(Share {
            used: self.used.clone(),
            bytes,
        })
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Nothing panics while it is held.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects() -> Objects {
        let limits = Limits {
            object: 100,
            total: 250,
            count: 4,
        };
        Objects::new(std::env::temp_dir(), limits)
    }

    fn put(objects: &Objects, key: &str, bytes: &[u8]) -> Arc<Object> {
        let mut incoming = objects.begin(bytes.len() as u64).expect("room");
        incoming.write(bytes).expect("written");
        objects.finish(key, incoming).expect("complete")
    }

    #[test]
    fn an_object_is_read_as_it_was_written_and_replaced_whole() {
        let objects = objects();
        let first = put(&objects, "a", b"one");
        let second = put(&objects, "a", b"other");
        assert_eq!(first.read(0).expect("read"), b"one");
        let found = objects.get("a").expect("it is there");
        assert_eq!(
            (found.length(), found.read(1).expect("read")),
            (5, b"ther".to_vec())
        );
        assert_ne!(first.tag(), second.tag());
        objects.remove("a");
        assert!(objects.get("a").is_none());
        drop((first, second, found));
        assert_eq!(objects.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn the_oldest_make_room_and_those_in_use_do_not() {
        let objects = objects();
        assert!(matches!(objects.begin(101), Err(NoRoom::TooLarge(100))));
        let held = put(&objects, "a", &[1; 100]);
        put(&objects, "b", &[2; 100]);
        put(&objects, "c", &[3; 100]);
        // "a" is out of reach, and "b" has made room, because "a" is still being read.
        assert!(objects.get("a").is_none() && objects.get("b").is_none());
        assert_eq!(held.read(0).expect("read"), [1; 100]);
        let writing = objects.begin(100).expect("room");
        assert!(matches!(objects.begin(100), Err(NoRoom::Full)));
        drop((held, writing));
        assert!(objects.begin(100).is_ok());
    }

    #[test]
    fn there_are_never_more_than_their_files_allow() {
        let objects = objects();
        for key in ["a", "b", "c", "d", "e"] {
            put(&objects, key, b"x");
        }
        assert!(objects.get("a").is_none());
        assert!(
            ["b", "c", "d", "e"]
                .iter()
                .all(|key| objects.get(key).is_some())
        );
    }

    #[test]
    fn what_is_not_as_long_as_announced_is_not_kept() {
        let objects = objects();
        let mut short = objects.begin(3).expect("room");
        short.write(b"ab").expect("written");
        assert!(objects.finish("a", short).is_err());
        let mut long = objects.begin(1).expect("room");
        assert!(long.write(b"ab").is_err());
        drop(long);
        assert!(objects.get("a").is_none());
        assert_eq!(objects.used.load(Ordering::Relaxed), 0);
    }
}
