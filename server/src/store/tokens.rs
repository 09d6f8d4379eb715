//! API tokens: 256 random bits each, of which only the SHA-256 is kept.
//!
//! All of them are held in memory, because every request asks for one. A request's secret is hashed before it is looked
//! up, so what the look-up's timing could tell is about the hash, from which no secret can be made.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use sqlx::SqlitePool;

use super::codes::{decode_error, timestamp};
use super::{During, Store, StoreError, to_the_end};
use crate::model::{Right, TokenView};

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
    by_hash: ArcSwap<HashMap<Hash, TokenView>>,
    /// Held while a change is written and the map replaced, so that the map follows the table's order of changes.
    changing: tokio::sync::Mutex<()>,
}

struct TokenRow {
    id: i64,
    name: String,
    rights: String,
    hash: Vec<u8>,
    created_us: i64,
}

impl TokenRow {
    fn read(self) -> Result<(Hash, TokenView), sqlx::Error> {
        let hash = Hash::try_from(self.hash.as_slice()).map_err(decode_error)?;
        let view = TokenView {
            id: self.id,
            name: self.name,
            rights: serde_json::from_str(&self.rights).map_err(decode_error)?,
            created_at: timestamp(self.created_us)?,
        };
        Ok((hash, view))
    }
}

async fn read_all(
    database: impl sqlx::SqliteExecutor<'_>,
) -> Result<HashMap<Hash, TokenView>, sqlx::Error> {
    sqlx::query_as!(
        TokenRow,
        "SELECT id, name, rights, hash, created_us FROM tokens"
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
    pub(super) fn by_id(&self, id: i64) -> Option<TokenView> {
        let tokens = self.by_hash.load();
        tokens.values().find(|token| token.id == id).cloned()
    }

    fn replace(&self, tokens: HashMap<Hash, TokenView>) {
        self.by_hash.store(Arc::new(tokens));
    }
}

impl Store {
    /// Makes `secret` the bootstrap token `name`: the admin token that the configuration gives, or that was generated at
    /// the first start. A bootstrap token of that name with another secret stops being valid, with its sessions: whoever
    /// changes the configured secret means to take the old one away. If the secret is already a token's, that token gets
    /// the name and the rights.
    pub async fn ensure_token(
        &self,
        name: &str,
        secret: &str,
        rights: &[Right],
    ) -> Result<(), StoreError> {
        let work = async {
            let hash = hash(secret);
            let hash = hash.as_slice();
            let rights = encode_rights(rights)?;
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
                 ON CONFLICT (hash) DO UPDATE SET name = excluded.name, rights = excluded.rights, bootstrap = 1",
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
    pub async fn create_token(
        &self,
        name: &str,
        rights: &[Right],
    ) -> Result<(TokenView, String), StoreError> {
        let store = self.clone();
        let name = name.to_owned();
        let rights = encode_rights(rights);
        let work = async move {
            let rights = rights?;
            let secret = new_secret(PREFIX)?;
            let key = hash(&secret);
            let hash = key.as_slice();
            let now = Timestamp::now().as_microsecond();
            let _changing = store.inner.tokens.changing.lock().await;
            let mut transaction = store.write().await?;
            sqlx::query!(
                "INSERT INTO tokens (name, rights, hash, bootstrap, created_us) VALUES (?1, ?2, ?3, 0, ?4)",
                name,
                rights,
                hash,
                now
            )
            .execute(&mut *transaction)
            .await?;
            let tokens = read_all(&mut *transaction).await?;
            let view = tokens.get(&key).cloned().ok_or(sqlx::Error::RowNotFound)?;
            transaction.commit().await?;
            store.inner.tokens.replace(tokens);
            Ok((view, secret))
        };
        to_the_end(async { work.await.during("create a token") }).await
    }

    /// All tokens, newest first.
    pub async fn tokens(&self) -> Result<Vec<TokenView>, StoreError> {
        let tokens = self.inner.tokens.by_hash.load();
        let mut views: Vec<TokenView> = tokens.values().cloned().collect();
        views.sort_by_key(|token| std::cmp::Reverse(token.id));
        Ok(views)
    }

    /// Deletes a token and its sessions; false when there is none.
    pub async fn delete_token(&self, id: i64) -> Result<bool, StoreError> {
        let store = self.clone();
        let work = async move {
            let _changing = store.inner.tokens.changing.lock().await;
            let mut transaction = store.write().await?;
            let deleted = sqlx::query!("DELETE FROM tokens WHERE id = ?1", id)
                .execute(&mut *transaction)
                .await?
                .rows_affected();
            let tokens = read_all(&mut *transaction).await?;
            transaction.commit().await?;
            store.inner.tokens.replace(tokens);
            Ok(deleted > 0)
        };
        to_the_end(async { work.await.during("delete a token") }).await
    }

    /// The token with this secret. Answered from memory: it is on every request's path.
    pub fn find_token(&self, secret: &str) -> Option<TokenView> {
        let tokens = self.inner.tokens.by_hash.load();
        tokens.get(&hash(secret)).cloned()
    }
}

fn encode_rights(rights: &[Right]) -> Result<String, sqlx::Error> {
    serde_json::to_string(rights).map_err(|error| sqlx::Error::Encode(Box::new(error)))
}
