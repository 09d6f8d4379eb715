//! Puts together what is known of an invocation.

use std::time::Duration;

use jiff::Timestamp;

use super::Tail;
use super::causes::Facts;
use crate::model::{Explanation, InvocationRecord, Meanwhile, Stages, Stats, TailWindow};
use crate::store::StoreError;

/// What a median is of.
const RECENT: Duration = Duration::from_hours(1);
/// What it is of when the function was not called twice in that: all that statistics are kept of.
const WEEK: Duration = Duration::from_hours(7 * 24);
/// Most functions that are named among those that ran meanwhile.
const NAMED_MAX: usize = 10;

impl Tail {
    /// Explains an invocation of a function (its row id). `names_all`: whether deployments and experiments may be named; `may_name`:
    /// whether a function may.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn explain(
        &self,
        function: i64,
        record: &InvocationRecord,
        names_all: bool,
        may_name: impl Fn(&str) -> bool + Send,
    ) -> Result<Explanation, StoreError> {
        let history = &self.0.history;
        let mut stats = history.stats(function, RECENT).await?;
        if stats.count < 2 {
            stats = history.stats(function, WEEK).await?;
        }
        let median = median(&stats);
        let from = record.received_at;
        let to = end_of(record);
        let (window, usual, since) = self.window(from, to, &record.function).await;
        let facts = Facts {
            record,
            median: median.as_ref(),
            window: window.as_ref(),
            usual: usual.as_ref(),
        };
        let causes = facts.causes();
        Ok(Explanation {
            id: record.id,
            function: record.function.clone(),
            start: record.start,
            received_at: from,
            stages_us: record.stages_us,
            median_us: median,
            p99_us: stats.total_us.p99,
            excess_us: facts.excess_us(),
            summary: facts.summary(&causes),
            causes,
            counters: record.counters,
            window_since: since,
            meanwhile: self
                .meanwhile(record, (from, to), names_all, may_name)
                .await?,
            window,
        })
    }

    /// The host's counters around a time and on average, and since when there are any.
    async fn window(
        &self,
        from: Timestamp,
        to: Timestamp,
        function: &str,
    ) -> (Option<TailWindow>, Option<TailWindow>, Timestamp) {
        let (from, to) = (from.as_microsecond(), to.as_microsecond());
        let is_behind = self.0.ring.lock().newest().is_none_or(|newest| newest < to);
        if is_behind {
            let tail = self.clone();
            // With many sandboxes it takes milliseconds. If the server ends, the samples so far have to do.
            let _ = tokio::task::spawn_blocking(move || tail.0.sample()).await;
        }
        let ring = self.0.ring.lock();
        let since = ring.oldest().map(Timestamp::from_microsecond);
        (
            ring.around(from, to, function),
            ring.whole(function),
            since.and_then(Result::ok).unwrap_or_else(Timestamp::now),
        )
    }

    async fn meanwhile(
        &self,
        record: &InvocationRecord,
        (from, to): (Timestamp, Timestamp),
        names_all: bool,
        may_name: impl Fn(&str) -> bool + Send,
    ) -> Result<Meanwhile, StoreError> {
        let store = &self.0.store;
        let ran = store.ran(from, to, record.id).await?;
        let mut found = Meanwhile {
            slow_writes_us: self.0.history.slow_writes(from, to),
            ..Meanwhile::default()
        };
        for one in ran {
            if found.invocations.len() < NAMED_MAX && may_name(&one.function) {
                found.invocations.push(one);
            } else {
                found.unnamed += one.count;
            }
        }
        if names_all {
            found.deployments = store.deployed_around(from, to).await?;
            found.experiments = store.experiments_during(from, to).await?;
        }
        Ok(found)
    }
}

/// When it was over, by its own stages where the record has no time.
fn end_of(record: &InvocationRecord) -> Timestamp {
    let total = Duration::from_micros(record.stages_us.total);
    record.finished_at.unwrap_or_else(|| {
        let end = record.received_at.saturating_add(total);
        end.unwrap_or(record.received_at)
    })
}

fn median(stats: &Stats) -> Option<Stages> {
    let stages = &stats.stages_us;
    Some(Stages {
        queue: stages.queue.p50.unwrap_or_default(),
        start: stages.start.p50.unwrap_or_default(),
        send: stages.send.p50.unwrap_or_default(),
        run: stages.run.p50.unwrap_or_default(),
        recv: stages.recv.p50.unwrap_or_default(),
        total: stats.total_us.p50?,
    })
}
