//! Sandboxes made ahead: at most one **standby** for each runtime, complete but for what depends on the function, with
//! CRIU started in it. The next restore takes it, so that it pays for neither; see `runtimes/init/src/standby.rs`.
//!
//! ```text
//! keep ─▶ being made ──Standby──▶ ready ──a restore takes it──▶ Starting, as any sandbox
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

use super::live::{Live, Waiting};
use super::mailbox::Key;
use super::thread::{FIRST_CELL, Job, SETUP_PATIENCE, Thread};
use super::{Sandbox, SandboxError, SandboxSpec};

/// After one could not be made, none is for this long: what fails is likely to fail again, and each costs CPU time.
const AFTER_FAILURE: Duration = Duration::from_secs(30);
/// A standby is replaced when it is this old: it shows the host's files as they were when it was made, and an upgrade of
/// the host replaces some of them.
const MAX_AGE: Duration = Duration::from_secs(3600);

/// What a standby is made from.
#[derive(Debug, Clone)]
pub struct StandbySpec {
    /// Unique among live sandboxes, `[a-z0-9-]`.
    pub id: String,
    /// First of the two host uids.
    pub uid_base: u32,
    /// The runtime's files; a restore takes a standby with the same ones only.
    pub runtime_dir: PathBuf,
    /// Directory name below `/opt/hearth`.
    pub runtime_name: &'static str,
}

/// What there is and was, for others to see. Cheap to clone; all clones show the same.
#[derive(Debug, Clone, Default)]
pub struct StandbyBoard(Arc<Board>);

#[derive(Debug, Default)]
struct Board {
    /// Runtimes that have one, and whether it is ready.
    kept: Mutex<Vec<(&'static str, bool)>>,
    used: AtomicU64,
}

impl StandbyBoard {
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

/// The standbys that there are, by the runtime's name.
#[derive(Default)]
pub(super) struct Standbys {
    kept: HashMap<&'static str, Kept>,
    failed: Option<Instant>,
    board: StandbyBoard,
}

impl Standbys {
    pub(super) fn new(board: StandbyBoard) -> Self {
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
    /// Makes a standby, unless there is one for that runtime.
    pub(super) fn keep_standby(&mut self, spec: &StandbySpec) {
        if self.closing || self.criu.is_none() {
            return;
        }
        if self.standbys.kept.contains_key(spec.runtime_name) {
            return;
        }
        let failed = self.standbys.failed;
        if failed.is_some_and(|at| at.elapsed() < AFTER_FAILURE) {
            return;
        }
        let key = self.next;
        self.next += 1;
        let name = format!("{}.{key}", spec.id);
        let started = Live::start_standby(self, &name, spec).and_then(|live| {
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
                self.standbys.kept.insert(spec.runtime_name, kept);
                self.standbys.show();
                self.later(SETUP_PATIENCE, 0, Job::GiveUpStandby(key));
                self.later(MAX_AGE, 0, Job::ReplaceStandby(key));
            }
            Err(error) => self.standby_failed(&error),
        }
    }

    /// It is complete, and waits.
    pub(super) fn standby_ready(&mut self, key: Key) {
        let kept = self.standbys.kept.values_mut();
        for kept in kept.filter(|kept| kept.key == key) {
            kept.ready = true;
        }
        self.standbys.show();
    }

    /// It is old. Whoever wants one will ask for another.
    pub(super) fn replace_standby(&mut self, key: Key) {
        if self.standbys.forget(key) {
            self.destroy(key, None);
        }
    }

    pub(super) fn give_up_standby(&mut self, key: Key) {
        let mut kept = self.standbys.kept.values();
        if kept.any(|kept| kept.key == key && !kept.ready) {
            let late = format!("not ready after {} s", SETUP_PATIENCE.as_secs());
            self.fail(key, SandboxError::step("start", late));
        }
    }

    /// If this sandbox is a standby, it is none any more. True when it was.
    pub(super) fn lose_standby(&mut self, key: Key, why: Option<&SandboxError>) -> bool {
        let was = self.standbys.forget(key);
        if let (true, Some(error)) = (was, why) {
            self.standby_failed(error);
        }
        was
    }

    fn standby_failed(&mut self, error: &SandboxError) {
        self.standbys.failed = Some(Instant::now());
        tracing::warn!(%error, "no sandbox made ahead; restores make their own");
    }

    /// Ends that of a runtime.
    pub(super) fn end_standby(&mut self, runtime_name: &str) {
        if let Some(kept) = self.standbys.kept.get(runtime_name) {
            self.destroy(kept.key, None);
        }
    }

    /// Ends all.
    pub(super) fn end_standbys(&mut self) {
        for name in self.standbys.board.runtimes() {
            self.end_standby(name);
        }
    }

    /// Restores into the standby, if there is one that fits; else hands everything back.
    pub(super) fn restore_into_standby(
        &mut self,
        spec: SandboxSpec,
        reply: oneshot::Sender<Result<Sandbox, SandboxError>>,
    ) -> Option<(SandboxSpec, oneshot::Sender<Result<Sandbox, SandboxError>>)> {
        let fits = |kept: &&Kept| kept.ready && kept.runtime_dir == spec.runtime_dir;
        let kept = self.standbys.kept.get(spec.runtime_name).filter(fits);
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
                self.standbys.forget(key);
                self.standbys.board.0.used.fetch_add(1, Ordering::Relaxed);
                self.later(limit, 0, Job::GiveUpRestoring(key, limit));
                self.later(FIRST_CELL, 0, Job::FillPool(key, 1));
                None
            }
            Err(error) => {
                // It may have died a moment ago.
                tracing::debug!(%error, "a standby takes no function");
                self.destroy(key, None);
                Some((spec, reply))
            }
        }
    }
}
