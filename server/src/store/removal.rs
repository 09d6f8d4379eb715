//! Removes history in batches: the oldest of all, or a [deleted function's](deleted).
//!
//! A batch is one transaction of a few milliseconds. The write connection is released after it, so that neither the
//! history nor a deploy waits for long. What belongs to a row (event and result, search index entries, counts) is
//! removed in the same transaction.

pub(super) mod deleted;

use jiff::Timestamp;

use super::codes::{timestamp, unsigned};
use super::sizes::{self, Size, Sizes};
use super::{During, QUARTER, Store, StoreError};

/// Rows removed in one transaction. Removing an invocation touches five indexes, removing a line the search's.
pub(crate) const PIECE: u32 = 1_000;

/// The first row that stays would be, for a range of ids.
pub(super) fn first_id_at(at: Timestamp) -> [u8; 16] {
    let millis = u64::try_from(at.as_millisecond()).unwrap_or(0);
    let mut id = [0; 16];
    // A UUIDv7 begins with 48 bits of milliseconds.
    id[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
    id
}

fn size(rows: u64, text: i64) -> Size {
    Size {
        rows,
        text: unsigned(text),
    }
}

impl Store {
    /// Removes the oldest invocations of all functions, at most `most` and a piece, with their events and results; only
    /// such as were admitted before `before`. Returns how many.
    pub(crate) async fn remove_invocations(
        &self,
        before: Timestamp,
        most: u32,
    ) -> Result<u64, StoreError> {
        let (before, most) = (first_id_at(before), most.min(PIECE));
        let work = async {
            let before = before.as_slice();
            let mut transaction = self.write().await?;
            let last = sqlx::query_scalar!(
                "SELECT max(id) FROM (SELECT id FROM invocations WHERE id < ?1 ORDER BY id LIMIT ?2)",
                before,
                most
            )
            .fetch_one(&mut *transaction)
            .await?;
            let Some(last) = last else {
                return Ok(0);
            };
            let payloads = sqlx::query!(
                r#"SELECT count(*) AS "rows!: i64",
                          coalesce(sum(octet_length(event)), 0) + coalesce(sum(octet_length(result)), 0) AS "text!: i64"
                   FROM invocation_payloads WHERE invocation <= ?1"#,
                last
            )
            .fetch_one(&mut *transaction)
            .await?;
            sqlx::query!(
                "DELETE FROM invocation_payloads WHERE invocation <= ?1",
                last
            )
            .execute(&mut *transaction)
            .await?;
            let text = sqlx::query_scalar!(
                r#"SELECT coalesce(sum(octet_length(error)), 0) + coalesce(sum(octet_length(trace)), 0) AS "text!: i64"
                   FROM invocations WHERE id <= ?1"#,
                last
            )
            .fetch_one(&mut *transaction)
            .await?;
            let removed = sqlx::query!("DELETE FROM invocations WHERE id <= ?1", last)
                .execute(&mut *transaction)
                .await?
                .rows_affected();
            let sizes = Sizes {
                invocations: size(removed, text),
                payloads: size(unsigned(payloads.rows), payloads.text),
                logs: Size::default(),
            };
            sizes::subtract(&mut transaction, &sizes).await?;
            transaction.commit().await?;
            Ok(removed)
        };
        work.await.during("remove old invocations")
    }

    /// Removes the oldest log lines of all functions, at most `most` and a piece; it ends at the first that was written at
    /// `before` or later. Returns how many.
    pub(crate) async fn remove_lines(
        &self,
        before: Timestamp,
        most: u32,
    ) -> Result<u64, StoreError> {
        let (before, most) = (before.as_microsecond(), most.min(PIECE));
        let work = async {
            let mut transaction = self.write().await?;
            // In the order in which they were stored, which is that of their time but for some seconds.
            let old = sqlx::query!(
                r#"SELECT max(seq) AS "last: i64", coalesce(sum(octet_length(text)), 0) AS "text!: i64"
                   FROM (SELECT seq, text, max(time_us) OVER (ORDER BY seq) AS newest FROM
                         (SELECT seq, text, time_us FROM logs ORDER BY seq LIMIT ?2))
                   WHERE newest < ?1"#,
                before,
                most
            )
            .fetch_one(&mut *transaction)
            .await?;
            let Some(last) = old.last else {
                return Ok(0);
            };
            let removed = sqlx::query!("DELETE FROM logs WHERE seq <= ?1", last)
                .execute(&mut *transaction)
                .await?
                .rows_affected();
            let sizes = Sizes {
                logs: size(removed, old.text),
                ..Sizes::default()
            };
            sizes::subtract(&mut transaction, &sizes).await?;
            transaction.commit().await?;
            Ok(removed)
        };
        work.await.during("remove old log lines")
    }

    /// Removes statistics of a function from before `before`, at most a piece. Returns how many rows.
    pub(crate) async fn remove_statistics(
        &self,
        function: i64,
        before: Timestamp,
    ) -> Result<u64, StoreError> {
        let minute = before.as_second().div_euclid(60);
        let quarter = minute.div_euclid(QUARTER);
        let work = async {
            // Most functions have nothing to remove: looking does not need the writing connection.
            let old = sqlx::query_scalar!(
                "SELECT 1 FROM rollups WHERE function_id = ?1 AND minute < ?2 \
                 UNION ALL SELECT 1 FROM rollup_quarters WHERE function_id = ?1 AND quarter < ?3 LIMIT 1",
                function,
                minute,
                quarter
            )
            .fetch_optional(self.readers())
            .await?;
            if old.is_none() {
                return Ok(0);
            }
            let mut transaction = self.write().await?;
            let removed = sqlx::query!(
                "DELETE FROM rollups WHERE id IN \
                 (SELECT id FROM rollups WHERE function_id = ?1 AND minute < ?2 ORDER BY minute LIMIT ?3)",
                function,
                minute,
                PIECE
            )
            .execute(&mut *transaction)
            .await?
            .rows_affected();
            let quarters = sqlx::query!(
                "DELETE FROM rollup_quarters WHERE function_id = ?1 AND quarter IN \
                 (SELECT quarter FROM rollup_quarters WHERE function_id = ?1 AND quarter < ?2 ORDER BY quarter LIMIT ?3)",
                function,
                quarter,
                PIECE
            )
            .execute(&mut *transaction)
            .await?
            .rows_affected();
            transaction.commit().await?;
            Ok(removed + quarters)
        };
        work.await.during("remove old statistics")
    }

    /// When the oldest invocation was admitted and the oldest line written.
    pub(crate) async fn oldest(&self) -> Result<Oldest, StoreError> {
        let work = async {
            let invocation =
                sqlx::query_scalar!("SELECT received_us FROM invocations ORDER BY id LIMIT 1")
                    .fetch_optional(self.readers())
                    .await?;
            let line = sqlx::query_scalar!("SELECT time_us FROM logs ORDER BY seq LIMIT 1")
                .fetch_optional(self.readers())
                .await?;
            Ok(Oldest {
                invocation: invocation.map(timestamp).transpose()?,
                line: line.map(timestamp).transpose()?,
            })
        };
        work.await.during("find the oldest of the history")
    }

    /// When the oldest statistics of any function begin.
    pub(crate) async fn oldest_statistics(&self) -> Result<Option<Timestamp>, StoreError> {
        // One look into each function's, because both are in the order of functions.
        let work = async {
            let minute = sqlx::query_scalar!(
                r#"SELECT min(min(
                       coalesce((SELECT min(minute) FROM rollups WHERE function_id = f.id), 9000000000),
                       coalesce((SELECT min(quarter) * 15 FROM rollup_quarters WHERE function_id = f.id), 9000000000)
                   )) AS "minute: i64" FROM subjects f"#
            )
            .fetch_one(self.readers())
            .await?;
            minute
                .filter(|minute| *minute < 9_000_000_000)
                .map(|minute| timestamp(minute.saturating_mul(60_000_000)))
                .transpose()
        };
        work.await.during("find the oldest statistics")
    }
}

/// The oldest of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Oldest {
    /// When it was admitted.
    pub invocation: Option<Timestamp>,
    /// When it was written.
    pub line: Option<Timestamp>,
}
