//! What a template prepares for its next start, on tasks of its own: the [`Kit`] and, where it is told to, a **spare**:
//! a fork made ahead. A spare has renewed its random state, has done once what every request makes it do, and waits on
//! its READY socket for GO. It has run nothing of the function's since the fork: after-restore hooks come after GO. So a
//! start that finds a spare pays neither for the fork nor for most of the pages that a first request copies. Android
//! keeps such processes for its apps ("unspecialized app process pool", since Android 10).
//!
//! There is one spare at most, made when no start is under way. It is no instance: it serves nobody, belongs to nobody,
//! uses no CPU time and is charged to its template. When it has ended meanwhile, or was never made, the start is a fork.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::FunctionKey;
use super::Way;
use super::fork::{READY_DEADLINE, StartError};
use super::kit::{Forking, Kit, Worker};
use super::template::Template;
use crate::history::History;

/// How long no start may have ended before a spare is forked: those that people wait for go first.
const QUIET: Duration = Duration::from_millis(10);

/// How a template stands with spares.
#[derive(Debug, Default)]
pub(super) struct Spares {
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
pub(super) struct UnderWay<'a>(&'a Spares);

impl Spares {
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
    /// Keeps a spare from now on, and makes one soon.
    pub fn keep_spare(self: &Arc<Self>, function: &FunctionKey, history: &History) {
        if !self.spares.wanted.swap(true, Ordering::AcqRel) {
            self.prepare(function, history, Duration::ZERO);
        }
    }

    /// Ends the spare, and keeps none from now on.
    pub fn end_spares(&self) {
        self.spares.wanted.store(false, Ordering::Release);
        // Its end of the socket closes with it, which the spare takes as its end.
        let spare = self
            .kit
            .lock()
            .take_if(|kit| matches!(kit.worker, Worker::Spare(_)));
        drop(spare);
    }

    /// The prepared kit, or a new one.
    pub(super) fn take_kit(
        &self,
        function: &FunctionKey,
        history: &History,
    ) -> Result<Kit, StartError> {
        let prepared = self.kit.lock().take();
        prepared.map_or_else(|| self.new_kit(function, history), Ok)
    }

    /// Makes the kit of the next start, and a cgroup for it, after a while, then the spare; on a task of its own. A start
    /// that is under way by then does all that after it: it is not to be held up.
    pub(super) fn prepare(
        self: &Arc<Self>,
        function: &FunctionKey,
        history: &History,
        after: Duration,
    ) {
        self.spares.starts.fetch_add(1, Ordering::Relaxed);
        let (template, function, history) = (self.clone(), function.clone(), history.clone());
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            template.sandbox.prepare_cells();
            if template.spares.under_way.load(Ordering::Acquire) > 0 {
                return;
            }
            if template.kit.lock().is_none() {
                // Should it fail, the next start will say why.
                let Ok(kit) = template.new_kit(&function, &history) else {
                    return;
                };
                *template.kit.lock() = Some(kit);
            }
            template.prepare_spare().await;
        });
    }

    async fn prepare_spare(&self) {
        let Spares {
            wanted,
            coming,
            starts,
            ..
        } = &self.spares;
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
        let Some(mut kit) = self.kit.lock().take() else {
            return;
        };
        // Without one, the next start forks, and says why it cannot. A hostile template takes no command, and must be
        // let go of all the same.
        let forked = tokio::select! {
            forked = self.start_for(&mut kit, Way::Fork) => forked.is_ok(),
            () = self.retired() => false,
            () = tokio::time::sleep(READY_DEADLINE) => false,
        };
        if forked {
            *self.kit.lock() = Some(kit);
        }
        if !wanted.load(Ordering::Acquire) {
            self.end_spares();
        }
    }

    /// Starts the worker of this kit, unless that has been done.
    pub(super) async fn start_for(&self, kit: &mut Kit, way: Way) -> Result<(), StartError> {
        if let Worker::Ends(ends) = &kit.worker {
            let (sequence, refused) = self.command(way, &ends.descriptors()).await?;
            // With our copies closed, the end of the worker closes the socket.
            kit.worker = Worker::Spare(Forking { sequence, refused });
        }
        Ok(())
    }
}
