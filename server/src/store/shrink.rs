//! Returns free space to the file system.
//!
//! Deleting rows leaves free pages in the file. With `auto_vacuum = INCREMENTAL`, SQLite tracks what points to each
//! page, so it can move the last pages into the gaps and truncate the file, a given number at a time.

use sqlx::sqlite::SqlitePool;

use super::codes::unsigned;
use super::{During, Store, StoreError};

/// `auto_vacuum = INCREMENTAL`, as the pragma says it.
const INCREMENTAL: i64 = 2;
/// Pages given back in one transaction: 1 MiB, some milliseconds.
const STEP_PAGES: u32 = 256;
/// Largest database that is converted at start, bytes. The conversion rewrites it, at about 200 MB/s, before the server
/// listens; a larger one reuses free space but does not shrink.
const CONVERTED_BYTES: u64 = 1 << 30;

/// The file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileSize {
    /// Its size, bytes.
    pub bytes: u64,
    /// Free part of it, bytes.
    pub free: u64,
    /// Whether it can be made smaller.
    pub shrinks: bool,
}

/// Makes a database of an earlier version one that can shrink, if it is small enough for that.
pub(super) async fn convert(writer: &SqlitePool) -> Result<(), sqlx::Error> {
    let mode: i64 = sqlx::query_scalar("PRAGMA auto_vacuum")
        .fetch_one(writer)
        .await?;
    let size = file_size(writer).await?;
    if mode == INCREMENTAL || size.bytes > CONVERTED_BYTES {
        return Ok(());
    }
    sqlx::query("PRAGMA auto_vacuum = INCREMENTAL")
        .execute(writer)
        .await?;
    if let Err(error) = sqlx::query("VACUUM").execute(writer).await {
        // It works without, and the disk may be full.
        tracing::warn!(%error, "the database file will not shrink");
    }
    Ok(())
}

async fn file_size(pool: &SqlitePool) -> Result<FileSize, sqlx::Error> {
    let ask = async |sql: &'static str| -> Result<u64, sqlx::Error> {
        Ok(unsigned(sqlx::query_scalar(sql).fetch_one(pool).await?))
    };
    let page = ask("PRAGMA page_size").await?;
    let pages = ask("PRAGMA page_count").await?;
    let free = ask("PRAGMA freelist_count").await?;
    let mode = ask("PRAGMA auto_vacuum").await?;
    Ok(FileSize {
        bytes: pages * page,
        free: free * page,
        shrinks: mode == INCREMENTAL.unsigned_abs(),
    })
}

impl Store {
    /// How large the file is, without its log.
    pub(crate) async fn file_size(&self) -> Result<FileSize, StoreError> {
        file_size(self.readers())
            .await
            .during("measure the database")
    }

    /// Gives some of the free pages back. Returns how large the file is then.
    pub(crate) async fn shrink_step(&self) -> Result<FileSize, StoreError> {
        let writer = &self.inner.pools.writer;
        let work = async {
            let sql = format!("PRAGMA incremental_vacuum({STEP_PAGES})");
            sqlx::query(sqlx::AssertSqlSafe(sql))
                .execute(writer)
                .await?;
            file_size(writer).await
        };
        work.await.during("shrink the database")
    }

    /// Checkpoints the write-ahead log and truncates both files, unless a reader is active.
    pub(crate) async fn truncate_log(&self) -> Result<(), StoreError> {
        let work = async {
            let mut writer = self.inner.pools.writer.acquire().await?;
            // Waiting for readers would keep the history from being written: rather another time.
            sqlx::query("PRAGMA busy_timeout = 0")
                .execute(&mut *writer)
                .await?;
            let done = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)")
                .execute(&mut *writer)
                .await;
            let restore = format!(
                "PRAGMA busy_timeout = {}",
                super::connect::BUSY_TIMEOUT.as_millis()
            );
            sqlx::query(sqlx::AssertSqlSafe(restore))
                .execute(&mut *writer)
                .await?;
            match done {
                // SQLITE_BUSY and its kin.
                Err(sqlx::Error::Database(_)) | Ok(_) => Ok(()),
                Err(error) => Err(error),
            }
        };
        work.await.during("cut the database's log")
    }
}
