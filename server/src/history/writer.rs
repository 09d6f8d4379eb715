//! The batching writer: one task that writes queued records in batches.
//!
//! A failed write is retried until it succeeds; meanwhile the queue fills up, and takes no more then.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::queue::{Item, Outlet};
use super::slow_writes::SlowWrites;
use crate::store::{HistoryBatch, Store, StoreError};
use crate::turns;

/// Pause after the first failed write, doubled up to [`RETRY_LONGEST`].
const RETRY_FIRST: Duration = Duration::from_millis(100);

/// Longest pause between attempts to write.
const RETRY_LONGEST: Duration = Duration::from_secs(5);

/// The task that writes.
pub(super) struct Writer {
    store: Store,
    slow: Arc<SlowWrites>,
}

impl Writer {
    /// A writer into this store.
    pub(super) fn new(store: Store, slow: Arc<SlowWrites>) -> Self {
        Self { store, slow }
    }

    /// Writes until the queue's other end is gone.
    pub(super) async fn run(self, mut queue: Outlet) {
        while let Some(mut batch) = queue.batch().await {
            let items = Arc::new(std::mem::take(&mut batch.items));
            self.write(&queue, items).await;
            queue.written(batch);
        }
    }

    /// Writes items, however often it takes.
    async fn write(&self, queue: &Outlet, items: Arc<Vec<Item>>) {
        if items.is_empty() {
            return;
        }
        match self.write_some(queue, &items, 0..items.len()).await {
            Written::Done => return,
            Written::Closed => {
                tracing::error!(
                    records = items.len(),
                    "history records are lost: the database closed before they were written"
                );
                return;
            }
            Written::Refused => {}
        }
        // Some row is one the database will never take. The others are not to be lost for it.
        for index in 0..items.len() {
            let written = self.write_some(queue, &items, index..index + 1).await;
            if written == Written::Refused {
                tracing::error!("a history record is lost: the database rejects it");
            }
        }
    }

    /// Writes some items in one transaction; tries again while the fault may pass (a full disk, a lock).
    async fn write_some(
        &self,
        queue: &Outlet,
        items: &Arc<Vec<Item>>,
        range: Range<usize>,
    ) -> Written {
        let batch = match encode(items.clone(), range).await {
            Ok(batch) => batch,
            Err(error) => {
                tracing::error!(%error, "cannot encode the history");
                return Written::Refused;
            }
        };
        let mut pause = RETRY_FIRST;
        loop {
            let begun = Instant::now();
            let written = self.store.write_history(&batch).await;
            self.slow.note(begun.elapsed());
            match written {
                Ok(()) => {
                    match queue.works() {
                        None => {}
                        Some(0) => tracing::info!("writing the history again"),
                        Some(lost) => tracing::error!(
                            lost,
                            "writing the history again; what found no room meanwhile is lost"
                        ),
                    }
                    return Written::Done;
                }
                Err(StoreError::Sqlx {
                    source: sqlx::Error::PoolClosed,
                    ..
                }) => return Written::Closed,
                Err(error) if is_permanent(&error) => {
                    tracing::error!(%error, "the database rejected the history");
                    return Written::Refused;
                }
                Err(error) => {
                    if queue.fails() {
                        tracing::error!(%error, "cannot write the history; retrying until it succeeds");
                    }
                    sleep(pause).await;
                    pause = (pause * 2).min(RETRY_LONGEST);
                }
            }
        }
    }
}

#[derive(PartialEq, Eq)]
enum Written {
    /// It is in the database.
    Done,
    /// The store was closed.
    Closed,
    /// The database will never take it.
    Refused,
}

/// Turns items into what the database takes, away from the threads that serve requests: a full batch is some
/// milliseconds of work.
async fn encode(items: Arc<Vec<Item>>, range: Range<usize>) -> Result<HistoryBatch, StoreError> {
    let encoding = tokio::task::spawn_blocking(move || {
        let mut batch = HistoryBatch::default();
        for item in &items[range] {
            turns::give_way();
            match item {
                Item::Invocation(function, record, captured) => {
                    batch.push(*function, record)?;
                    if let Some(captured) = captured {
                        batch.push_payloads(*function, record.id, &captured.stored())?;
                    }
                }
                Item::Logs(function, entries) => batch.push_logs(*function, entries)?,
                Item::Barrier(_) => {}
            }
        }
        Ok(batch)
    });
    match encoding.await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down.
            Err(_) => Err(StoreError::Sqlx {
                operation: "encode the history",
                source: sqlx::Error::WorkerCrashed,
            }),
        },
    }
}

/// Whether trying again is of no use: the statement or a value is wrong.
fn is_permanent(error: &StoreError) -> bool {
    /// SQLite's primary result codes ERROR, TOOBIG, CONSTRAINT, MISMATCH, RANGE.
    const PERMANENT: [i32; 5] = [1, 18, 19, 20, 25];
    let StoreError::Sqlx { source, .. } = error else {
        return true;
    };
    match source {
        sqlx::Error::Database(error) => error
            .code()
            .and_then(|code| code.parse::<i32>().ok())
            .is_some_and(|code| PERMANENT.contains(&(code & 0xff))),
        sqlx::Error::Encode(_) => true,
        _ => false,
    }
}
