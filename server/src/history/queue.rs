//! The queue between recorders and the writer.
//!
//! Recording never waits for the disk and wakes the writer only for the first record of a batch: the queue is
//! unbounded, and the writer sleeps until its batch is due. Backpressure comes from recorders past the limit waiting
//! *after* adding their record until the writer has caught up, so a cancelled caller loses nothing. While the database
//! cannot be written, a full disk for example, nobody waits: that may take days. What exceeds the limit is lost then, and
//! counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use super::Captured;
use crate::model::{InvocationRecord, LogEntry};

/// Room of the queue, in records of up to [`UNIT_BYTES`]; a larger record takes more of it. So at most 256 MiB wait.
pub(super) const QUEUE_UNITS: usize = 65_536;

/// Bytes of text (log lines, error, event and result) that count as one record.
const UNIT_BYTES: usize = 4096;

/// A batch of this many units is written without waiting for more.
const BATCH_ENOUGH: usize = 2_048;

/// How long a record may wait for others. A crash loses at most this and the time of one write: 100 ms.
const BATCH_WAIT: Duration = Duration::from_millis(80);

/// A batch takes no more than about this many units, so that a deploy waits for the writing connection some tens of
/// milliseconds at most, and a batch's text in memory stays below 32 MiB.
const BATCH_MOST: usize = 8_192;

/// Something to write, or a caller waiting for everything queued before.
pub(super) enum Item {
    /// A finished invocation of a function, with the captured part of its event and result.
    Invocation(i64, Arc<InvocationRecord>, Option<Box<Captured>>),
    /// Log lines of a function.
    Logs(i64, Vec<LogEntry>),
    /// Answered when everything before it is written.
    Barrier(oneshot::Sender<()>),
}

impl Item {
    /// Its size in the queue.
    fn units(&self) -> usize {
        let bytes: usize = match self {
            Item::Invocation(_, record, captured) => {
                let kept = captured.as_ref().map_or(0, |captured| captured.size());
                let logs: usize = record.logs.iter().map(|line| line.text.len() + 64).sum();
                kept + logs
                    + record.error.as_ref().map_or(0, |error| {
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
    /// The database cannot be written.
    failing: AtomicBool,
    /// Items that were not taken because of that.
    lost: AtomicU64,
    /// Wakes the writer before its batch is due: enough is there, or someone waits at a barrier.
    due: Notify,
    /// Wakes callers waiting for room.
    room: Notify,
}

/// A queue with room for `most` units ([`QUEUE_UNITS`] but in tests), and its other end.
pub(super) fn queue(most: usize) -> (Queue, Outlet) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let state = Arc::new(State {
        most,
        ..State::default()
    });
    let outlet = Outlet {
        items: receiver,
        state: state.clone(),
    };
    let queue = Queue {
        items: sender,
        state,
    };
    (queue, outlet)
}

impl Queue {
    /// Adds an item, then waits while the queue is over its limit. If nothing can be written, the item is lost instead.
    pub(super) async fn put(&self, item: Item) {
        let units = item.units();
        let state = &self.state;
        if state.failing.load(Ordering::SeqCst)
            && state.waiting.load(Ordering::SeqCst) + units > state.most
        {
            state.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let before = self.state.waiting.fetch_add(units, Ordering::SeqCst);
        if self.items.send(item).is_err() {
            tracing::error!("the history writer is gone; a record is lost");
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
            let state = &self.state;
            if state.waiting.load(Ordering::SeqCst) <= state.most
                || state.failing.load(Ordering::SeqCst)
            {
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

/// The end of the queue that the writer reads.
pub(super) struct Outlet {
    items: mpsc::UnboundedReceiver<Item>,
    state: Arc<State>,
}

/// A batch to write.
#[derive(Default)]
pub(super) struct Batch {
    /// Invocations and log lines.
    pub(super) items: Vec<Item>,
    barriers: Vec<oneshot::Sender<()>>,
    units: usize,
}

impl Outlet {
    /// Waits until a batch is due and takes it; None when the queue's other end is gone.
    pub(super) async fn batch(&mut self) -> Option<Batch> {
        let first = self.items.recv().await?;
        let barrier = matches!(first, Item::Barrier(_));
        if !barrier && self.state.waiting.load(Ordering::SeqCst) < BATCH_ENOUGH {
            // Receives nothing meanwhile, so that recorders do not wake this task.
            let due = Instant::now() + BATCH_WAIT;
            tokio::select! {
                () = sleep_until(due) => {}
                () = self.state.due.notified() => {}
            }
        }
        let mut batch = Batch::default();
        batch.add(first);
        while batch.units < BATCH_MOST {
            match self.items.try_recv() {
                Ok(item) => batch.add(item),
                Err(_) => break,
            }
        }
        Some(batch)
    }

    /// The database cannot be written: nobody waits for it. False if that was known.
    pub(super) fn fails(&self) -> bool {
        let is_news = !self.state.failing.swap(true, Ordering::SeqCst);
        self.state.room.notify_waiters();
        is_news
    }

    /// It can be written. If it could not be before, returns how many items were lost.
    pub(super) fn works(&self) -> Option<u64> {
        let failed = self.state.failing.load(Ordering::Relaxed)
            && self.state.failing.swap(false, Ordering::SeqCst);
        failed.then(|| self.state.lost.swap(0, Ordering::Relaxed))
    }

    /// A batch is written: frees its room and wakes the callers waiting for it.
    pub(super) fn written(&self, batch: Batch) {
        self.state.waiting.fetch_sub(batch.units, Ordering::SeqCst);
        self.state.room.notify_waiters();
        for barrier in batch.barriers {
            // Fails only if nothing waits any more.
            let _ = barrier.send(());
        }
    }
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
