//! The batching writer: one task that takes what was recorded and writes it, many at a time.
//!
//! A recording never waits for the disk and, but for the first of a batch, wakes nobody: it is put into an unbounded queue,
//! and the writer sleeps until its batch is due. What bounds the queue is that whoever recorded past the limit waits
//! *after* putting its record in, until the writer has caught up; so a caller that is cancelled loses nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until};

use super::LogEntry;
use crate::model::InvocationRecord;
use crate::store::{HistoryBatch, Store, StoreError};

/// Room of the queue, in records of up to [`UNIT_BYTES`]; a larger record takes more of it. So at most 256 MiB wait.
pub(super) const QUEUE_UNITS: usize = 65_536;

/// Bytes of text (log lines, error) that count as one record.
const UNIT_BYTES: usize = 4096;

/// How long a record may wait for company. What a crash can lose is this and the time of one write: 100 ms.
const BATCH_WAIT: Duration = Duration::from_millis(80);

/// A batch of this many units is written without waiting for more.
const BATCH_ENOUGH: usize = 2_048;

/// A batch takes no more than about this many units, so that a deploy waits for the writing connection some tens of
/// milliseconds at most, and a batch's text in memory stays below 32 MiB.
const BATCH_MOST: usize = 8_192;

/// Pause after the first failed write, doubled up to [`RETRY_LONGEST`].
const RETRY_FIRST: Duration = Duration::from_millis(100);

/// Longest pause between attempts to write.
const RETRY_LONGEST: Duration = Duration::from_secs(5);

/// Something to write, or someone who waits for what was put in before.
pub(super) enum Item {
    /// A finished invocation of a function.
    Invocation(i64, Arc<InvocationRecord>),
    /// Log lines of a function.
    Logs(i64, Vec<LogEntry>),
    /// Answered when everything before it is written.
    Barrier(oneshot::Sender<()>),
}

impl Item {
    /// How much room it takes.
    fn units(&self) -> usize {
        let bytes: usize = match self {
            Item::Invocation(_, record) => {
                let logs: usize = record.logs.iter().map(|line| line.text.len() + 64).sum();
                logs + record.error.as_ref().map_or(0, |error| {
                    let frames: usize = error.stack_trace.iter().map(String::len).sum();
                    error.error_message.len() + frames
                })
            }
            Item::Logs(_, entries) => entries.iter().map(|entry| entry.line.text.len() + 64).sum(),
            Item::Barrier(_) => return 0,
        };
        1 + bytes / UNIT_BYTES
    }
}

/// The end of the queue that is written to.
pub(super) struct Queue {
    items: mpsc::UnboundedSender<Item>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// Units that may wait before callers do.
    most: usize,
    /// Units put in and not yet written.
    waiting: AtomicUsize,
    /// Wakes the writer before its batch is due: enough is there, or someone waits at a barrier.
    due: Notify,
    /// Wakes those who wait for room.
    room: Notify,
}

/// A queue with room for `most` units ([`QUEUE_UNITS`] but in tests), and the writer that empties it.
pub(super) fn queue(store: Store, most: usize) -> (Queue, Writer) {
    let (items, queue) = mpsc::unbounded_channel();
    let state = Arc::new(State {
        most,
        ..State::default()
    });
    let writer = Writer {
        store,
        queue,
        state: state.clone(),
        failing: false,
    };
    (Queue { items, state }, writer)
}

impl Queue {
    /// Puts an item in, then waits while there is more in the queue than it should hold.
    pub(super) async fn put(&self, item: Item) {
        let units = item.units();
        let before = self.state.waiting.fetch_add(units, Ordering::SeqCst);
        if self.items.send(item).is_err() {
            tracing::error!("the history's writer is gone; a record is lost");
            return;
        }
        let now = before + units;
        if before < BATCH_ENOUGH && now >= BATCH_ENOUGH {
            self.state.due.notify_one();
        }
        if now > self.state.most {
            self.wait_for_room().await;
        }
    }

    async fn wait_for_room(&self) {
        loop {
            let notified = self.state.room.notified();
            tokio::pin!(notified);
            // Registered before the count is read, so that a write that ends in between is not missed.
            notified.as_mut().enable();
            if self.state.waiting.load(Ordering::SeqCst) <= self.state.most {
                return;
            }
            notified.await;
        }
    }

    /// Waits until everything put in before is written; false when that takes longer than `longest`.
    pub(super) async fn written(&self, longest: Duration) -> bool {
        if self.state.waiting.load(Ordering::SeqCst) == 0 {
            return true;
        }
        let (barrier, passed) = oneshot::channel();
        if self.items.send(Item::Barrier(barrier)).is_err() {
            return false;
        }
        self.state.due.notify_one();
        matches!(tokio::time::timeout(longest, passed).await, Ok(Ok(())))
    }
}

/// The task that writes.
pub(super) struct Writer {
    store: Store,
    queue: mpsc::UnboundedReceiver<Item>,
    state: Arc<State>,
    /// The last attempt to write failed, and that was logged.
    failing: bool,
}

