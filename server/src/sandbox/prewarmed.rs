//! Pre-warmed sandboxes: at most one per runtime, complete except for what depends on the function, with CRIU already
//! started. The next restore uses it and saves both; see `runtimes/init/src/prewarmed.rs`.
//!
//! ```text
//! keep ─▶ being made ──Pre-warmed sandbox──▶ ready ──a restore takes it──▶ Starting, as any sandbox
//!             │ fails, dies          │ dies, end                (super's diagram)
//!             ▼                      ▼
//!          (destroyed, made again when it is asked for)
//! ```

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::epoll::{self, EventData, EventFlags};
use tokio::sync::oneshot;

use super::jobs::Job;
use super::live::{LiveSandbox, Waiting};
use super::mailbox::Key;
use super::thread::{FIRST_INSTANCE_CGROUP, SETUP_TIMEOUT, Thread};
use super::{Sandbox, SandboxError, SandboxSpec};

/// After one could not be made, none is for this long: what fails is likely to fail again, and each costs CPU time.
const AFTER_FAILURE: Duration = Duration::from_secs(30);
/// A pre-warmed sandbox is replaced at this age: it shows the host's files as they were when it was created, and
/// upgrades of the host replace some of them.
const MAX_AGE: Duration = Duration::from_secs(3600);

/// What a pre-warmed sandbox is created from.
#[derive(Debug, Clone)]
pub struct PrewarmedSpec {
    /// Unique among live sandboxes, `[a-z0-9-]`.
    pub id: String,
    /// First of the two host uids.
    pub uid_base: u32,
    /// The runtime's files; a restore uses a pre-warmed sandbox only if they are the same.
    pub runtime_dir: PathBuf,
    /// Directory name below `/opt/hearth`.
    pub runtime_name: &'static str,
}

/// What there is and was, for others to see. Cheap to clone; all clones show the same.
#[derive(Debug, Clone, Default)]
pub struct PrewarmedBoard(Arc<Board>);

#[derive(Debug, Default)]
struct Board {
    /// Runtimes that have one, and whether it is ready.
    kept: Mutex<Vec<(&'static str, bool)>>,
    used: AtomicU64,
}

impl PrewarmedBoard {
    /// Runtimes that have one, or will have in a moment.
    pub fn runtimes(&self) -> Vec<&'static str> {
        self.0.kept.lock().iter().map(|(name, _)| *name).collect()
    }

    /// How many are ready.
    pub fn ready(&self) -> usize {
        self.0
            .kept
            .lock()
            .iter()
            .filter(|(_, ready)| *ready)
            .count()
    }

    /// How many restores have taken.
    pub fn used(&self) -> u64 {
        self.0.used.load(Ordering::Relaxed)
    }
}

struct Kept {
    key: Key,
    ready: bool,
    runtime_dir: PathBuf,
}

/// The pre-warmed sandboxes that there are, by the runtime's name.
#[derive(Default)]
pub(super) struct PrewarmedSandboxes {
    kept: HashMap<&'static str, Kept>,
    failed: Option<Instant>,
    board: PrewarmedBoard,
}

impl PrewarmedSandboxes {
    pub(super) fn new(board: PrewarmedBoard) -> Self {
        Self {
            board,
            ..Self::default()
        }
    }

    /// True when it was one.
    fn forget(&mut self, key: Key) -> bool {
        let before = self.kept.len();
        self.kept.retain(|_, kept| kept.key != key);
        self.show();
        self.kept.len() < before
    }

    fn show(&self) {
        let kept = self.kept.iter().map(|(name, kept)| (*name, kept.ready));
        *self.board.0.kept.lock() = kept.collect();
    }
}

