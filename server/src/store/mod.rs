//! SQLite: configuration (functions, chains, their versions, users, tokens, sessions) and history (invocations, logs, rollups, the
//! audit log).
//!
//! One connection writes, a few read. A write is acknowledged once it is on disk: the write-ahead log is synced at
//! every commit, so neither `kill -9` nor a power failure loses an acknowledged write. Queries are checked at compile
//! time against `.sqlx`, which `scripts/sqlx.sh prepare` makes from the migrations.

mod audit;
mod chains;
mod codes;
mod connect;
mod experiments;
mod failures;
mod functions;
mod gates;
mod history_batch;
mod invocations;
mod logs;
mod meanwhile;
mod merge;
mod payloads;
mod performance;
mod recount;
mod removal;
mod rollups;
mod saved_events;
mod secrets;
mod sessions;
mod settings;
mod shrink;
mod sizes;
mod sweep;
mod threads;
mod token_use;
mod tokens;
mod totals;
mod users;
mod versions;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use sqlx::{Sqlite, Transaction};

use crate::model::{Caller, FunctionSpec, Note};

pub use audit::NewAudit;
pub use chains::{StoredChain, StoredChainVersion};
pub use experiments::NewExperiment;
pub use gates::PendingGate;
pub(crate) use history_batch::HistoryBatch;
pub(crate) use performance::{StoredComparison, VersionTimes};
pub(crate) use removal::PIECE;
pub(crate) use rollups::{QUARTER, RollupCounts, RollupRow};
pub use saved_events::{MAX_SAVED_EVENTS, SavedEvent, Saving};
pub use secrets::StoredSecret;
pub(crate) use totals::ALL;

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
    #[error("a function named \"{0}\" already exists")]
    Exists(String),
    /// The name of a chain is taken.
    #[error("a chain named \"{0}\" already exists")]
    ChainExists(String),
    /// A user of that name exists.
    #[error("a user named \"{0}\" already exists")]
    UserExists(String),
    /// There would be no admin left who can log in.
    #[error("\"{0}\" is the last admin who can log in; make another user an admin first")]
    LastAdmin(String),
    /// The first user has to be an admin.
    #[error("there is no admin yet; the first user must be one")]
    NoAdmin,
}

/// Names the operation an error met.
trait During<T> {
    fn during(self, operation: &'static str) -> Result<T, StoreError>;
}

impl<T> During<T> for Result<T, sqlx::Error> {
    fn during(self, operation: &'static str) -> Result<T, StoreError> {
        self.map_err(|source| StoreError::Sqlx { operation, source })
    }
}

/// Runs a change to its end even when the caller's future is dropped (a client that hangs up does that to its request),
/// because something in memory must follow what is committed.
async fn to_the_end<T: Send + 'static>(
    change: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::spawn(change).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(sqlx::Error::WorkerCrashed)
                .during("finish a change: the runtime is shutting down"),
        },
    }
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
    /// What its author should know of it.
    pub notes: Vec<Note>,
}

/// A console session.
#[derive(Debug, Clone)]
pub struct Session {
    /// Its number, which names it and opens nothing.
    pub id: i64,
    /// The user or token it was opened by, with their present rights.
    pub caller: Caller,
    /// What every changing request of the session must carry.
    pub csrf: String,
}

/// The database: one writer, a pool of readers. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    pools: connect::Pools,
    tokens: tokens::Known,
}

impl Store {
    /// Opens or creates the database file and migrates it. Continues the removal of deleted functions' histories in the
    /// background.
    pub async fn open(file: &Path) -> Result<Self, StoreError> {
        let pools = connect::open(file).await.during("open the database")?;
        let tokens = tokens::Known::load(&pools.readers)
            .await
            .during("read the tokens")?;
        let store = Self {
            inner: Arc::new(Inner { pools, tokens }),
        };
        store.sweep_in_background();
        store.write_token_use_in_background();
        Ok(store)
    }

    /// Whether the database answers, for `/readyz`.
    pub async fn ping(&self) -> Result<(), StoreError> {
        sqlx::query_scalar!("SELECT count(*) FROM functions")
            .fetch_one(self.readers())
            .await
            .during("check the database")?;
        Ok(())
    }

    /// Checkpoints and closes. Calls after it fail.
    pub async fn close(&self) {
        if let Err(error) = self.write_token_use().await {
            tracing::warn!(%error, "cannot write the last use of some tokens");
        }
        self.inner.pools.readers.close().await;
        // Closing the last connection copies the log into the database and removes it.
        self.inner.pools.writer.close().await;
    }

    /// The connection that writes, for tests that break it.
    #[cfg(test)]
    pub(crate) fn writer(&self) -> &sqlx::SqlitePool {
        &self.inner.pools.writer
    }

    /// The connections for queries that only read.
    fn readers(&self) -> &sqlx::SqlitePool {
        &self.inner.pools.readers
    }

    /// Waits for the writing connection and begins a transaction on it. Dropping it without `commit` rolls back.
    async fn write(&self) -> Result<Transaction<'static, Sqlite>, sqlx::Error> {
        self.inner.pools.writer.begin_with("BEGIN IMMEDIATE").await
    }
}
