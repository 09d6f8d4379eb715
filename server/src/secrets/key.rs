//! The key file. The key seals and opens values, and the keys of authorities are derived from it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use ring::aead::{self, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf;
use zeroize::Zeroizing;

/// Name of the file in the data directory.
pub const KEY_FILE: &str = "secrets.key";
/// Its size in bytes.
const KEY_BYTES: usize = 32;
/// Permission bits of group and others.
const OTHERS: u32 = 0o077;

/// Why there is no usable key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// There are secrets, and no key.
    #[error(
        "{}: missing, but the database has {count} secrets that were sealed with it; put it back from a backup, or delete \
         them (sqlite3 hearth.db 'DELETE FROM secrets')", file.display()
    )]
    Missing {
        /// Where it should be.
        file: PathBuf,
        /// Secrets that there are.
        count: usize,
    },
    /// It is another one.
    #[error(
        "{}: not the key that the secret \"{secret}\" was sealed with; put the right one back from a backup, or delete what \
         cannot be opened (sqlite3 hearth.db 'DELETE FROM secrets')", file.display()
    )]
    Wrong {
        /// The key's file.
        file: PathBuf,
        /// The first that it does not open.
        secret: String,
    },
    /// It is no key.
    #[error("{}: has {length} bytes; a key has {KEY_BYTES}", file.display())]
    Size {
        /// The file.
        file: PathBuf,
        /// Its size.
        length: usize,
    },
    /// Others can read it.
    #[error("{}: can be read by others than its owner (mode {mode:o}); chmod 600 it", file.display())]
    Exposed {
        /// The file.
        file: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// It cannot be read or written.
    #[error("{}: {error}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// The key.
pub(super) struct Key {
    seal: LessSafeKey,
    derive: hkdf::Prk,
}

/// Bytes that were not sealed by this key, or for another name or revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotSealedByIt;

impl Key {
    /// Reads the file, or makes it if there are no secrets yet.
    pub(super) fn load(data_dir: &Path, secrets: usize) -> Result<Self, KeyError> {
        let file = data_dir.join(KEY_FILE);
        let failed = |error| KeyError::Io {
            file: file.clone(),
            error,
        };
        let bytes = match std::fs::read(&file) {
            Ok(bytes) => Zeroizing::new(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => match secrets {
                0 => create(&file).map_err(failed)?,
                count => return Err(KeyError::Missing { file, count }),
            },
            Err(error) => return Err(failed(error)),
        };
        let mode = std::fs::metadata(&file).map_err(failed)?;
        let mode = mode.permissions().mode() & 0o777;
        if mode & OTHERS != 0 {
            return Err(KeyError::Exposed { file, mode });
        }
        let length = bytes.len();
        Self::new(&bytes).ok_or(KeyError::Size { file, length })
    }

    pub(super) fn new(bytes: &[u8]) -> Option<Self> {
        // Each use has a key of its own.
        let root = hkdf::Salt::new(hkdf::HKDF_SHA256, b"hearth secrets");
        let derive = root.extract(<&[u8; KEY_BYTES]>::try_from(bytes).ok()?);
        let mut seal = Zeroizing::new([0; KEY_BYTES]);
        expand(&derive, &[b"seal"], &mut seal)?;
        let seal = UnboundKey::new(&aead::CHACHA20_POLY1305, &*seal).ok()?;
        Some(Self {
            seal: LessSafeKey::new(seal),
            derive,
        })
    }

    /// A value, sealed for one name and revision: a random nonce, then what only this key opens.
    pub(super) fn seal(&self, name: &str, revision: i64, value: &str) -> io::Result<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(|error| io::Error::other(error.to_string()))?;
        let mut sealed = Zeroizing::new(value.as_bytes().to_vec());
        let tag = self
            .seal
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                bound_to(name, revision),
                &mut sealed,
            )
            .map_err(|_| io::Error::other("the value cannot be sealed"))?;
        Ok([&nonce[..], &sealed, tag.as_ref()].concat())
    }

    /// The value again.
    pub(super) fn open(
        &self,
        name: &str,
        revision: i64,
        sealed: &[u8],
    ) -> Result<Zeroizing<String>, NotSealedByIt> {
        let (nonce, sealed) = sealed
            .split_first_chunk::<NONCE_LEN>()
            .ok_or(NotSealedByIt)?;
        let mut opened = Zeroizing::new(sealed.to_vec());
        let value = self
            .seal
            .open_in_place(
                Nonce::assume_unique_for_key(*nonce),
                bound_to(name, revision),
                &mut opened,
            )
            .map_err(|_| NotSealedByIt)?;
        let text = std::str::from_utf8(value).map_err(|_| NotSealedByIt)?;
        Ok(Zeroizing::new(text.to_owned()))
    }

    /// 32 bytes that nobody without the key can know, always the same for the same words.
    pub(super) fn seed(&self, words: &[&[u8]]) -> Zeroizing<[u8; 32]> {
        let mut seed = Zeroizing::new([0; 32]);
        // Lengths first, so that no two lists of words are one.
        let lengths: Vec<[u8; 8]> = words
            .iter()
            .map(|word| (word.len() as u64).to_le_bytes())
            .collect();
        let mut info: Vec<&[u8]> = vec![b"seed"];
        for (length, word) in lengths.iter().zip(words) {
            info.extend([&length[..], word]);
        }
        // It fails for more than 8160 bytes only.
        let _ = expand(&self.derive, &info, &mut seed);
        seed
    }
}

