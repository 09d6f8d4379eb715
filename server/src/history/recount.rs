//! Reconciles the rollups with the invocations at start.
//!
//! A minute's histograms are stored when it is over, invocations within 100 ms. A server that was killed therefore
//! leaves invocations of its last minute that no rollup counts. They are counted again from the newest stored minute
//! on, including that minute, which may have been stored before it was over.

use std::collections::BTreeMap;

use super::counters::minute_at;
use super::slice::Slice;
use super::unreadable;
use crate::store::{Store, StoreError};

/// Recounts what needs it. To be done before anything is recorded: what is counted in memory must not be in the table.
pub(super) async fn run(store: &Store) {
    let functions = match store.subject_ids().await {
        Ok(functions) => functions,
        Err(error) => {
            tracing::warn!(%error, "cannot check the newest rollups");
            return;
        }
    };
    for function in functions {
        match recount(store, function).await {
            Ok(0) => {}
            Ok(count) => tracing::info!(function, count, "rebuilt rollups from invocations"),
            Err(error) => {
                tracing::warn!(%error, function, "cannot check the newest rollups");
            }
        }
    }
}

/// Recounts one function; returns how many invocations were counted, 0 when all were counted already.
async fn recount(store: &Store, function: i64) -> Result<u64, StoreError> {
    let (first, counted) = store.newest_rollup(function).await?.unwrap_or((0, 0));
    if store.count_finished(function, first).await? == counted {
        return Ok(0);
    }
    let mut minutes: BTreeMap<i64, Slice> = BTreeMap::new();
    let mut count = 0;
    store
        .each_finished(function, first, |finished| {
            count += 1;
            minutes
                .entry(minute_at(finished.at))
                .or_insert_with(Slice::new)
                .record(finished.status, finished.start, &finished.stages);
        })
        .await?;
    let rows: Vec<_> = minutes
        .iter()
        .map(|(minute, slice)| slice.to_row(function, *minute, 1))
        .collect::<Result<_, _>>()
        .map_err(unreadable)?;
    store.replace_rollups(function, first, &rows).await?;
    Ok(count)
}
