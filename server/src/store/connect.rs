//! Opens the database: its file, connections and migrations.

use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use hearth_abi::time_slice::take_short_time_slices_alone;
use sqlx::sqlite::{
    SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{SqliteConnection, SqlitePool};

use crate::turns;

/// Readers at one time. SQLite's readers never wait for the writer; more of them than this only cost memory (a thread and
/// a page cache each).
const READERS: u32 = 4;

/// How long a statement waits for a lock that another process holds (a backup, a person with `sqlite3`).
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a query waits for a connection before it fails. The writer is held for one transaction at a time.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(30);

/// Page cache of one connection, KiB (negative: SQLite's way to say that it is not pages).
const CACHE_KIB: &str = "-8192";

/// How much of the file is read through a mapping instead of copies, bytes. It costs address space only.
const MMAP_BYTES: &str = "268435456";

/// The log is copied back into the database when it reaches this many pages of 4 KiB, 16 MiB: four times the default,
/// because the history rewrites the same pages of its indexes from batch to batch.
const CHECKPOINT_PAGES: &str = "4096";

/// The log's file is cut back to this after a checkpoint, bytes, so that one long reader does not leave it huge forever.
const LOG_LIMIT_BYTES: &str = "67108864";

/// After so many operations of SQLite's virtual machine the writer looks whether its turn is over: some ten microseconds.
const OPERATIONS: i32 = 500;

/// The connections.
#[derive(Debug)]
pub(super) struct Pools {
    /// The one connection that writes.
    pub writer: SqlitePool,
    /// Connections that cannot write.
    pub readers: SqlitePool,
}

/// Opens or creates the database and brings its schema up to date.
pub(super) async fn open(file: &Path) -> Result<Pools, sqlx::Error> {
    create_private(file)?;
    let options = SqliteConnectOptions::new()
        .filename(file)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
        .pragma("cache_size", CACHE_KIB)
        .pragma("mmap_size", MMAP_BYTES)
        .pragma("temp_store", "MEMORY");
    // FULL syncs the log at every commit. NORMAL would not, and a power failure could then take back a deploy that was
    // already answered with 201. The history pays for it once a batch.
    let writer = SqlitePoolOptions::new()
        .after_connect(|connection, _| Box::pin(give_way_while_writing(connection)))
        .max_connections(1)
        .min_connections(1)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_with(
            options
                .clone()
                // Of a new file; see `shrink` for one that is there already.
                .auto_vacuum(SqliteAutoVacuum::Incremental)
                .journal_mode(SqliteJournalMode::Wal)
                .synchronous(SqliteSynchronous::Full)
                .pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
                .pragma("journal_size_limit", LOG_LIMIT_BYTES)
                .thread_name(|_| "sqlite-writer".into()),
        )
        .await?;
    sqlx::migrate!("../migrations").run(&writer).await?;
    super::shrink::convert(&writer).await?;
    let readers = SqlitePoolOptions::new()
        .max_connections(READERS)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .max_lifetime(None)
        .connect_with(
            options
                .read_only(true)
                .thread_name(|id| format!("sqlite-reader-{id}")),
        )
        .await?;
    Ok(Pools { writer, readers })
}

/// A batch of the history is some milliseconds of work. Those who serve requests do not wait for all of it.
async fn give_way_while_writing(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let mut is_first = true;
    let mut handle = connection.lock_handle().await?;
    handle.set_progress_handler(OPERATIONS, move || {
        if std::mem::take(&mut is_first) {
            // The thread is the connection's own. Who gives way gives up the rest of its slice, and of a long one it would come to
            // nothing on a busy host.
            let _ = take_short_time_slices_alone();
        }
        turns::give_way();
        true
    });
    Ok(())
}

/// Sees to it that only this user can read the file: it holds the functions' environment variables. SQLite gives its log
/// and its index the same mode as the database.
fn create_private(file: &Path) -> Result<(), std::io::Error> {
    if let Some(directory) = file.parent().filter(|path| !path.as_os_str().is_empty()) {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
    }
    let opened = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(file)?;
    opened.set_permissions(Permissions::from_mode(0o600))
}