fn expand(derive: &hkdf::Prk, info: &[&[u8]], to: &mut [u8; 32]) -> Option<()> {
    let derived = derive.expand(info, hkdf::HKDF_SHA256).ok()?;
    derived.fill(to).ok()
}

/// A sealed value opens under its own name and revision only: whoever can write the database cannot exchange them.
fn bound_to(name: &str, revision: i64) -> Aad<Vec<u8>> {
    Aad::from([name.as_bytes(), b"\0", &revision.to_le_bytes()].concat())
}

/// Written beside and renamed: a crash leaves a whole key or none.
fn create(file: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut key = Zeroizing::new(vec![0; KEY_BYTES]);
    getrandom::fill(&mut key).map_err(|error| io::Error::other(error.to_string()))?;
    let draft = file.with_extension("key.new");
    // One that a crash left may have other permissions.
    match std::fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut out = OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(&draft)?;
    out.write_all(&key)?;
    out.sync_all()?;
    std::fs::rename(&draft, file)?;
    // The name, too, before anything is sealed with it.
    let dir = file.parent().unwrap_or(Path::new("."));
    File::open(dir)?.sync_all()?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(byte: u8) -> Key {
        Key::new(&[byte; KEY_BYTES]).unwrap()
    }

    proptest! {
        #[test]
        fn what_was_sealed_is_opened_and_nothing_else(
            value in ".{0,200}", revision: i64, at: prop::sample::Index, bit in 0..8_u32,
        ) {
            let sealed = key(1).seal("stripe", revision, &value).unwrap();
            let opened = key(1).open("stripe", revision, &sealed).unwrap();
            prop_assert_eq!(&*opened, &value);
            prop_assert!(value.len() < 4 || !sealed.windows(value.len()).any(|part| part == value.as_bytes()));
            prop_assert!(key(2).open("stripe", revision, &sealed).is_err());
            prop_assert!(key(1).open("stripf", revision, &sealed).is_err());
            prop_assert!(key(1).open("stripe", revision ^ 1, &sealed).is_err());
            let mut changed = sealed.clone();
            let at = at.index(changed.len());
            changed[at] ^= 1 << bit;
            prop_assert!(key(1).open("stripe", revision, &changed).is_err());
            prop_assert!(key(1).open("stripe", revision, &sealed[..at]).is_err());
        }
    }

    #[test]
    fn seeds_are_the_same_for_the_same_words() {
        assert_eq!(*key(1).seed(&[b"a", b"b"]), *key(1).seed(&[b"a", b"b"]));
        assert_ne!(*key(1).seed(&[b"a", b"b"]), *key(1).seed(&[b"ab", b""]));
        assert_ne!(*key(1).seed(&[b"a"]), *key(2).seed(&[b"a"]));
        assert_ne!(*key(1).seed(&[]), [0; 32]);
    }

    #[test]
    fn the_file_is_made_once_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(KEY_FILE);
        assert!(matches!(
            Key::load(dir.path(), 2),
            Err(KeyError::Missing { count: 2, .. })
        ));
        let first = Key::load(dir.path(), 0).unwrap();
        let sealed = first.seal("a", 1, "value").unwrap();
        assert_eq!(
            std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let again = Key::load(dir.path(), 2).unwrap();
        assert_eq!(&*again.open("a", 1, &sealed).unwrap(), "value");
        let mode = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode));
        mode(0o640).unwrap();
        assert!(matches!(
            Key::load(dir.path(), 0),
            Err(KeyError::Exposed { mode: 0o640, .. })
        ));
        mode(0o600).unwrap();
        std::fs::write(&file, b"short").unwrap();
        assert!(matches!(
            Key::load(dir.path(), 0),
            Err(KeyError::Size { length: 5, .. })
        ));
    }
}
