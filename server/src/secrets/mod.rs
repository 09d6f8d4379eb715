//! Secrets: values that functions use, sealed at rest. `server/docs/secrets.md` explains them.
//!
//! In memory, as in the database, values are sealed; they are opened for each use. [`key`] is the key file.

mod key;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use zeroize::Zeroizing;

pub use key::{KEY_FILE, KeyError};

use self::key::Key;
use crate::store::{Store, StoreError, StoredSecret};

/// Interval between writes of the times of last use. A crash loses at most this much.
const PERIOD: Duration = Duration::from_secs(60);
/// A use this soon after the last recorded one is not recorded, µs.
const RESOLUTION_US: i64 = 1_000_000;
/// Never used.
const NEVER: i64 = i64::MIN;

/// Why secrets are not available.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    /// The key file.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// For example, there is no randomness.
    #[error("a secret cannot be sealed: {0}")]
    Seal(std::io::Error),
}

/// All secrets. Cheap to clone.
#[derive(Clone)]
pub struct Secrets(Arc<Inner>);

struct Inner {
    store: Store,
    key: Key,
    known: ArcSwap<Known>,
    /// Held during a change of the database and of `known`.
    changing: tokio::sync::Mutex<()>,
}

type Known = HashMap<String, Arc<Entry>>;

struct Entry {
    stored: StoredSecret,
    /// µs since 1970.
    used: AtomicI64,
    /// The same, as the database has it.
    written: AtomicI64,
}

impl Entry {
    fn new(stored: StoredSecret) -> Arc<Self> {
        let used = stored.last_used_at.map_or(NEVER, Timestamp::as_microsecond);
        Arc::new(Self {
            stored,
            used: used.into(),
            written: used.into(),
        })
    }

    /// As it is now.
    fn shown(&self) -> StoredSecret {
        let used = Timestamp::from_microsecond(self.used.load(Ordering::Relaxed));
        StoredSecret {
            last_used_at: used.ok(),
            ..self.stored.clone()
        }
    }
}

impl Secrets {
    /// Loads secrets from the database and the key from the data directory; creates the key if there are no secrets yet.
    /// Needs a runtime.
    ///
    /// # Errors
    /// [`SecretsError`], such as a missing or wrong key.
    pub async fn open(data_dir: &Path, store: Store) -> Result<Self, SecretsError> {
        let stored = store.secrets().await?;
        let key = Key::load(data_dir, stored.len())?;
        for secret in &stored {
            if key
                .open(&secret.name, secret.revision, &secret.sealed)
                .is_err()
            {
                return Err(SecretsError::Key(KeyError::Wrong {
                    file: data_dir.join(KEY_FILE),
                    secret: secret.name.clone(),
                }));
            }
        }
        let known = stored
            .into_iter()
            .map(|secret| (secret.name.clone(), Entry::new(secret)))
            .collect();
        let secrets = Self(Arc::new(Inner {
            store,
            key,
            known: ArcSwap::from_pointee(known),
            changing: tokio::sync::Mutex::default(),
        }));
        tokio::spawn(write_uses(Arc::downgrade(&secrets.0)));
        Ok(secrets)
    }

