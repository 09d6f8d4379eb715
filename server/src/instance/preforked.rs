//! What a template prepares for its next start, on tasks of its own: the [`InstanceDescriptors`] and, where it is told to,
//! a **pre-forked instance**: a fork made ahead. A pre-forked instance has renewed its random state, has done once what
//! every request makes it do, and waits on its READY socket for GO. It has run nothing of the function's since the fork:
//! after-restore hooks come after GO. So a start that finds a pre-forked instance pays neither for the fork nor for most of
//! the pages that a first request copies. Android keeps such processes for its apps ("unspecialized app process pool",
//! since Android 10).
//!
//! There is one pre-forked instance at most, made when no start is under way. It is no instance: it serves nobody, belongs
//! to nobody, uses no CPU time and is charged to its template. When it has ended meanwhile, or was never made, the start is
//! a fork.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::descriptors::{Forking, InstanceDescriptors, Worker};
use super::fork::{READY_DEADLINE, StartError};
use super::template::Template;
use super::{FunctionKey, Logs, Way};

/// How long no start may have ended before a pre-forked instance is forked: those that people wait for go first.
const QUIET: Duration = Duration::from_millis(10);

/// How a template stands with pre-forked instances.
#[derive(Debug, Default)]
pub(super) struct Preforked {
    /// Whether it is to keep one.
    wanted: AtomicBool,
    /// Whether a task is about to make one.
    coming: AtomicBool,
    /// Starts that have ended, to see when there are none.
    starts: AtomicU64,
    /// Starts under way.
    under_way: AtomicU64,
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
    /// Keeps a pre-forked instance from now on, and makes one soon.
    pub fn keep_preforked(self: &Arc<Self>, function: &FunctionKey, sink: &Logs) {
        if !self.preforked.wanted.swap(true, Ordering::AcqRel) {
            self.prepare(function, sink, Duration::ZERO);
        }
    }

    /// Ends the pre-forked instance, and keeps none from now on.
    pub fn end_preforked(&self) {
        self.preforked.wanted.store(false, Ordering::Release);
        // Its end of the socket closes with it, which the pre-forked instance takes as its end.
        let preforked = self
            .descriptors
            .lock()
            .take_if(|descriptors| matches!(descriptors.worker, Worker::Preforked(_)));
        drop(preforked);
    }

    /// The prepared descriptors, or a new one.
    pub(super) fn take_descriptors(
        &self,
        function: &FunctionKey,
        sink: &Logs,
    ) -> Result<InstanceDescriptors, StartError> {
        let prepared = self.descriptors.lock().take();
        prepared.map_or_else(|| self.new_descriptors(function, sink), Ok)
    }

    /// Makes the descriptors of the next start, and a cgroup for it, after a while, then the pre-forked instance; on a task
    /// of its own. A start that is under way by then does all that after it: it is not to be held up.
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
                // Should it fail, the next start will say why.
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
            ..
        } = &self.preforked;
        if !wanted.load(Ordering::Acquire) || coming.swap(true, Ordering::AcqRel) {
            return;
        }
        loop {
            let before = starts.load(Ordering::Relaxed);
            tokio::time::sleep(QUIET).await;
            if starts.load(Ordering::Relaxed) == before {
                break;
            }
        }
        coming.store(false, Ordering::Release);
        let Some(mut descriptors) = self.descriptors.lock().take() else {
            return;
        };
        // Without one, the next start forks, and says why it cannot. A hostile template takes no command, and must be
        // let go of all the same.
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

    /// Starts the worker of this descriptors, unless that has been done.
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
