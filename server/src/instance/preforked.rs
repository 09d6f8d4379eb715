//! What a template prepares in the background for its next start: the instance descriptors ([`InstanceDescriptors`]) and,
//! if enabled, a **pre-forked instance**. It has reseeded its random state and has gone through a request's code path once.
//! It has run none of the function's code since the fork. Without after-restore hooks it has nothing left to do: it has said
//! READY and waits for its first request. With some, which run once it is wanted, it waits on its READY
//! socket for GO. A start that finds one saves the fork and most of the page copies of a first request. Android does the
//! same for apps ("unspecialized app process pool", since Android 10).
//!
//! There is at most one, created when no start is under way. Until it is used it does not count as an instance: it
//! serves nothing, uses no CPU time and is charged to its template. If there is none, or it has died, the start forks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use tokio::sync::Notify;

use super::descriptors::{Forking, InstanceDescriptors, Worker};
use super::fork::{READY_DEADLINE, StartError};
use super::fresh::Fresh;
use super::ready::{Said, receive_ready, said, wait_for_word};
use super::template::Template;
use super::{FunctionKey, Logs, Way};
use crate::watched::Watched;

/// Pause after the last start before pre-forking: starts that requests wait for go first.
const QUIET: Duration = Duration::from_millis(10);
/// Longest time that a deploy waits for its first pre-forked instance, and the polling interval.
const FIRST_DEADLINE: Duration = Duration::from_millis(100);
const FIRST_LOOK: Duration = Duration::from_millis(1);

/// What a template has ready for its next start.
pub(super) enum Prepared {
    /// Descriptors, perhaps with a pre-forked instance at their other end.
    Descriptors(InstanceDescriptors),
    /// A pre-forked instance that waits for its first request.
    Instance(Fresh),
}

impl Prepared {
    /// Whether nothing more is to be expected from what was forked ahead.
    fn has_settled(&self) -> bool {
        match self {
            Self::Instance(_) => true,
            Self::Descriptors(descriptors) => match descriptors.worker {
                Worker::Ends(_) => false,
                Worker::Preforked(_) => {
                    matches!(said(&descriptors.ready), Said::Waiting | Said::Gone)
                }
            },
        }
    }

    /// Whether there is a process.
    fn is_preforked(&self) -> bool {
        match self {
            Self::Instance(_) => true,
            Self::Descriptors(descriptors) => matches!(descriptors.worker, Worker::Preforked(_)),
        }
    }

    /// Whether its instance is to speak, or has spoken, on this socket.
    fn speaks_on(&self, socket: &Arc<Watched>) -> bool {
        matches!(self, Self::Descriptors(descriptors) if Arc::ptr_eq(&descriptors.ready, socket))
    }
}

/// State of a template's pre-forked instance.
#[derive(Debug, Default)]
pub(super) struct Preforked {
    /// Whether to keep one.
    wanted: AtomicBool,
    /// Whether a task is about to create one.
    coming: AtomicBool,
    /// Starts that have ended, to detect when none is under way.
    starts: AtomicU64,
    /// Starts under way.
    under_way: AtomicU64,
    /// Signals that nobody waits for a start, so that the pause can be skipped.
    idle: Notify,
}

/// A start under way, for as long as it lives.
pub(super) struct UnderWay<'a>(&'a Preforked);