impl Thread {
    /// Pre-warms a sandbox, unless there is one for that runtime.
    pub(super) fn keep_prewarmed(&mut self, spec: &PrewarmedSpec) {
        if self.closing || self.criu.is_none() {
            return;
        }
        if self.prewarmed.kept.contains_key(spec.runtime_name) {
            return;
        }
        let failed = self.prewarmed.failed;
        if failed.is_some_and(|at| at.elapsed() < AFTER_FAILURE) {
            return;
        }
        let key = self.next;
        self.next += 1;
        let name = format!("{}.{key}", spec.id);
        let started = LiveSandbox::start_prewarmed(self, &name, spec).and_then(|live| {
            let control = live.control.as_ref();
            let control = control.ok_or_else(|| SandboxError::step("control", "it has none"))?;
            let data = EventData::new_u64(key * 2);
            let watched = epoll::add(&self.epoll, control, data, EventFlags::IN);
            watched.map_err(|error| SandboxError::step("epoll", error))?;
            Ok(live)
        });
        match started {
            Ok(live) => {
                self.live.insert(key, live);
                let kept = Kept {
                    key,
                    ready: false,
                    runtime_dir: spec.runtime_dir.clone(),
                };
                self.prewarmed.kept.insert(spec.runtime_name, kept);
                self.prewarmed.show();
                self.later(SETUP_TIMEOUT, 0, Job::GiveUpPrewarmed(key));
                self.later(MAX_AGE, 0, Job::ReplacePrewarmed(key));
            }
            Err(error) => self.prewarm_failed(&error),
        }
    }

    /// It is complete, and waits.
    pub(super) fn prewarmed_ready(&mut self, key: Key) {
        let kept = self.prewarmed.kept.values_mut();
        for kept in kept.filter(|kept| kept.key == key) {
            kept.ready = true;
        }
        self.prewarmed.show();
    }

    /// Too old. A new one is created on the next request for one.
    pub(super) fn replace_prewarmed(&mut self, key: Key) {
        if self.prewarmed.forget(key) {
            self.destroy(key, None);
        }
    }

    pub(super) fn give_up_prewarmed(&mut self, key: Key) {
        let mut kept = self.prewarmed.kept.values();
        if kept.any(|kept| kept.key == key && !kept.ready) {
            let late = format!("not ready after {} s", SETUP_TIMEOUT.as_secs());
            self.fail(key, SandboxError::step("start", late));
        }
    }

    /// Marks this sandbox as no longer pre-warmed. True if it was.
    pub(super) fn lose_prewarmed(&mut self, key: Key, why: Option<&SandboxError>) -> bool {
        let was = self.prewarmed.forget(key);
        if let (true, Some(error)) = (was, why) {
            self.prewarm_failed(error);
        }
        was
    }

    fn prewarm_failed(&mut self, error: &SandboxError) {
        self.prewarmed.failed = Some(Instant::now());
        tracing::warn!(%error, "cannot pre-warm a sandbox; restores create their own");
    }

    /// Ends that of a runtime.
    pub(super) fn end_prewarmed(&mut self, runtime_name: &str) {
        if let Some(kept) = self.prewarmed.kept.get(runtime_name) {
            self.destroy(kept.key, None);
        }
    }

    /// Ends all.
    pub(super) fn end_all_prewarmed(&mut self) {
        for name in self.prewarmed.board.runtimes() {
            self.end_prewarmed(name);
        }
    }

    /// Restores into a matching pre-warmed sandbox; otherwise returns everything.
    pub(super) fn restore_into_prewarmed(
        &mut self,
        spec: SandboxSpec,
        reply: oneshot::Sender<Result<Sandbox, SandboxError>>,
    ) -> Option<(SandboxSpec, oneshot::Sender<Result<Sandbox, SandboxError>>)> {
        let fits = |kept: &&Kept| kept.ready && kept.runtime_dir == spec.runtime_dir;
        let kept = self.prewarmed.kept.get(spec.runtime_name).filter(fits);
        let (Some(kept), Some(source)) = (kept, &spec.restore) else {
            return Some((spec, reply));
        };
        let (key, limit) = (kept.key, source.limit);
        let Some(live) = self.live.get_mut(&key) else {
            return Some((spec, reply));
        };
        match live.assign(spec.clone()) {
            Ok(ends) => {
                let anew = Some(Box::new(spec));
                live.waiting = Some(Waiting { reply, ends, anew });
                self.prewarmed.forget(key);
                self.prewarmed.board.0.used.fetch_add(1, Ordering::Relaxed);
                self.later(limit, 0, Job::GiveUpRestoring(key, limit));
                self.later(FIRST_INSTANCE_CGROUP, 0, Job::FillPool(key, 1));
                None
            }
            Err(error) => {
                // It may have died a moment ago.
                tracing::debug!(%error, "a pre-warmed sandbox takes no function");
                self.destroy(key, None);
                Some((spec, reply))
            }
        }
    }
}
