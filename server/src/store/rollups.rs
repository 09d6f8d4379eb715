//! Rollups: rows of counts and serialized histograms, per minute and, when older, per quarter of an hour.
//! [`crate::history`] defines the histograms.

use futures_util::TryStreamExt as _;
use futures_util::stream::BoxStream;

use super::codes::{signed, unsigned};
use super::{During, Store, StoreError, totals};

/// Minutes of a quarter of an hour.
pub(crate) const QUARTER: i64 = 15;

/// Numbers of one rollup.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RollupCounts {
    /// Finished invocations.
    pub count: u64,
    /// Those that did not succeed.
    pub errors: u64,
    /// Counts by start kind: warm, fork, restore, boot.
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
    /// Its first minute, counted since 1970.
    pub minute: i64,
    /// How many minutes it is the sum of: 1 or [`QUARTER`].
    pub minutes: i64,
    /// Its numbers.
    pub counts: RollupCounts,
    /// Its histograms.
    pub stages: StageBlobs,
    /// Total latency of invocations that needed a start; none if there were none or it is unknown.
    pub cold: Option<Vec<u8>>,
    /// Totals of invocations that never got an instance; none as above.
    pub unserved: Option<Vec<u8>>,
}

/// The columns in their order, as SQLite gives them.
pub(super) struct Columns {
    pub(super) function_id: i64,
    pub(super) minute: i64,
    pub(super) minutes: i64,
    pub(super) count: i64,
    pub(super) errors: i64,
    pub(super) warm: i64,
    pub(super) fork: i64,
    pub(super) restore: i64,
    pub(super) boot: i64,
    pub(super) max_queue_us: i64,
    pub(super) max_start_us: i64,
    pub(super) max_send_us: i64,
    pub(super) max_run_us: i64,
    pub(super) max_recv_us: i64,
    pub(super) max_total_us: i64,
    pub(super) queue: Vec<u8>,
    pub(super) start: Vec<u8>,
    pub(super) send: Vec<u8>,
    pub(super) run: Vec<u8>,
    pub(super) recv: Vec<u8>,
    pub(super) total: Vec<u8>,
    pub(super) cold: Option<Vec<u8>>,
    pub(super) unserved: Option<Vec<u8>>,
}

impl From<Columns> for RollupRow {
    fn from(c: Columns) -> Self {
        Self {
            function: c.function_id,
            minute: c.minute,
            minutes: c.minutes,
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
            cold: c.cold,
            unserved: c.unserved,
        }
    }
}

impl Store {
    /// Stores minutes in one transaction, and counts them in the totals. Those of functions that are gone are passed over.
    pub(crate) async fn insert_rollups(&self, rows: &[RollupRow]) -> Result<(), StoreError> {
        let work = async {
            let mut transaction = self.write().await?;
            for row in rows {
                if insert(&mut transaction, row).await? {
                    let (count, errors) = (signed(row.counts.count), signed(row.counts.errors));
                    totals::add(&mut transaction, row.function, count, errors).await?;
                }
            }
            transaction.commit().await
        };
        work.await.during("store rollups")
    }

    /// Gives every rollup of a function that holds minutes from `first_minute` on to `take`, one at a time, oldest first:
    /// quarters, of which the first may begin up to 14 minutes earlier, then minutes. One statement, and so one state of
    /// the database: what is being moved from the one to the other is seen once.
    pub(crate) async fn each_rollup(
        &self,
        function: i64,
        first_minute: i64,
        mut take: impl FnMut(RollupRow),
    ) -> Result<(), StoreError> {
        let first_quarter = first_minute.div_euclid(QUARTER);
        let mut rows: BoxStream<'_, Result<Columns, sqlx::Error>> = sqlx::query_as!(
            Columns,
            r#"SELECT function_id AS "function_id!: i64", quarter * 15 AS "minute!: i64", 15 AS "minutes!: i64",
                      count AS "count!: i64", errors AS "errors!: i64", warm AS "warm!: i64", fork AS "fork!: i64",
                      restore AS "restore!: i64", boot AS "boot!: i64",
                      max_queue_us AS "max_queue_us!: i64", max_start_us AS "max_start_us!: i64",
                      max_send_us AS "max_send_us!: i64", max_run_us AS "max_run_us!: i64",
                      max_recv_us AS "max_recv_us!: i64", max_total_us AS "max_total_us!: i64",
                      queue AS "queue!: Vec<u8>", start AS "start!: Vec<u8>", send AS "send!: Vec<u8>",
                      run AS "run!: Vec<u8>", recv AS "recv!: Vec<u8>", total AS "total!: Vec<u8>",
                      cold AS "cold?: Vec<u8>", unserved AS "unserved?: Vec<u8>"
               FROM rollup_quarters WHERE function_id = ?1 AND quarter >= ?3
               UNION ALL
               SELECT function_id, minute, 1, count, errors, warm, fork, restore, boot,
                      max_queue_us, max_start_us, max_send_us, max_run_us, max_recv_us, max_total_us,
                      queue, start, send, run, recv, total, cold, unserved
               FROM rollups WHERE function_id = ?1 AND minute >= ?2"#,
            function,
            first_minute,
            first_quarter
        )
        .fetch(self.readers());
        while let Some(columns) = rows.try_next().await.during("read rollups")? {
            take(columns.into());
        }
        Ok(())
    }
}

/// Stores one minute, unless its function is gone: false then.
pub(super) async fn insert(
    connection: &mut sqlx::SqliteConnection,
    row: &RollupRow,
) -> Result<bool, sqlx::Error> {
    let (count, errors) = (signed(row.counts.count), signed(row.counts.errors));
    let [warm, fork, restore, boot] = row.counts.starts.map(signed);
    let [max_queue, max_start, max_send, max_run, max_recv, max_total] = row.counts.max.map(signed);
    let [queue, start, send, run, recv, total] = row.stages.each_ref().map(Vec::as_slice);
    let (cold, unserved) = (row.cold.as_deref(), row.unserved.as_deref());
    let inserted = sqlx::query!(
        "INSERT INTO rollups (function_id, minute, count, errors, warm, fork, restore, boot, max_queue_us, \
                              max_start_us, max_send_us, max_run_us, max_recv_us, max_total_us, \
                              queue, start, send, run, recv, total, cold, unserved) \
         SELECT id, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22 \
         FROM subjects WHERE id = ?1",
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
        total,
        cold,
        unserved
    )
    .execute(connection)
    .await?;
    Ok(inserted.rows_affected() > 0)
}
