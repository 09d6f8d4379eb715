//! SQLite: what was asked for (functions, versions, tokens, sessions) and what happened (invocations, logs, rollups).

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;

use crate::model::{FunctionSpec, Right, TokenView};

/// A database error, with the operation that met it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// SQLite refused.
    #[error("{operation}: {source}")]
    Sqlx {
        /// What was being done.
        operation: &'static str,
        /// Why it failed.
        source: sqlx::Error,
    },
    /// The name is taken.
    #[error("a function named \"{0}\" exists already")]
    Exists(String),
}

/// A function with its active version.
#[derive(Debug, Clone)]
pub struct StoredFunction {
    /// Row id; never reused.
    pub id: i64,
    /// The version that answers.
    pub active: StoredVersion,
    /// When the function was created.
    pub created_at: Timestamp,
    /// When its settings, code or active version last changed.
    pub updated_at: Timestamp,
}

/// An immutable version.
#[derive(Debug, Clone)]
pub struct StoredVersion {
    /// 1, 2, 3 …
    pub version: u32,
    /// Its settings.
    pub spec: FunctionSpec,
    /// Hash of the code package; its directory's name.
    pub code_sha256: String,
    /// Bytes of the unpacked code.
    pub code_bytes: u64,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A console session.
#[derive(Debug, Clone)]
pub struct Session {
    /// The token it was opened with.
    pub token: TokenView,
    /// What every changing request of the session must carry.
    pub csrf: String,
}

/// The database: one writer, a pool of readers. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store;

#[allow(unused_variables, clippy::unimplemented)]
impl Store {
    /// Opens or creates the database file and migrates it.
    pub async fn open(file: &Path) -> Result<Self, StoreError> {
        unimplemented!()
    }
    /// All functions by name.
    pub async fn functions(&self) -> Result<Vec<StoredFunction>, StoreError> {
        unimplemented!()
    }
    /// Creates a function with version 1, active. [`StoreError::Exists`] when the name is taken.
    pub async fn create_function(
        &self,
        spec: &FunctionSpec,
        code_sha256: &str,
        code_bytes: u64,
    ) -> Result<StoredFunction, StoreError> {
        unimplemented!()
    }
    /// Adds the next version and makes it active, in one transaction.
    pub async fn add_version(
        &self,
        function: i64,
        spec: &FunctionSpec,
        code_sha256: &str,
        code_bytes: u64,
    ) -> Result<StoredFunction, StoreError> {
        unimplemented!()
    }
    /// The number the next version of this function will get.
    pub async fn next_version(&self, function: i64) -> Result<u32, StoreError> {
        unimplemented!()
    }
    /// Makes an existing version active; None when there is no such version.
    pub async fn activate(
        &self,
        function: i64,
        version: u32,
    ) -> Result<Option<StoredFunction>, StoreError> {
        unimplemented!()
    }
    /// A function's versions, newest first.
    pub async fn versions(&self, function: i64) -> Result<Vec<StoredVersion>, StoreError> {
        unimplemented!()
    }
    /// Deletes a function with its versions, invocations, logs and rollups. Large histories are deleted in pieces, so
    /// that the writer is never held for long; the function row goes first.
    pub async fn delete_function(&self, function: i64) -> Result<(), StoreError> {
        unimplemented!()
    }
    /// Hashes of all code packages some version refers to.
    pub async fn code_in_use(&self) -> Result<Vec<String>, StoreError> {
        unimplemented!()
    }
    /// Makes `secret` a token named `name` unless it is one already (the configured or generated admin token).
    pub async fn ensure_token(
        &self,
        name: &str,
        secret: &str,
        rights: &[Right],
    ) -> Result<(), StoreError> {
        unimplemented!()
    }
    /// Makes a token; the secret is returned once and stored hashed.
    pub async fn create_token(
        &self,
        name: &str,
        rights: &[Right],
    ) -> Result<(TokenView, String), StoreError> {
        unimplemented!()
    }
    /// All tokens, newest first.
    pub async fn tokens(&self) -> Result<Vec<TokenView>, StoreError> {
        unimplemented!()
    }
    /// Deletes a token and its sessions; false when there is none.
    pub async fn delete_token(&self, id: i64) -> Result<bool, StoreError> {
        unimplemented!()
    }
    /// The token with this secret. Answered from memory: it is on every request's path.
    pub fn find_token(&self, secret: &str) -> Option<TokenView> {
        unimplemented!()
    }
    /// Opens a console session; returns the cookie's secret (stored hashed) and the session.
    pub async fn create_session(
        &self,
        token: i64,
        lifetime: Duration,
    ) -> Result<(String, Session), StoreError> {
        unimplemented!()
    }
    /// The unexpired session with this cookie.
    pub async fn find_session(&self, cookie: &str) -> Result<Option<Session>, StoreError> {
        unimplemented!()
    }
    /// Ends a session.
    pub async fn delete_session(&self, cookie: &str) -> Result<(), StoreError> {
        unimplemented!()
    }
    /// Whether the database answers, for `/readyz`.
    pub async fn ping(&self) -> Result<(), StoreError> {
        unimplemented!()
    }
    /// Checkpoints and closes.
    pub async fn close(&self) {
        unimplemented!()
    }
}
