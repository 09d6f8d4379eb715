//! Hashes passwords with argon2id, a few at a time and off the threads that serve requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{Error as HashError, PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use tokio::sync::Semaphore;

/// Memory of one hash, KiB. This and the two below are the second of the equally strong settings that OWASP's Password
/// Storage Cheat Sheet gives for argon2id (RFC 9106): 19 MiB, two passes, one lane.
const MEMORY_KIB: u32 = 19 * 1024;
/// Passes over that memory.
const PASSES: u32 = 2;
/// Lanes; there is one thread a hash.
const LANES: u32 = 1;

/// Hashes at one time: they take 38 MiB together and leave processors for functions.
const AT_ONCE: usize = 2;
/// Requests that may wait. Hashing takes tens of milliseconds, so the last one waits about a second; more than this
/// indicates an attack.
const MAX_WAITING: usize = 32;

/// Checked when there is no such user, so that the answer takes as long as for one there is. No password has this hash.
const NOBODY: &str = "$argon2id$v=19$m=19456,t=2,p=1$aGVhcnRoLW5vYm9keS1ob21l$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Why a password was neither hashed nor checked.
#[derive(Debug, thiserror::Error)]
pub enum PasswordError {
    /// Too many are waiting.
    #[error("too many passwords are being checked")]
    Busy,
    /// argon2 refused, the stored hash is not one, or the runtime is shutting down.
    #[error("a password could not be hashed: {0}")]
    Failed(String),
}

/// Hashes and checks passwords.
#[derive(Debug)]
pub struct Passwords {
    permits: Arc<Semaphore>,
    /// Those that hash and those that wait.
    inside: AtomicUsize,
}

impl Default for Passwords {
    fn default() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(AT_ONCE)),
            inside: AtomicUsize::new(0),
        }
    }
}

impl Passwords {
    /// The PHC string to store: algorithm, parameters, a new salt, and the hash.
    ///
    /// # Errors
    /// See [`PasswordError`].
    pub async fn hash(&self, password: &str) -> Result<String, PasswordError> {
        let password = password.to_owned();
        self.in_turn(move || {
            let hash: PasswordHash = argon2()?
                .hash_password(password.as_bytes())
                .map_err(failed)?;
            Ok(hash.to_string())
        })
        .await
    }

    /// Whether this is the password that was hashed. `None` stands for a user who does not exist: it takes as long, and
    /// the answer is no.
    ///
    /// # Errors
    /// See [`PasswordError`].
    pub async fn verify(
        &self,
        password: &str,
        hash: Option<String>,
    ) -> Result<bool, PasswordError> {
        let password = password.to_owned();
        self.in_turn(move || {
            let known = hash.is_some();
            let hash = hash.unwrap_or_else(|| NOBODY.to_owned());
            // The parameters are those of the hash.
            match argon2()?.verify_password(password.as_bytes(), hash.as_str()) {
                Ok(()) => Ok(known),
                Err(HashError::PasswordInvalid) => Ok(false),
                Err(error) => Err(failed(error)),
            }
        })
        .await
    }

    async fn in_turn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, PasswordError> + Send + 'static,
    ) -> Result<T, PasswordError> {
        let _inside = Inside::enter(&self.inside)?;
        let permit = Arc::clone(&self.permits)
            .acquire_owned()
            .await
            .map_err(failed)?;
        // The permit goes along: when the caller is gone, the memory is still in use until the hash is done.
        let hashing = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work()
        });
        hashing.await.map_err(failed)?
    }
}

/// Counts a caller for as long as it lives.
struct Inside<'c>(&'c AtomicUsize);

impl<'c> Inside<'c> {
    fn enter(count: &'c AtomicUsize) -> Result<Self, PasswordError> {
        let inside = Self(count);
        match count.fetch_add(1, Ordering::Relaxed) {
            before if before < AT_ONCE + MAX_WAITING => Ok(inside),
            _ => Err(PasswordError::Busy),
        }
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn argon2() -> Result<Argon2<'static>, PasswordError> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None).map_err(failed)?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

fn failed(error: impl std::fmt::Display) -> PasswordError {
    PasswordError::Failed(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_password_fits_its_hash_and_no_other_does() {
        let passwords = Passwords::default();
        let hash = passwords.hash("correct horse battery").await.unwrap();
        assert!(
            hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
            "{hash}"
        );
        assert_ne!(hash, passwords.hash("correct horse battery").await.unwrap());
        let verify = |password: &'static str, hash: Option<&str>| {
            passwords.verify(password, hash.map(str::to_owned))
        };
        assert!(verify("correct horse battery", Some(&hash)).await.unwrap());
        assert!(!verify("correct horse batterY", Some(&hash)).await.unwrap());
        assert!(!verify("", Some(&hash)).await.unwrap());
        assert!(!verify("correct horse battery", None).await.unwrap());
        assert!(verify("x", Some("not a hash")).await.is_err());
    }

    /// The stand-in costs what a real hash does.
    #[test]
    fn nobody_is_checked_with_the_same_parameters() {
        let of = |text: &str| {
            let hash = PasswordHash::new(text).unwrap();
            let length = hash.hash.unwrap().len();
            (
                hash.algorithm,
                hash.version,
                hash.params.to_string(),
                length,
            )
        };
        let real: PasswordHash = argon2().unwrap().hash_password(b"x").unwrap();
        assert_eq!(of(NOBODY), of(&real.to_string()));
    }

    #[tokio::test]
    async fn only_so_many_wait() {
        let passwords = Passwords::default();
        let places: Vec<Inside<'_>> = (0..AT_ONCE + MAX_WAITING)
            .map(|_| Inside::enter(&passwords.inside).unwrap())
            .collect();
        assert!(matches!(
            passwords.hash("x").await,
            Err(PasswordError::Busy)
        ));
        drop(places);
        assert_eq!(passwords.inside.load(Ordering::Relaxed), 0);
    }
}
