//! Reads the history: statistics, invocations and log lines.

use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use super::counters::minute_at;
use super::slice::Slice;
use super::{History, LiveHistogram, SearchText, Totals, unreadable};
use crate::model::{
    FoundLine, InvocationFilter, InvocationId, InvocationPayloads, InvocationRecord, LogEntry,
    Page, Stats,
};
use crate::store::StoreError;

/// Most items of a page.
const LONGEST_PAGE: u32 = 1000;

impl History {
    /// Statistics over the last `window` (1 min to 7 days): the minutes the window touches, the running one included, so
    /// that up to a minute more than the window is covered; up to a quarter of an hour more, when the window is longer
    /// than two hours. An invocation counts in the minute it finished in.
    pub async fn stats(&self, function: i64, window: Duration) -> Result<Stats, StoreError> {
        let window_us = i64::try_from(window.as_micros()).unwrap_or(i64::MAX);
        let now = Timestamp::now().as_microsecond();
        let first = minute_at(now.saturating_sub(window_us));
        let mut sum = Slice::new();
        let _moving = self.inner.moving.read().await;
        if let Some(function) = self.inner.functions.load().get(&function) {
            let added = function.counters.lock().add_to(&mut sum, first);
            added.map_err(unreadable)?;
        }
        self.inner
            .store
            .each_rollup(function, first, |row| {
                if let Err(error) = sum.add_row(&row) {
                    tracing::warn!(%error, function, minute = row.minute, "skipping a rollup");
                }
            })
            .await?;
        Ok(sum.stats(window.as_secs()))
    }

    /// The live histogram.
    pub fn live(&self, function: i64) -> LiveHistogram {
        match self.inner.functions.load().get(&function) {
            Some(function) => function.counters.lock().live(),
            None => LiveHistogram::default(),
        }
    }

    /// Totals of all functions that were invoked since the server started, by name.
    pub fn totals(&self) -> Vec<Totals> {
        self.totals_of(|id| id > 0)
    }

    /// The same of all chains.
    pub fn chain_totals(&self) -> Vec<Totals> {
        self.totals_of(|id| id < 0)
    }

    fn totals_of(&self, counts: impl Fn(i64) -> bool) -> Vec<Totals> {
        let functions = self.inner.functions.load();
        let mut totals: Vec<Totals> = functions
            .iter()
            .filter(|(id, _)| counts(**id))
            .map(|(_, function)| function.counters.lock().totals())
            .filter(|totals| totals.histogram.count > 0)
            .collect();
        totals.sort_by(|a, b| a.function.cmp(&b.function));
        totals
    }

    /// Invocations that pass a filter, newest first (by id, and so by admission). Sees everything recorded before the
    /// call, unless the disk needs more than a second for it. `before` is a `next` of an earlier page; `Ok(None)` when
    /// it is not one. `limit` 1 to 1000. A page with a `next` may be short or empty: not every filter has an index, and
    /// one call scans a few thousand rows at most.
    pub async fn list(
        &self,
        function: i64,
        filter: &InvocationFilter,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Option<Page<InvocationRecord>>, StoreError> {
        let before = match before.map(Uuid::parse_str).transpose() {
            Ok(before) => before.map(InvocationId),
            Err(_) => return Ok(None),
        };
        let limit = limit.clamp(1, LONGEST_PAGE);
        self.inner.caught_up().await;
        let found = self
            .inner
            .store
            .invocations(function, filter, before, limit)
            .await?;
        Ok(Some(Page {
            items: found.items,
            next: found.next.map(|id| id.to_string()),
        }))
    }

    /// One invocation with its log lines. Sees everything recorded before the call, as [`Self::list`] does.
    pub async fn get(&self, id: InvocationId) -> Result<Option<InvocationRecord>, StoreError> {
        self.inner.caught_up().await;
        self.inner.store.invocation(id).await
    }

    /// The stored part of an invocation's event and result. Call it after [`Self::get`], which waits for it.
    pub async fn payloads(&self, id: InvocationId) -> Result<InvocationPayloads, StoreError> {
        self.inner.store.payloads(id).await
    }

    /// The newest `limit` log lines, oldest first. Sees everything recorded before the call, as [`Self::list`] does.
    pub async fn logs(&self, function: i64, limit: u32) -> Result<Vec<LogEntry>, StoreError> {
        self.inner.caught_up().await;
        self.inner.store.newest_logs(function, limit).await
    }

    /// The lines that have all words of a text, newest first, `limit` (1 to 1000) at most; of one invocation if one is
    /// given. Sees everything recorded before the call, as [`Self::list`] does. `before` is a `next` of an earlier page;
    /// `Ok(None)` when it is not one.
    pub async fn search(
        &self,
        function: i64,
        text: &SearchText,
        invocation: Option<InvocationId>,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Option<Page<FoundLine>>, StoreError> {
        let before = match before.map(str::parse::<i64>).transpose() {
            Ok(before) => before.unwrap_or(i64::MAX),
            Err(_) => return Ok(None),
        };
        let limit = limit.clamp(1, LONGEST_PAGE);
        self.inner.caught_up().await;
        let query = text.in_function(function);
        let _turn = self.inner.searches.acquire().await;
        let mut items = self
            .inner
            .store
            .search_logs(&query, invocation, before, limit + 1)
            .await?;
        let next = if items.len() > limit as usize {
            items.truncate(limit as usize);
            items.last().map(|line| line.key.to_string())
        } else {
            None
        };
        Ok(Some(Page { items, next }))
    }

    /// An invocation's lines, oldest first. Sees everything recorded before the call, as [`Self::list`] does.
    pub async fn logs_of(
        &self,
        function: i64,
        invocation: InvocationId,
        limit: u32,
    ) -> Result<Vec<LogEntry>, StoreError> {
        self.inner.caught_up().await;
        let store = &self.inner.store;
        store.invocation_logs(function, invocation, limit).await
    }
}