impl Preforked {
    /// A start begins.
    pub(super) fn begin(&self) -> UnderWay<'_> {
        self.under_way.fetch_add(1, Ordering::AcqRel);
        UnderWay(self)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Template {
    /// Enables the pre-forked instance and creates one soon.
    pub fn keep_preforked(self: &Arc<Self>, function: &FunctionKey, sink: &Logs) {
        if !self.preforked.wanted.swap(true, Ordering::AcqRel) {
            self.prepare_soon(function, sink);
        }
    }

    /// Creates the first pre-forked instance at once, and waits until it is ready, for a short time at most: the first
    /// request to a new version may arrive right after its deploy. For use while nobody waits for a start.
    pub async fn first_preforked(&self) {
        self.preforked.idle.notify_one();
        let until = Instant::now() + FIRST_DEADLINE;
        while self.preforked.wanted.load(Ordering::Acquire) && Instant::now() < until {
            let settled = |prepared: &Prepared| prepared.has_settled();
            if self.prepared.lock().as_ref().is_some_and(settled) {
                return;
            }
            tokio::time::sleep(FIRST_LOOK).await;
        }
    }

    /// Ends the pre-forked instance and disables it.
    pub fn end_preforked(&self) {
        self.preforked.wanted.store(false, Ordering::Release);
        // This closes what it waits on, upon which the pre-forked instance exits.
        let preforked = self
            .prepared
            .lock()
            .take_if(|prepared| prepared.is_preforked());
        drop(preforked);
    }

    /// What was prepared, if it is still of use.
    pub(super) fn take_prepared(&self) -> Option<Prepared> {
        let prepared = self.prepared.lock().take()?;
        let is_usable = match &prepared {
            Prepared::Instance(preforked) => preforked.is_usable(),
            Prepared::Descriptors(_) => true,
        };
        is_usable.then_some(prepared)
    }

    /// Prepares the next start on a task of its own.
    pub(super) fn prepare_soon(self: &Arc<Self>, function: &FunctionKey, sink: &Logs) {
        let (template, function, sink) = (self.clone(), function.clone(), sink.clone());
        tokio::spawn(async move { template.prepare(&function, &sink, Duration::ZERO).await });
    }

    /// Prepares the descriptors and the cgroup of the next start after a pause, then the pre-forked instance. If a start is under
    /// way by then, this is left to what follows it.
    pub(super) async fn prepare(&self, function: &FunctionKey, sink: &Logs, after: Duration) {
        self.preforked.starts.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(after).await;
        self.sandbox.prepare_instance_cgroups();
        if self.preforked.under_way.load(Ordering::Acquire) > 0 {
            return;
        }
        if self.prepared.lock().is_none() {
            // If it fails, the next start reports why.
            let Ok(descriptors) = self.new_descriptors(function, sink) else {
                return;
            };
            *self.prepared.lock() = Some(Prepared::Descriptors(descriptors));
        }
        self.prefork().await;
    }

    async fn prefork(&self) {
        let Preforked {
            wanted,
            coming,
            starts,
            idle,
            ..
        } = &self.preforked;
        if !wanted.load(Ordering::Acquire) || coming.swap(true, Ordering::AcqRel) {
            return;
        }
        loop {
            let before = starts.load(Ordering::Relaxed);
            tokio::select! {
                () = tokio::time::sleep(QUIET) => {}
                () = idle.notified() => break,
            }
            if starts.load(Ordering::Relaxed) == before {
                break;
            }
        }
        coming.store(false, Ordering::Release);
        let prepared = self
            .prepared
            .lock()
            .take_if(|prepared| !prepared.is_preforked());
        let Some(Prepared::Descriptors(mut descriptors)) = prepared else {
            return;
        };
        let socket = descriptors.ready.clone();
        // Without one, the next start forks and reports why that fails. A hostile template may ignore commands, but
        // must be released nevertheless.
        let forked = tokio::select! {
            forked = self.start_for(&mut descriptors, Way::Fork) => forked.is_ok(),
            () = self.retired() => false,
            () = tokio::time::sleep(READY_DEADLINE) => false,
        };
        if !forked {
            return;
        }
        *self.prepared.lock() = Some(Prepared::Descriptors(descriptors));
        if !wanted.load(Ordering::Acquire) {
            self.end_preforked();
            return;
        }
        let is_ready = tokio::select! {
            word = wait_for_word(&socket) => word == Said::Ready,
            () = self.retired() => false,
            () = tokio::time::sleep(READY_DEADLINE) => false,
        };
        if is_ready {
            self.make_fresh(&socket).await;
        }
    }

    /// Makes the pre-forked instance that has said READY on this socket usable at once, unless a start has taken it. One that
    /// turns out to be unusable is left to its end: the next start forks.
    async fn make_fresh(&self, socket: &Arc<Watched>) {
        let Ok(instance_cgroup) = self.sandbox.instance_cgroup().await else {
            return;
        };
        let mut prepared = self.prepared.lock();
        let Some(Prepared::Descriptors(descriptors)) =
            prepared.take_if(|prepared| prepared.speaks_on(socket))
        else {
            return;
        };
        // It is there to be received: nothing is waited for.
        let Some(Ok(ready)) = receive_ready(&descriptors.ready).now_or_never() else {
            return;
        };
        if let Worker::Preforked(Forking { sequence, .. }) = descriptors.worker {
            self.forget_fork(sequence);
        }
        self.has_forked();
        let fresh = Fresh::new(self, descriptors, ready, instance_cgroup);
        *prepared = fresh.ok().map(Prepared::Instance);
    }

    /// Starts the worker of these descriptors, unless it was started already.
    pub(super) async fn start_for(
        &self,
        descriptors: &mut InstanceDescriptors,
        way: Way,
    ) -> Result<(), StartError> {
        if let Worker::Ends(ends) = &descriptors.worker {
            let (sequence, refused) = self.command(way, &ends.descriptors()).await?;
            // With our copies closed, the end of the worker closes the socket.
            descriptors.worker = Worker::Preforked(Forking { sequence, refused });
        }
        Ok(())
    }
}
