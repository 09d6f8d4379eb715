//! Merges minutes into quarters of an hour. See [`crate::history`].

use super::codes::signed;
use super::rollups::{Columns, QUARTER, RollupRow};
use super::{During, Store, StoreError};

/// The minutes of one quarter of one function, and what was moved before.
#[derive(Debug)]
pub(crate) struct Unmerged {
    /// Row ids of the minutes.
    pub ids: Vec<i64>,
    /// The rows to add up: the minutes, and the quarter as it is.
    pub rows: Vec<RollupRow>,
}

impl Store {
    /// The oldest quarter of a function that has minutes of its own before `before` (a minute, the first of a quarter).
    pub(crate) async fn oldest_unmerged(
        &self,
        function: i64,
        before: i64,
    ) -> Result<Option<i64>, StoreError> {
        let minute = sqlx::query_scalar!(
            r#"SELECT min(minute) AS "minute?: i64" FROM rollups WHERE function_id = ?1"#,
            function
        )
        .fetch_one(self.readers())
        .await
        .during("find minutes to merge")?;
        Ok(minute
            .filter(|minute| *minute < before)
            .map(|minute| minute.div_euclid(QUARTER)))
    }

    /// The minutes to merge into a quarter.
    pub(crate) async fn unmerged(
        &self,
        function: i64,
        quarter: i64,
    ) -> Result<Unmerged, StoreError> {
        let (first, end) = (quarter * QUARTER, (quarter + 1) * QUARTER);
        let minutes = sqlx::query!(
            r#"SELECT id AS "id!: i64" FROM rollups WHERE function_id = ?1 AND minute >= ?2 AND minute < ?3"#,
            function,
            first,
            end
        )
        .fetch_all(self.readers())
        .await
        .during("read minutes to merge")?;
        let ids: Vec<i64> = minutes.into_iter().map(|row| row.id).collect();
        let list = json_list(&ids);
        let rows = sqlx::query_as!(
            Columns,
            r#"SELECT function_id AS "function_id!: i64", minute AS "minute!: i64", 1 AS "minutes!: i64",
                      count AS "count!: i64", errors AS "errors!: i64", warm AS "warm!: i64", fork AS "fork!: i64",
                      restore AS "restore!: i64", boot AS "boot!: i64",
                      max_queue_us AS "max_queue_us!: i64", max_start_us AS "max_start_us!: i64",
                      max_send_us AS "max_send_us!: i64", max_run_us AS "max_run_us!: i64",
                      max_recv_us AS "max_recv_us!: i64", max_total_us AS "max_total_us!: i64",
                      queue AS "queue!: Vec<u8>", start AS "start!: Vec<u8>", send AS "send!: Vec<u8>",
                      run AS "run!: Vec<u8>", recv AS "recv!: Vec<u8>", total AS "total!: Vec<u8>",
                      cold AS "cold?: Vec<u8>", unserved AS "unserved?: Vec<u8>"
               FROM rollups WHERE id IN (SELECT value FROM json_each(?1))
               UNION ALL
               SELECT function_id, quarter * 15, 15, count, errors, warm, fork, restore, boot,
                      max_queue_us, max_start_us, max_send_us, max_run_us, max_recv_us, max_total_us,
                      queue, start, send, run, recv, total, cold, unserved
               FROM rollup_quarters WHERE function_id = ?2 AND quarter = ?3"#,
            list,
            function,
            quarter
        )
        .fetch_all(self.readers())
        .await
        .during("read minutes to merge")?;
        Ok(Unmerged {
            ids,
            rows: rows.into_iter().map(RollupRow::from).collect(),
        })
    }

    /// Puts quarters in the place of the minutes they are the sum of, all in one transaction. A quarter whose minutes are
    /// not all there any more (its function was deleted, its age was up) is left for another time; so is one that
    /// cannot be: only one task merges.
    pub(crate) async fn merge_rollups(
        &self,
        merged: &[(Vec<i64>, RollupRow)],
    ) -> Result<(), StoreError> {
        let work = async {
            let mut transaction = self.write().await?;
            for (ids, row) in merged {
                let list = json_list(ids);
                let there = sqlx::query_scalar!(
                    r#"SELECT count(*) AS "there!: i64" FROM rollups WHERE id IN (SELECT value FROM json_each(?1))"#,
                    list
                )
                .fetch_one(&mut *transaction)
                .await?;
                if there != ids.len() as i64 {
                    continue;
                }
                sqlx::query!(
                    "DELETE FROM rollups WHERE id IN (SELECT value FROM json_each(?1))",
                    list
                )
                .execute(&mut *transaction)
                .await?;
                replace_quarter(&mut transaction, row).await?;
            }
            transaction.commit().await
        };
        work.await.during("merge rollups")
    }
}

async fn replace_quarter(
    connection: &mut sqlx::SqliteConnection,
    row: &RollupRow,
) -> Result<(), sqlx::Error> {
    let quarter = row.minute.div_euclid(QUARTER);
    let (count, errors) = (signed(row.counts.count), signed(row.counts.errors));
    let [warm, fork, restore, boot] = row.counts.starts.map(signed);
    let [max_queue, max_start, max_send, max_run, max_recv, max_total] = row.counts.max.map(signed);
    let [queue, start, send, run, recv, total] = row.stages.each_ref().map(Vec::as_slice);
    let (cold, unserved) = (row.cold.as_deref(), row.unserved.as_deref());
    sqlx::query!(
        "INSERT OR REPLACE INTO rollup_quarters \
             (function_id, quarter, count, errors, warm, fork, restore, boot, max_queue_us, max_start_us, max_send_us, \
              max_run_us, max_recv_us, max_total_us, queue, start, send, run, recv, total, cold, unserved) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)",
        row.function,
        quarter,
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
    Ok(())
}

fn json_list(ids: &[i64]) -> String {
    let ids: Vec<String> = ids.iter().map(i64::to_string).collect();
    format!("[{}]", ids.join(","))
}
