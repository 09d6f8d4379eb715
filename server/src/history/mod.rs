//! Finished invocations: batched into SQLite, counted in histograms, pushed to subscribers.
//!
//! [`History::record`] does three things with a record, none of which waits for the disk: it counts it (`counters`,
//! `slice`, `buckets`), sends it to subscribers, and queues it for the `writer` (`queue`). A read waits until
//! everything recorded before it is written. Each minute's histograms are stored when the minute is over (`rollup`);
//! statistics over a window are the sum of the stored minutes and those still in memory.

mod bounds;
mod buckets;
mod codec;
mod counters;
mod failures;
mod heat;
mod latency;
mod lifetime;
mod merge;
mod minute;
mod parts;
mod payload;
mod queue;
mod reading;
mod recent;
mod recount;
mod rollup;
mod search;
mod slice;
mod slots;
mod slow_writes;
mod types;
mod writer;

pub use latency::LatencyReader;
pub use payload::Captured;
pub use recent::Recent;
pub use search::{SearchText, SearchTextError};
pub use types::{Event, LiveHistogram, Totals};

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use jiff::Timestamp;
use tokio::sync::{Semaphore, broadcast};

use crate::model::{Failure, InvocationRecord, LogEntry, PayloadLimits, Retention, Trigger};
use crate::store::{Store, StoreError};
use counters::{Function, minute_at};
use failures::Failures;
use lifetime::Lifetime;
use payload::{CaptureLimits, NodeCaptureLimit};
use queue::{Item, QUEUE_UNITS, Queue};
use slice::SliceError;
use slow_writes::SlowWrites;
use writer::Writer;

/// How long a read waits for what was recorded before it. When the disk is slower than this, it answers with what is
/// there.
const READ_WAIT: Duration = Duration::from_secs(1);

/// How long [`History::flush`] waits: a disk that takes nothing must not keep the server from stopping.
const FLUSH_WAIT: Duration = Duration::from_secs(10);

/// Concurrent searches. A common prefix can take a second in a large log, and other reads must not wait for a
/// connection because of it.
const SEARCHES: usize = 2;
/// Lists cover this many minutes.
pub const RECENT_MINUTES: i64 = 5;

/// The history. Cheap to clone.
#[derive(Clone)]
pub struct History {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    queue: Queue,
    /// Functions by row id. Reading takes no lock; a new function swaps in a new map.
    functions: ArcSwap<HashMap<i64, Arc<Function>>>,
    /// Held for writing while minutes move from memory into the database, so that a reader counts each once.
    moving: Arc<tokio::sync::RwLock<()>>,
    /// [`READ_WAIT`] but in tests.
    read_wait: Duration,
    /// The stored part of events and results.
    payloads: ArcSwap<PayloadLimits>,
    node_gate: NodeCaptureLimit,
    born: Instant,
    /// Limits concurrent searches of log lines: see [`SEARCHES`].
    searches: Semaphore,
    /// The minute the history was started in.
    started: i64,
    /// Generation of the stored rollups, so that cached sums can be invalidated.
    changes: AtomicU64,
    failures: Failures,
    lifetime: Lifetime,
    slow_writes: Arc<SlowWrites>,
}

impl History {
    /// Starts the batching writer and the per-minute rollup on the current tokio runtime.
    pub fn start(store: Store) -> Self {
        Self::start_with(store, READ_WAIT)
    }

    fn start_with(store: Store, read_wait: Duration) -> Self {
        let moving = Arc::new(tokio::sync::RwLock::new(()));
        // Statistics wait until the rollups that a crash left behind are right again, and so does the writer: nothing is
        // in the table by then that is in memory too.
        let recounting = moving.clone().try_write_owned();
        let (queue, outlet) = queue::queue(QUEUE_UNITS);
        let slow_writes = Arc::<SlowWrites>::default();
        let started = minute_at(Timestamp::now().as_microsecond());
        let inner = Arc::new(Inner {
            queue,
            store: store.clone(),
            functions: ArcSwap::default(),
            moving,
            read_wait,
            payloads: ArcSwap::from_pointee(Retention::default().payloads()),
            node_gate: NodeCaptureLimit::default(),
            born: Instant::now(),
            searches: Semaphore::new(SEARCHES),
            started,
            changes: AtomicU64::new(0),
            failures: Failures::default(),
            lifetime: Lifetime::default(),
            slow_writes: slow_writes.clone(),
        });
        let loaded = Arc::downgrade(&inner);
        tokio::spawn(async move {
            recount::run(&store).await;
            if let Some(inner) = loaded.upgrade() {
                inner.load_lifetime().await;
                inner.load_recent(started - RECENT_MINUTES).await;
                inner.load_failures().await;
            }
            drop(recounting);
            Writer::new(store, slow_writes).run(outlet).await;
        });
        tokio::spawn(merge::run(Arc::downgrade(&inner)));
        tokio::spawn(rollup::run(Arc::downgrade(&inner)));
        Self { inner }
    }

