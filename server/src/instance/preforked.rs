//! What a template prepares in the background for its next start: the instance descriptors ([`InstanceDescriptors`]) and,
//! if enabled, a **pre-forked instance**. It has reseeded its random state, has gone through a request's code path once,
//! and waits on its READY socket for GO. It has run none of the function's code since the fork: after-restore hooks run
//! after GO. A start that finds one saves the fork and most of the page copies of a first request. Android does the same
//! for apps ("unspecialized app process pool", since Android 10).
//!
//! There is at most one, created when no start is under way. Until it is used it does not count as an instance: it
//! serves nothing, uses no CPU time and is charged to its template. If there is none, or it has died, the start forks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::descriptors::{Forking, InstanceDescriptors, Worker};
use super::fork::{READY_DEADLINE, StartError};
use super::template::Template;
use super::{FunctionKey, Logs, Way};

/// Pause after the last start before pre-forking: starts that requests wait for go first.
const QUIET: Duration = Duration::from_millis(10);
/// Longest time that a deploy waits for its first pre-forked instance, and the polling interval.
const FIRST_DEADLINE: Duration = Duration::from_millis(100);
const FIRST_LOOK: Duration = Duration::from_millis(1);

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
            self.prepare(function, sink, Duration::ZERO);
        }
    }

    /// Creates the first pre-forked instance at once, and waits until it is ready, for a short time at most: the first
    /// request to a new version may arrive right after its deploy. For use while nobody waits for a start.
    pub async fn first_preforked(&self) {
        self.preforked.idle.notify_one();
        let until = Instant::now() + FIRST_DEADLINE;
        while self.preforked.wanted.load(Ordering::Acquire) && Instant::now() < until {
            let waits = |descriptors: &InstanceDescriptors| descriptors.is_waiting();
            if self.descriptors.lock().as_ref().is_some_and(waits) {
                return;
            }
            tokio::time::sleep(FIRST_LOOK).await;
        }
    }

    /// Ends the pre-forked instance and disables it.
    pub fn end_preforked(&self) {
        self.preforked.wanted.store(false, Ordering::Release);
        // This closes its socket, upon which the pre-forked instance exits.
        let preforked = self
            .descriptors
            .lock()
            .take_if(|descriptors| matches!(descriptors.worker, Worker::Preforked(_)));
        drop(preforked);
    }

    /// The prepared instance descriptors, or new ones.
    pub(super) fn take_descriptors(
        &self,
        function: &FunctionKey,
        sink: &Logs,
    ) -> Result<InstanceDescriptors, StartError> {
        let prepared = self.descriptors.lock().take();
        prepared.map_or_else(|| self.new_descriptors(function, sink), Ok)
    }

    /// Prepares the descriptors and the cgroup of the next start after a pause, then the pre-forked instance, on its
    /// own task. If a start is under way by then, this waits until after it.
    pub(super) fn prepare(self: &Arc<Self>, function: &FunctionKey, sink: &Logs, after: Duration) {
        self.preforked.starts.fetch_add(1, Ordering::Relaxed);
        let (template, function, sink) = (self.clone(), function.clone(), sink.clone());
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            template.sandbox.prepare_instance_cgroups();
            if template.preforked.under_way.load(Ordering::Acquire) > 0 {
                return;
            }
            if template.descriptors.lock().is_none() {
                // If it fails, the next start reports why.
                let Ok(descriptors) = template.new_descriptors(&function, &sink) else {
                    return;
                };
                *template.descriptors.lock() = Some(descriptors);
            }
            template.prefork().await;
        });
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
        let Some(mut descriptors) = self.descriptors.lock().take() else {
            return;
        };
        // Without one, the next start forks and reports why that fails. A hostile template may ignore commands, but
        // must be released nevertheless.
        let forked = tokio::select! {
            forked = self.start_for(&mut descriptors, Way::Fork) => forked.is_ok(),
            () = self.retired() => false,
            () = tokio::time::sleep(READY_DEADLINE) => false,
        };
        if forked {
            *self.descriptors.lock() = Some(descriptors);
        }
        if !wanted.load(Ordering::Acquire) {
            self.end_preforked();
        }
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
