//! API tokens: 256 random bits each, of which only the SHA-256 is kept.
//!
//! All of them are in memory, because every request needs one. A secret is hashed before the look-up, so the look-up's
//! timing can only reveal the hash, which does not reveal the secret.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use sqlx::SqlitePool;

use super::codes::{decode_error, timestamp};
use super::token_use::LastUse;
use super::{During, Store, StoreError, to_the_end};
use crate::model::{NewToken, Right, TokenView};

/// Begins every token, so that one that leaks into a log or a repository can be searched for.
const PREFIX: &str = "hth_";

/// Random bytes of a secret: too many to guess, which is why a fast hash is enough.
const SECRET_BYTES: usize = 32;

/// What is stored of a secret.
pub(super) type Hash = [u8; 32];

/// Hash of a secret.
pub(super) fn hash(secret: &str) -> Hash {
    Sha256::digest(secret.as_bytes()).into()
}

/// A new secret: `prefix` and 43 characters of base64url.
pub(super) fn new_secret(prefix: &str) -> Result<String, sqlx::Error> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(format!("{prefix}{}", URL_SAFE_NO_PAD.encode(bytes)))
}

/// The tokens by hash. Readers take the current map without a lock; a change swaps in a new one.
#[derive(Debug)]
pub(super) struct Known {
    by_hash: ArcSwap<Map>,
    /// Held while a change is written and the map replaced, so that the map follows the table's order of changes.
    changing: tokio::sync::Mutex<()>,
}

type Map = HashMap<Hash, Entry>;

/// One token.
#[derive(Debug)]
struct Entry {
    /// As it was read; `last_used_at` is in `used`.
    view: Arc<TokenView>,
    used: LastUse,
}

impl Entry {
    /// The token as shown.
    fn shown(&self) -> TokenView {
        TokenView {
            last_used_at: self.used.get(),
            ..TokenView::clone(&self.view)
        }
    }
}

struct TokenRow {
    id: i64,
    name: String,
    rights: String,
    scope: Option<String>,
    hash: Vec<u8>,
    created_us: i64,
    expires_us: Option<i64>,
    last_used_us: Option<i64>,
}

impl TokenRow {
    fn read(self) -> Result<(Hash, Entry), sqlx::Error> {
        let hash = Hash::try_from(self.hash.as_slice()).map_err(decode_error)?;
        let scope = self.scope.as_deref().map(serde_json::from_str);
        let view = TokenView {
            id: self.id,
            name: self.name,
            rights: serde_json::from_str(&self.rights).map_err(decode_error)?,
            scope: scope.transpose().map_err(decode_error)?,
            created_at: timestamp(self.created_us)?,
            last_used_at: None,
            expires_at: self.expires_us.map(timestamp).transpose()?,
        };
        let entry = Entry {
            view: Arc::new(view),
            used: LastUse::stored(self.last_used_us),
        };
        Ok((hash, entry))
    }
}

async fn read_all(database: impl sqlx::SqliteExecutor<'_>) -> Result<Map, sqlx::Error> {
    sqlx::query_as!(
        TokenRow,
        "SELECT id, name, rights, scope, hash, created_us, expires_us, last_used_us FROM tokens"
    )
    .fetch_all(database)
    .await?
    .into_iter()
    .map(TokenRow::read)
    .collect()
}

impl Known {
    pub(super) async fn load(readers: &SqlitePool) -> Result<Self, sqlx::Error> {
        Ok(Self {
            by_hash: ArcSwap::from_pointee(read_all(readers).await?),
            changing: tokio::sync::Mutex::new(()),
        })
    }

    /// The token with this number.
    pub(super) fn by_id(&self, id: i64) -> Option<Arc<TokenView>> {
        let tokens = self.by_hash.load();
        tokens
            .values()
            .find(|token| token.view.id == id)
            .map(|token| Arc::clone(&token.view))
    }

    /// The last use of every token, by its number.
    pub(super) fn uses(&self) -> Vec<(i64, LastUse)> {
        let tokens = self.by_hash.load();
        tokens
            .values()
            .map(|token| (token.view.id, token.used.clone()))
            .collect()
    }

    /// Swaps the map. Known last uses are kept, because they may be newer than the table.
    fn replace(&self, mut tokens: Map) {
        for (hash, entry) in self.by_hash.load().iter() {
            if let Some(kept) = tokens.get_mut(hash) {
                kept.used = entry.used.clone();
            }
        }
        self.by_hash.store(Arc::new(tokens));
    }
}

