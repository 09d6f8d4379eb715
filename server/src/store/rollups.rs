//! Minute rollups: rows of counts and serialized histograms. What is in the histograms is [`crate::history`]'s matter.

use futures_util::TryStreamExt as _;
use futures_util::stream::BoxStream;

use super::codes::{signed, unsigned};
use super::{During, Store, StoreError};

/// Numbers of one rollup.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RollupCounts {
    /// Finished invocations.
    pub count: u64,
    /// Those that did not succeed.
    pub errors: u64,
    /// By start rung: warm, fork, restore, boot.
    pub starts: [u64; 4],
    /// Longest queue, start, send, run, recv, total, in µs.
    pub max: [u64; 6],
}

/// Serialized histograms of queue, start, send, run, recv, total.
pub(crate) type StageBlobs = [Vec<u8>; 6];

/// A rollup as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RollupRow {
    /// The function's row id.
    pub function: i64,
    /// Minutes since 1970.
    pub minute: i64,
    /// Its numbers.
    pub counts: RollupCounts,
    /// Its histograms.
    pub stages: StageBlobs,
}

/// The columns in their order, as SQLite gives them.
struct Columns {
    function_id: i64,
    minute: i64,
    count: i64,
    errors: i64,
    warm: i64,
    fork: i64,
    restore: i64,
    boot: i64,
    max_queue_us: i64,
    max_start_us: i64,
    max_send_us: i64,
    max_run_us: i64,
    max_recv_us: i64,
    max_total_us: i64,
    queue: Vec<u8>,
    start: Vec<u8>,
    send: Vec<u8>,
    run: Vec<u8>,
    recv: Vec<u8>,
    total: Vec<u8>,
}

impl From<Columns> for RollupRow {
    fn from(c: Columns) -> Self {
        Self {
            function: c.function_id,
            minute: c.minute,
            counts: RollupCounts {
                count: unsigned(c.count),
                errors: unsigned(c.errors),
                starts: [c.warm, c.fork, c.restore, c.boot].map(unsigned),
                max: [
                    c.max_queue_us,
                    c.max_start_us,
                    c.max_send_us,
                    c.max_run_us,
                    c.max_recv_us,
                    c.max_total_us,
                ]
                .map(unsigned),
            },
            stages: [c.queue, c.start, c.send, c.run, c.recv, c.total],
        }
    }
}

impl Store {
    /// Stores rollups in one transaction. Those of functions that are gone are passed over.
    pub(crate) async fn insert_rollups(&self, rows: &[RollupRow]) -> Result<(), StoreError> {
        let work = async {
            let mut transaction = self.write().await?;
            for row in rows {
                insert(&mut transaction, row).await?;
            }
            transaction.commit().await
        };
        work.await.during("store rollups")
    }

    /// Gives every rollup of a function from `first_minute` on to `take`, one at a time: a week of them is 10,080.
    pub(crate) async fn each_rollup(
        &self,
        function: i64,
        first_minute: i64,
        mut take: impl FnMut(RollupRow),
    ) -> Result<(), StoreError> {
        let mut rows: BoxStream<'_, Result<Columns, sqlx::Error>> = sqlx::query_as!(
            Columns,
            "SELECT function_id, minute, count, errors, warm, fork, restore, boot, max_queue_us, max_start_us, \
                    max_send_us, max_run_us, max_recv_us, max_total_us, queue, start, send, run, recv, total \
             FROM rollups WHERE function_id = ?1 AND minute >= ?2",
            function,
            first_minute
        )
        .fetch(self.readers());
        while let Some(columns) = rows.try_next().await.during("read rollups")? {
            take(columns.into());
        }
        Ok(())
    }
}

/// Stores one rollup, unless its function is gone.
pub(super) async fn insert(
    connection: &mut sqlx::SqliteConnection,
    row: &RollupRow,
) -> Result<(), sqlx::Error> {
    let (count, errors) = (signed(row.counts.count), signed(row.counts.errors));
    let [warm, fork, restore, boot] = row.counts.starts.map(signed);
    let [max_queue, max_start, max_send, max_run, max_recv, max_total] = row.counts.max.map(signed);
    let [queue, start, send, run, recv, total] = row.stages.each_ref().map(Vec::as_slice);
    sqlx::query!(
        "INSERT INTO rollups (function_id, minute, count, errors, warm, fork, restore, boot, max_queue_us, \
                              max_start_us, max_send_us, max_run_us, max_recv_us, max_total_us, \
                              queue, start, send, run, recv, total) \
         SELECT id, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20 \
         FROM functions WHERE id = ?1",
        row.function,
        row.minute,
        count,
        errors,
        warm,
        fork,
        restore,
        boot,
        max_queue,
        max_start,
        max_send,
        max_run,
        max_recv,
        max_total,
        queue,
        start,
        send,
        run,
        recv,
        total
    )
    .execute(connection)
    .await?;
    Ok(())
}
