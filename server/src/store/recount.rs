//! Queries for recounting the newest rollups: see [`crate::history`].

use futures_util::TryStreamExt as _;
use futures_util::stream::BoxStream;
use uuid::{NoContext, Timestamp as UuidTime, Uuid};

use super::codes::{StoredCode, signed, unsigned};
use super::rollups::{QUARTER, insert};
use super::{During, RollupRow, Store, StoreError, totals};
use crate::model::{Stages, StartKind, Status};

/// Maximum seconds from admission (encoded in the id) to the end of an invocation: 15 min of run time plus waiting.
const LONGEST_INVOCATION_S: i64 = 3600;

/// What a rollup counts of an invocation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Finished {
    /// When it ended, µs since 1970.
    pub at: i64,
    /// How it ended.
    pub status: Status,
    /// How its instance was started.
    pub start: Option<StartKind>,
    /// Where its time went.
    pub stages: Stages,
}

struct FinishedRow {
    at: i64,
    status: i64,
    start_code: Option<i64>,
    queue_us: i64,
    start_us: i64,
    send_us: i64,
    run_us: i64,
    recv_us: i64,
    total_us: i64,
}

impl FinishedRow {
    fn read(self) -> Result<Finished, sqlx::Error> {
        Ok(Finished {
            at: self.at,
            status: Status::from_code(self.status)?,
            start: self.start_code.map(StartKind::from_code).transpose()?,
            stages: Stages {
                queue: unsigned(self.queue_us),
                start: unsigned(self.start_us),
                send: unsigned(self.send_us),
                run: unsigned(self.run_us),
                recv: unsigned(self.recv_us),
                total: unsigned(self.total_us),
            },
        })
    }
}

/// The smallest id an invocation can have that ended at or after this minute.
fn first_id(minute: i64) -> [u8; 16] {
    let seconds = minute
        .saturating_mul(60)
        .saturating_sub(LONGEST_INVOCATION_S);
    let time = UuidTime::from_unix(NoContext, u64::try_from(seconds).unwrap_or(0), 0);
    let mut id = Uuid::new_v7(time).into_bytes();
    // Behind the 48 bits of time everything is random: the smallest of that millisecond has none of it.
    id[6..].fill(0);
    id
}

impl Store {
    /// Ids of all functions and chains in the history.
    pub(crate) async fn subject_ids(&self) -> Result<Vec<i64>, StoreError> {
        sqlx::query_scalar!("SELECT id FROM subjects")
            .fetch_all(self.readers())
            .await
            .during("list what has a history")
    }

    /// The newest minute a function has a rollup of, and the invocations counted in it. A minute whose rollup was merged
    /// is long over and complete: the first one after it, of which nothing is counted yet, is the newest then.
    pub(crate) async fn newest_rollup(
        &self,
        function: i64,
    ) -> Result<Option<(i64, u64)>, StoreError> {
        let row = sqlx::query!(
            r#"SELECT minute AS "minute!: i64", sum(count) AS "count!: i64" FROM rollups
               WHERE function_id = ?1 GROUP BY minute ORDER BY minute DESC LIMIT 1"#,
            function
        )
        .fetch_optional(self.readers())
        .await
        .during("find the newest rollup")?;
        if let Some(row) = row {
            return Ok(Some((row.minute, unsigned(row.count))));
        }
        let quarter = sqlx::query_scalar!(
            r#"SELECT max(quarter) AS "quarter?: i64" FROM rollup_quarters WHERE function_id = ?1"#,
            function
        )
        .fetch_one(self.readers())
        .await
        .during("find the newest rollup")?;
        Ok(quarter.map(|quarter| ((quarter + 1) * QUARTER, 0)))
    }

    /// How many of a function's invocations ended in `minute` or later.
    pub(crate) async fn count_finished(
        &self,
        function: i64,
        minute: i64,
    ) -> Result<u64, StoreError> {
        let id = first_id(minute);
        let id = id.as_slice();
        let from = minute.saturating_mul(60_000_000);
        let count = sqlx::query_scalar!(
            "SELECT count(*) FROM invocations \
             WHERE function_id = ?1 AND id >= ?2 AND coalesce(finished_us, received_us) >= ?3",
            function,
            id,
            from
        )
        .fetch_one(self.readers())
        .await
        .during("count invocations")?;
        Ok(unsigned(count))
    }

    /// Gives every invocation of a function that ended in `minute` or later to `take`.
    pub(crate) async fn each_finished(
        &self,
        function: i64,
        minute: i64,
        mut take: impl FnMut(Finished),
    ) -> Result<(), StoreError> {
        let id = first_id(minute);
        let id = id.as_slice();
        let from = minute.saturating_mul(60_000_000);
        let work = async {
            let mut rows: BoxStream<'_, Result<FinishedRow, sqlx::Error>> = sqlx::query_as!(
                FinishedRow,
                r#"SELECT coalesce(finished_us, received_us) AS "at!: i64", status, start_code,
                          queue_us, start_us, send_us, run_us, recv_us, total_us
                   FROM invocations
                   WHERE function_id = ?1 AND id >= ?2 AND coalesce(finished_us, received_us) >= ?3"#,
                function,
                id,
                from
            )
            .fetch(self.readers());
            while let Some(row) = rows.try_next().await? {
                take(row.read()?);
            }
            Ok(())
        };
        work.await.during("read invocations")
    }

    /// Replaces a function's rollups of `first_minute` and later by others, in one transaction.
    pub(crate) async fn replace_rollups(
        &self,
        function: i64,
        first_minute: i64,
        rows: &[RollupRow],
    ) -> Result<(), StoreError> {
        let work = async {
            let mut transaction = self.write().await?;
            let before = sqlx::query!(
                r#"SELECT coalesce(sum(count), 0) AS "count!: i64", coalesce(sum(errors), 0) AS "errors!: i64"
                   FROM rollups WHERE function_id = ?1 AND minute >= ?2"#,
                function,
                first_minute
            )
            .fetch_one(&mut *transaction)
            .await?;
            sqlx::query!(
                "DELETE FROM rollups WHERE function_id = ?1 AND minute >= ?2",
                function,
                first_minute
            )
            .execute(&mut *transaction)
            .await?;
            let (mut count, mut errors) = (-before.count, -before.errors);
            for row in rows {
                if insert(&mut transaction, row).await? {
                    count += signed(row.counts.count);
                    errors += signed(row.counts.errors);
                }
            }
            totals::add(&mut transaction, function, count.max(0), errors.max(0)).await?;
            transaction.commit().await
        };
        work.await.during("replace rollups")
    }
}