impl Store {
    /// Makes `secret` the bootstrap token `name`: the configured admin token, or the one generated at the first start.
    /// A bootstrap token of that name with another secret is revoked with its sessions, since changing the configured
    /// secret is meant to revoke the old one. If the secret already belongs to a token, that token gets the name and
    /// the rights, unscoped and without expiry.
    pub async fn ensure_token(
        &self,
        name: &str,
        secret: &str,
        rights: &[Right],
    ) -> Result<(), StoreError> {
        let work = async {
            let hash = hash(secret);
            let hash = hash.as_slice();
            let rights = encode(&rights)?;
            let now = Timestamp::now().as_microsecond();
            let _changing = self.inner.tokens.changing.lock().await;
            let mut transaction = self.write().await?;
            sqlx::query!(
                "DELETE FROM tokens WHERE bootstrap = 1 AND name = ?1 AND hash <> ?2",
                name,
                hash
            )
            .execute(&mut *transaction)
            .await?;
            sqlx::query!(
                "INSERT INTO tokens (name, rights, hash, bootstrap, created_us) VALUES (?1, ?2, ?3, 1, ?4) \
                 ON CONFLICT (hash) DO UPDATE SET name = excluded.name, rights = excluded.rights, bootstrap = 1, \
                 scope = NULL, expires_us = NULL",
                name,
                rights,
                hash,
                now
            )
            .execute(&mut *transaction)
            .await?;
            let tokens = read_all(&mut *transaction).await?;
            transaction.commit().await?;
            self.inner.tokens.replace(tokens);
            Ok(())
        };
        work.await.during("store the bootstrap token")
    }

    /// Makes a token; the secret is returned once and stored hashed.
    pub async fn create_token(&self, new: NewToken) -> Result<(TokenView, String), StoreError> {
        let store = self.clone();
        let work = async move {
            let rights = encode(&new.rights)?;
            let scope = new.scope.as_ref().map(encode).transpose()?;
            let expires = new.expires_at.map(|end| end.as_microsecond());
            let secret = new_secret(PREFIX)?;
            let key = hash(&secret);
            let hash = key.as_slice();
            let now = Timestamp::now().as_microsecond();
            let _changing = store.inner.tokens.changing.lock().await;
            let mut transaction = store.write().await?;
            sqlx::query!(
                "INSERT INTO tokens (name, rights, scope, hash, bootstrap, created_us, expires_us) \
                 VALUES (?1, ?2, ?3, ?4, 0, ?5, ?6)",
                new.name,
                rights,
                scope,
                hash,
                now,
                expires
            )
            .execute(&mut *transaction)
            .await?;
            let tokens = read_all(&mut *transaction).await?;
            let view = tokens
                .get(&key)
                .map(Entry::shown)
                .ok_or(sqlx::Error::RowNotFound)?;
            transaction.commit().await?;
            store.inner.tokens.replace(tokens);
            Ok((view, secret))
        };
        to_the_end(async { work.await.during("create a token") }).await
    }

    /// All tokens, newest first.
    pub fn tokens(&self) -> Vec<TokenView> {
        let tokens = self.inner.tokens.by_hash.load();
        let mut views: Vec<TokenView> = tokens.values().map(Entry::shown).collect();
        views.sort_by_key(|token| std::cmp::Reverse(token.id));
        views
    }

    /// Deletes a token and its sessions; returns its name, or `None` if there is no such token.
    pub async fn delete_token(&self, id: i64) -> Result<Option<String>, StoreError> {
        let store = self.clone();
        let work = async move {
            let _changing = store.inner.tokens.changing.lock().await;
            let mut transaction = store.write().await?;
            let deleted =
                sqlx::query_scalar!("DELETE FROM tokens WHERE id = ?1 RETURNING name", id)
                    .fetch_optional(&mut *transaction)
                    .await?;
            let tokens = read_all(&mut *transaction).await?;
            transaction.commit().await?;
            store.inner.tokens.replace(tokens);
            Ok(deleted)
        };
        to_the_end(async { work.await.during("delete a token") }).await
    }

    /// The valid token with this secret, whose use is noted. Answered from memory: it is on every request's path.
    pub fn find_token(&self, secret: &str) -> Option<Arc<TokenView>> {
        let tokens = self.inner.tokens.by_hash.load();
        let token = tokens.get(&hash(secret))?;
        let now = Timestamp::now();
        token.view.is_valid(now).then(|| {
            token.used.note(now);
            Arc::clone(&token.view)
        })
    }
}

fn encode(value: &impl serde::Serialize) -> Result<String, sqlx::Error> {
    serde_json::to_string(value).map_err(|error| sqlx::Error::Encode(Box::new(error)))
}