    /// All, by name.
    pub fn all(&self) -> Vec<StoredSecret> {
        let known = self.0.known.load();
        let mut all: Vec<_> = known.values().map(|entry| entry.shown()).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// One of them.
    pub fn get(&self, name: &str) -> Option<StoredSecret> {
        let known = self.0.known.load();
        known.get(name).map(|entry| entry.shown())
    }

    /// Identifies a secret's value: each has another number.
    pub fn revision(&self, name: &str) -> Option<i64> {
        let known = self.0.known.load();
        known.get(name).map(|entry| entry.stored.revision)
    }

    /// A secret's value.
    pub fn value(&self, name: &str) -> Option<Zeroizing<String>> {
        let known = self.0.known.load();
        let StoredSecret {
            revision, sealed, ..
        } = &known.get(name)?.stored;
        // It was opened when it was loaded, so this does not fail.
        self.0.key.open(name, *revision, sealed).ok()
    }

    /// Records that a secret is used now.
    pub fn note_use(&self, name: &str) {
        let now = Timestamp::now().as_microsecond();
        if let Some(entry) = self.0.known.load().get(name)
            && now.saturating_sub(entry.used.load(Ordering::Relaxed)) >= RESOLUTION_US
        {
            entry.used.fetch_max(now, Ordering::Relaxed);
        }
    }

    /// Sets a secret's value, creating the secret if needed. True if it is new.
    ///
    /// # Errors
    /// [`SecretsError`]: nothing was changed.
    pub async fn put(&self, name: &str, value: &str) -> Result<bool, SecretsError> {
        let _changing = self.0.changing.lock().await;
        let now = Timestamp::now();
        let former = self.get(name);
        // The time, unless the clock was set back: no number is used twice.
        let newest = self.all().iter().map(|secret| secret.revision).max();
        let revision = now.as_microsecond().max(newest.map_or(0, |last| last + 1));
        let secret = StoredSecret {
            name: name.to_owned(),
            revision,
            sealed: self
                .0
                .key
                .seal(name, revision, value)
                .map_err(SecretsError::Seal)?,
            created_at: former.as_ref().map_or(now, |former| former.created_at),
            updated_at: now,
            last_used_at: former.as_ref().and_then(|former| former.last_used_at),
        };
        self.0.store.put_secret(&secret).await?;
        self.change(|known| drop(known.insert(name.to_owned(), Entry::new(secret))));
        Ok(former.is_none())
    }

    /// Deletes a secret. False if there is none of this name.
    ///
    /// # Errors
    /// [`StoreError`]: nothing was changed.
    pub async fn delete(&self, name: &str) -> Result<bool, StoreError> {
        let _changing = self.0.changing.lock().await;
        if self.get(name).is_none() {
            return Ok(false);
        }
        self.0.store.delete_secret(name).await?;
        self.change(|known| drop(known.remove(name)));
        Ok(true)
    }

    /// The caller holds `changing`.
    fn change(&self, change: impl FnOnce(&mut Known)) {
        let mut known = Known::clone(&self.0.known.load());
        change(&mut known);
        self.0.known.store(Arc::new(known));
    }

    /// 32 bytes derived from the key for what these words name; always the same.
    pub fn seed(&self, words: &[&[u8]]) -> Zeroizing<[u8; 32]> {
        self.0.key.seed(words)
    }

    /// Writes times of last use.
    ///
    /// # Errors
    /// [`StoreError`]: it is tried again.
    pub async fn write_uses(&self) -> Result<(), StoreError> {
        let known = self.0.known.load_full();
        let news: Vec<_> = known
            .values()
            .filter_map(|entry| {
                let used = entry.used.load(Ordering::Relaxed);
                (used != entry.written.load(Ordering::Relaxed)).then_some((entry, used))
            })
            .collect();
        let uses: Vec<_> = news
            .iter()
            .filter_map(|(entry, used)| {
                let used = Timestamp::from_microsecond(*used).ok()?;
                Some((entry.stored.name.clone(), used))
            })
            .collect();
        if uses.is_empty() {
            return Ok(());
        }
        self.0.store.note_secret_uses(&uses).await?;
        for (entry, used) in news {
            entry.written.store(used, Ordering::Relaxed);
        }
        Ok(())
    }
}

async fn write_uses(inner: Weak<Inner>) {
    loop {
        tokio::time::sleep(PERIOD).await;
        let Some(inner) = inner.upgrade() else { return };
        if let Err(error) = Secrets(inner).write_uses().await {
            tracing::warn!(%error, "cannot write the last use of some secrets yet");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn open(dir: &Path) -> Result<Secrets, SecretsError> {
        let store = Store::open(&dir.join("hearth.db")).await?;
        Secrets::open(dir, store).await
    }

    async fn close(secrets: Secrets) {
        secrets.write_uses().await.unwrap();
        secrets.0.store.close().await;
    }

    #[tokio::test]
    async fn secrets_are_kept_sealed_and_read_again() {
        const VALUE: &str = "sk_live_0123456789abcdef";
        let dir = tempfile::tempdir().unwrap();
        let secrets = open(dir.path()).await.unwrap();
        assert!(secrets.put("stripe", "former").await.unwrap());
        let former = secrets.revision("stripe").unwrap();
        assert!(!secrets.put("stripe", VALUE).await.unwrap());
        assert!(secrets.revision("stripe").unwrap() > former);
        secrets.note_use("stripe");
        let shown = secrets.get("stripe").unwrap();
        assert!(shown.last_used_at.is_some() && shown.updated_at >= shown.created_at);
        close(secrets).await;
        for entry in std::fs::read_dir(dir.path()).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            assert!(
                !bytes
                    .windows(VALUE.len())
                    .any(|part| part == VALUE.as_bytes())
            );
        }
        let secrets = open(dir.path()).await.unwrap();
        assert_eq!(secrets.value("stripe").unwrap().as_str(), VALUE);
        let again = secrets.get("stripe").unwrap();
        assert_eq!(again.last_used_at, shown.last_used_at);
        assert!(secrets.delete("stripe").await.unwrap());
        assert!(!secrets.delete("stripe").await.unwrap());
        assert!(secrets.value("stripe").is_none());
        // A later one of the same name has another revision, so that no image of the former one is taken for it.
        secrets.put("stripe", VALUE).await.unwrap();
        assert!(secrets.revision("stripe").unwrap() > again.revision);
    }

    #[tokio::test]
    async fn a_key_that_is_missing_or_another_one_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let secrets = open(dir.path()).await.unwrap();
        secrets.put("stripe", "value").await.unwrap();
        close(secrets).await;
        let file = dir.path().join(KEY_FILE);
        let key = std::fs::read(&file).unwrap();
        std::fs::write(&file, [7; 32]).unwrap();
        let Err(error) = open(dir.path()).await else {
            panic!("opened with another key")
        };
        assert!(error.to_string().contains("not the key"), "{error}");
        std::fs::remove_file(&file).unwrap();
        let Err(error) = open(dir.path()).await else {
            panic!("opened without a key")
        };
        assert!(
            error.to_string().contains("missing") && !file.exists(),
            "{error}"
        );
        std::fs::write(&file, key).unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .unwrap();
        assert!(open(dir.path()).await.is_ok());
    }
}