impl Writer {
    /// Writes until the queue's other end is gone.
    pub(super) async fn run(mut self) {
        while let Some(first) = self.queue.recv().await {
            let barrier = matches!(first, Item::Barrier(_));
            if !barrier && self.state.waiting.load(Ordering::SeqCst) < BATCH_ENOUGH {
                let due = Instant::now() + BATCH_WAIT;
                tokio::select! {
                    () = sleep_until(due) => {}
                    () = self.state.due.notified() => {}
                }
            }
            let batch = self.take(first);
            self.write(batch).await;
        }
    }

    /// Takes what is there, as far as one batch goes.
    fn take(&mut self, first: Item) -> Batch {
        let mut batch = Batch::default();
        batch.add(first);
        while batch.units < BATCH_MOST {
            match self.queue.try_recv() {
                Ok(item) => batch.add(item),
                Err(_) => break,
            }
        }
        batch
    }

    /// Writes a batch, however often it takes, then lets go of who waited for it.
    async fn write(&mut self, batch: Batch) {
        let Batch {
            items,
            barriers,
            units,
        } = batch;
        let items = Arc::new(items);
        if !items.is_empty() && self.write_items(&items, 0..items.len()).await == Written::Refused {
            // Some row is one the database will never take. The others are not to be lost for it.
            for index in 0..items.len() {
                if self.write_items(&items, index..index + 1).await == Written::Refused {
                    tracing::error!("a record of the history is lost: the database refuses it");
                }
            }
        }
        self.state.waiting.fetch_sub(units, Ordering::SeqCst);
        self.state.room.notify_waiters();
        for barrier in barriers {
            // Fails only when nobody waits any more.
            let _ = barrier.send(());
        }
    }

    /// Writes some items in one transaction; tries again while the fault may pass (a full disk, a lock).
    async fn write_items(
        &mut self,
        items: &Arc<Vec<Item>>,
        range: std::ops::Range<usize>,
    ) -> Written {
        let batch = match encode(items.clone(), range).await {
            Ok(batch) => batch,
            Err(error) => {
                tracing::error!(%error, "the history cannot be encoded");
                return Written::Refused;
            }
        };
        let mut pause = RETRY_FIRST;
        loop {
            match self.store.write_history(&batch).await {
                Ok(()) => {
                    if std::mem::take(&mut self.failing) {
                        tracing::info!("the history is written again");
                    }
                    return Written::Done;
                }
                Err(error) if is_permanent(&error) => {
                    tracing::error!(%error, "the history is refused");
                    return Written::Refused;
                }
                Err(error) => {
                    if !std::mem::replace(&mut self.failing, true) {
                        tracing::error!(%error, "the history cannot be written; trying again until it can");
                    }
                    sleep(pause).await;
                    pause = (pause * 2).min(RETRY_LONGEST);
                }
            }
        }
    }
}

#[derive(PartialEq, Eq)]
enum Written {
    Done,
    /// The database will never take it.
    Refused,
}

#[derive(Default)]
struct Batch {
    items: Vec<Item>,
    barriers: Vec<oneshot::Sender<()>>,
    units: usize,
}

impl Batch {
    fn add(&mut self, item: Item) {
        self.units += item.units();
        match item {
            Item::Barrier(barrier) => self.barriers.push(barrier),
            item => self.items.push(item),
        }
    }
}

/// Turns items into what the database takes, away from the threads that serve requests: a full batch is some
/// milliseconds of work.
async fn encode(
    items: Arc<Vec<Item>>,
    range: std::ops::Range<usize>,
) -> Result<HistoryBatch, StoreError> {
    let encoding = tokio::task::spawn_blocking(move || {
        let mut batch = HistoryBatch::default();
        for item in &items[range] {
            match item {
                Item::Invocation(function, record) => batch.push(*function, record)?,
                Item::Logs(function, entries) => batch.push_logs(*function, entries)?,
                Item::Barrier(_) => {}
            }
        }
        Ok(batch)
    });
    match encoding.await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down.
            Err(_) => Err(StoreError::Sqlx {
                operation: "encode the history",
                source: sqlx::Error::WorkerCrashed,
            }),
        },
    }
}

/// Whether trying again is of no use: the statement or a value is wrong, or the store was closed.
fn is_permanent(error: &StoreError) -> bool {
    /// SQLite's primary result codes ERROR, TOOBIG, CONSTRAINT, MISMATCH, RANGE.
    const PERMANENT: [i32; 5] = [1, 18, 19, 20, 25];
    let StoreError::Sqlx { source, .. } = error else {
        return true;
    };
    match source {
        sqlx::Error::Database(error) => error
            .code()
            .and_then(|code| code.parse::<i32>().ok())
            .is_some_and(|code| PERMANENT.contains(&(code & 0xff))),
        sqlx::Error::Encode(_) | sqlx::Error::PoolClosed => true,
        _ => false,
    }
}
