//! Merges old minutes into quarters of an hour, so that a week of a busy function is several hundred rows instead of
//! ten thousand.
//!
//! A minute is merged when its quarter ended [`KEPT_MINUTES`] ago: one transaction deletes it from the table of minutes
//! and adds it to its quarter. A crash therefore never loses or duplicates an invocation, and a minute that is stored
//! late is merged like any other.

use std::sync::Weak;
use std::time::Duration;

use jiff::Timestamp;

use super::Inner;
use super::counters::minute_at;
use super::slice::{Slice, SliceError};
use super::unreadable;
use crate::store::{QUARTER, RollupRow, StoreError};

/// How long minutes are kept as such: windows up to this length are shown by the minute.
pub(super) const KEPT_MINUTES: i64 = 120;

/// Time between two rounds: a few, so that a round finds little to do.
const PERIOD: Duration = Duration::from_secs(5 * 60);

/// How long after the start the first round is: there is enough to do by then.
const FIRST: Duration = Duration::from_secs(60);

/// Quarters merged in one transaction: some milliseconds of work, so that the history and deploys do not wait for long.
const PIECE: usize = 16;

/// Pause after each transaction, so that a database from before there were quarters is merged in the background in
/// earnest.
const PAUSE: Duration = Duration::from_millis(50);

/// Merges for as long as the history lives.
pub(super) async fn run(history: Weak<Inner>) {
    let mut wait = FIRST;
    loop {
        tokio::time::sleep(wait).await;
        wait = PERIOD;
        let now = minute_at(Timestamp::now().as_microsecond());
        let before = (now - KEPT_MINUTES).div_euclid(QUARTER) * QUARTER;
        match round(&history, before).await {
            Ok(_) => {}
            Err(StoreError::Sqlx {
                source: sqlx::Error::PoolClosed,
                ..
            }) => return,
            Err(error) => tracing::warn!(%error, "cannot merge old rollups yet"),
        }
        if history.strong_count() == 0 {
            return;
        }
    }
}

/// Merges all quarters that end by `before` (a minute, the first of a quarter); returns how many there were.
pub(super) async fn round(history: &Weak<Inner>, before: i64) -> Result<usize, StoreError> {
    let mut merged = 0;
    loop {
        let of_this_pass = pass(history, before).await?;
        merged += of_this_pass;
        if of_this_pass == 0 {
            return Ok(merged);
        }
    }
}

/// Merges the oldest quarter of every function that has one to merge.
async fn pass(history: &Weak<Inner>, before: i64) -> Result<usize, StoreError> {
    let functions = match history.upgrade() {
        Some(inner) => inner.store.subject_ids().await?,
        None => return Ok(0),
    };
    let mut merged = 0;
    for piece in functions.chunks(PIECE) {
        // Not held in the pauses, so that the history can end.
        let Some(inner) = history.upgrade() else {
            return Ok(merged);
        };
        let mut sums = Vec::new();
        for function in piece {
            let Some(quarter) = inner.store.oldest_unmerged(*function, before).await? else {
                continue;
            };
            let unmerged = inner.store.unmerged(*function, quarter).await?;
            sums.push((unmerged.ids, sum(unmerged.rows, *function, quarter).await?));
        }
        if !sums.is_empty() {
            inner.store.merge_rollups(&sums).await?;
            inner.changed();
            merged += sums.len();
            drop(inner);
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(merged)
}

/// [`add_up`], away from the threads that serve requests.
async fn sum(rows: Vec<RollupRow>, function: i64, quarter: i64) -> Result<RollupRow, StoreError> {
    match tokio::task::spawn_blocking(move || add_up(&rows, function, quarter)).await {
        Ok(sum) => sum.map_err(unreadable),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down.
            Err(_) => Err(StoreError::Sqlx {
                operation: "merge rollups",
                source: sqlx::Error::PoolClosed,
            }),
        },
    }
}

/// The sum of rows as the row of their quarter. Rows that cannot be read are left out: they would stop the merging for
/// ever, and the pages leave them out as well.
pub(super) fn add_up(
    rows: &[RollupRow],
    function: i64,
    quarter: i64,
) -> Result<RollupRow, SliceError> {
    let mut sum = Slice::new();
    for row in rows {
        if let Err(error) = sum.add_row(row) {
            tracing::warn!(%error, function, minute = row.minute, "skipping a rollup");
        }
    }
    sum.to_row(function, quarter * QUARTER, QUARTER)
}