    /// Records a finished invocation (its logs included). Never blocks the caller unless 65,536 are waiting to be written,
    /// when it waits for room: none is dropped, not even when the future is. While the database cannot be written it does
    /// not wait, and what finds no room is lost. A record with more than 4 KiB of log and error counts as several. The
    /// record of a function that has been deleted is passed over when written; an id that was recorded before is replaced.
    pub async fn record(&self, function: i64, record: InvocationRecord) {
        self.record_with(function, record, None).await;
    }

    /// Records an invocation with the captured part of its event and result.
    pub async fn record_with(
        &self,
        function: i64,
        record: InvocationRecord,
        captured: Option<Box<Captured>>,
    ) {
        let known = self.inner.function(function);
        known.counters.lock().record(&record);
        self.inner.lifetime.note(&record);
        if let Some(failure) = Failure::of(&record) {
            self.inner.failures.note(failure);
        }
        let record = Arc::new(record);
        known.publish(|| Event::Finished(record.clone()));
        self.inner
            .queue
            .put(Item::Invocation(function, record, captured))
            .await;
    }

    /// Takes an event along with the invocation that begins with it, if it is one of those whose payloads are kept.
    pub fn capture(&self, function: i64, trigger: Trigger, event: &[u8]) -> Option<Box<Captured>> {
        self.inner
            .capture(function, trigger, event, NodeCaptureLimit::admits_begun)
    }

    /// The same when it has failed and was not one of those.
    pub fn capture_failed(
        &self,
        function: i64,
        trigger: Trigger,
        event: &[u8],
    ) -> Option<Box<Captured>> {
        self.inner
            .capture(function, trigger, event, NodeCaptureLimit::admits_failed)
    }

    /// Sets how much of each event and result is stored from now on.
    pub fn limit_payloads(&self, limits: PayloadLimits) {
        self.inner.payloads.store(Arc::new(limits));
    }

    /// A line as it is written, for followers; it is stored with its invocation's record, not by this call.
    pub fn publish_log(&self, function: i64, entry: LogEntry) {
        if let Some(function) = self.inner.functions.load().get(&function) {
            function.publish(|| Event::Log(Arc::new(entry)));
        }
    }

    /// Stores lines that came after their invocation was recorded, or during import (`invocation: None`).
    pub async fn late_logs(&self, function: i64, entries: Vec<LogEntry>) {
        if !entries.is_empty() {
            self.inner.queue.put(Item::Logs(function, entries)).await;
        }
    }

    /// Subscribes to a function. A subscriber that falls 1024 events behind misses the oldest and is notified.
    pub fn subscribe(&self, function: i64) -> broadcast::Receiver<Event> {
        self.inner.function(function).subscribe()
    }

    /// Drops a deleted function's histograms and listeners.
    pub fn forget(&self, function: i64) {
        self.inner.functions.rcu(|functions| {
            let mut functions = HashMap::clone(functions);
            functions.remove(&function);
            functions
        });
    }

    /// Writes everything that is waiting, the running minute's histograms included. Gives up after 10 s, with a line in
    /// the log.
    pub async fn flush(&self) {
        let flushed = tokio::time::timeout(FLUSH_WAIT, async {
            let written = self.inner.queue.written(FLUSH_WAIT).await;
            (written, self.inner.store_minutes_before(i64::MAX).await)
        });
        match flushed.await {
            Ok((true, Ok(()))) => {}
            Ok((_, Err(error))) => tracing::error!(%error, "cannot store rollups"),
            Ok((false, _)) | Err(_) => tracing::error!("the history was not written in time"),
        }
    }
}

impl Inner {
    /// Waits until what was recorded before is written, but not for ever.
    async fn caught_up(&self) {
        self.queue.written(self.read_wait).await;
    }

    fn capture(
        &self,
        function: i64,
        trigger: Trigger,
        event: &[u8],
        admits: impl FnOnce(&NodeCaptureLimit, &CaptureLimits, u64) -> bool,
    ) -> Option<Box<Captured>> {
        let limits = **self.payloads.load();
        if limits.event_bytes == 0 && limits.result_bytes == 0 {
            return None;
        }
        let known = self.function(function);
        let second = self.born.elapsed().as_secs();
        admits(&self.node_gate, &known.payloads, second)
            .then(|| Box::new(Captured::new(limits, trigger == Trigger::Http, event)))
    }

    /// The function's counters, made when they are first needed.
    fn function(&self, id: i64) -> Arc<Function> {
        if let Some(function) = self.functions.load().get(&id) {
            return function.clone();
        }
        let fresh = Arc::new(Function::default());
        self.functions.rcu(|functions| {
            let mut functions = HashMap::clone(functions);
            functions.entry(id).or_insert_with(|| fresh.clone());
            functions
        });
        // Another thread's may have been first.
        self.functions.load().get(&id).cloned().unwrap_or(fresh)
    }

    /// Invalidates cached sums of the stored rollups.
    fn changed(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
    }
}

/// A histogram that does not fit: a bug, reported as the operation that it prevents.
fn unreadable(error: SliceError) -> StoreError {
    StoreError::Sqlx {
        operation: "add up histograms",
        source: sqlx::Error::Decode(Box::new(error)),
    }
}
