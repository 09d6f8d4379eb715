//! In-memory state per function: totals since the server started, minutes not stored yet, and subscribers.

use parking_lot::Mutex;
use std::sync::OnceLock;
use tokio::sync::broadcast;

use super::buckets::Buckets;
use super::minute::Minute;
use super::payload::CaptureLimits;
use super::recent::Minutes;
use super::slice::{Slice, SliceError, kind_index};
use super::slots::Slots;
use super::{Event, LiveHistogram, Totals};
use crate::model::{InvocationRecord, Status};

/// Events a slow subscriber may lag behind before it misses some (and is notified).
const LISTENER_BACKLOG: usize = 1024;

/// The ways an invocation can end, in the order of [`Counters::by_status`].
const ENDINGS: [Status; 7] = [
    Status::Succeeded,
    Status::Failed,
    Status::TimedOut,
    Status::Crashed,
    Status::OutOfMemory,
    Status::Cancelled,
    Status::Dead,
];

/// One function. The mutex is held for the counting of one invocation (about 0.2 µs) or the copying of a minute.
#[derive(Debug, Default)]
pub(super) struct Function {
    pub(super) counters: Mutex<Counters>,
    /// How many events and results are kept.
    pub(super) payloads: CaptureLimits,
    listeners: OnceLock<broadcast::Sender<Event>>,
}

impl Function {
    /// Listens from now on.
    pub(super) fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.listeners
            .get_or_init(|| broadcast::channel(LISTENER_BACKLOG).0)
            .subscribe()
    }

    /// Notifies subscribers; nearly free when there are none, because the event is built only for them.
    pub(super) fn publish(&self, event: impl FnOnce() -> Event) {
        if let Some(listeners) = self.listeners.get()
            && listeners.receiver_count() > 0
        {
            // Fails only when the last listener has just left.
            let _ = listeners.send(event());
        }
    }
}

/// Counts of one function. Pure: the time is that of the records.
#[derive(Debug, Default)]
pub(super) struct Counters {
    name: String,
    pub(super) count: u64,
    pub(super) errors: u64,
    by_status: [u64; ENDINGS.len()],
    by_start: [u64; 4],
    total_us: u64,
    buckets: Buckets,
    /// Minutes that are not stored yet, with the invocations that finished in each. Usually one; none for a function
    /// without calls.
    pub(super) minutes: Vec<(i64, Minute)>,
    /// The newest of those that are.
    pub(super) recent: Minutes,
    /// The last minutes in finer slots.
    pub(super) slots: Slots,
}

/// When an invocation finished, µs since 1970.
fn finished_at(record: &InvocationRecord) -> i64 {
    record
        .finished_at
        .unwrap_or(record.received_at)
        .as_microsecond()
}

/// The minute of a time in µs since 1970.
pub(super) fn minute_at(microseconds: i64) -> i64 {
    microseconds.div_euclid(60_000_000)
}

impl Counters {
    /// Counts a finished invocation.
    pub(super) fn record(&mut self, record: &InvocationRecord) {
        if self.name.is_empty() {
            self.name.clone_from(&record.function);
        }
        self.count += 1;
        self.errors += u64::from(record.status != Status::Succeeded);
        if let Some(index) = ENDINGS.iter().position(|status| *status == record.status) {
            self.by_status[index] += 1;
        }
        if let Some(start_kind) = record.start {
            self.by_start[kind_index(start_kind)] += 1;
        }
        self.total_us = self.total_us.saturating_add(record.stages_us.total);
        self.buckets.record(record.stages_us.total);
        let at = finished_at(record);
        self.slots.record(at, record.stages_us.total);
        self.minute(minute_at(at))
            .record(record.status, record.start, &record.stages_us);
    }

    /// A minute, made when it is first asked for. The newest is the one that is nearly always meant.
    fn minute(&mut self, minute: i64) -> &mut Minute {
        let index = match self.minutes.iter().rposition(|(known, _)| *known == minute) {
            Some(index) => index,
            None => {
                self.minutes.push((minute, Minute::default()));
                self.minutes.len() - 1
            }
        };
        &mut self.minutes[index].1
    }

    /// Removes the minutes before this one, to store them.
    pub(super) fn take_before(&mut self, minute: i64) -> Vec<(i64, Minute)> {
        let taken: Vec<(i64, Minute)> = self
            .minutes
            .extract_if(.., |(known, _)| *known < minute)
            .collect();
        for (minute, finished) in &taken {
            self.recent.keep(*minute, finished);
        }
        taken
    }

    /// Puts minutes back that could not be stored.
    pub(super) fn put_back(&mut self, minutes: Vec<(i64, Minute)>) -> Result<(), SliceError> {
        minutes.iter().try_for_each(|(minute, finished)| {
            self.recent.drop_newest(*minute);
            self.minute(*minute).add(finished)
        })
    }

    /// Adds to `sum` the invocations that finished from `first` on and are not stored yet.
    pub(super) fn add_to(&self, sum: &mut Slice, first: i64) -> Result<(), SliceError> {
        self.minutes
            .iter()
            .filter(|(minute, _)| *minute >= first)
            .try_for_each(|(_, finished)| finished.add_to(sum))
    }

    /// Latency since the server started.
    pub(super) fn live(&self) -> LiveHistogram {
        self.buckets.live(self.count, self.errors)
    }

    /// Everything since the server started.
    pub(super) fn totals(&self) -> Totals {
        Totals {
            function: self.name.clone(),
            by_status: ENDINGS.into_iter().zip(self.by_status).collect(),
            by_start: self.by_start,
            total_us: self.total_us,
            histogram: self.live(),
        }
    }
}
