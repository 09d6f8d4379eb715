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
use std::time::{Duration, Instant};

use super::live::{Function, LiveSandbox, Waiting};
use super::{SETUP_TIMEOUT, Supervisor};
use crate::SandboxError;
use crate::protocol::papers::is_plain;
use crate::protocol::{Key, Reply, Sequence};

/// After one could not be made, none is for this long: what fails is likely to fail again, and each costs CPU time.
const AFTER_FAILURE: Duration = Duration::from_secs(30);
/// A pre-warmed sandbox is replaced at this age: it shows the host's files as they were when it was created, and
/// upgrades of the host replace some of them.
const MAX_AGE: Duration = Duration::from_secs(3600);

struct Kept {
    key: Key,
    ready: bool,
}

/// The pre-warmed sandboxes that there are, by the runtime's name.
#[derive(Default)]
pub(super) struct PrewarmedSandboxes {
    kept: HashMap<String, Kept>,
    failed: Option<Instant>,
}

impl Supervisor {
    /// Pre-warms a sandbox, unless there is one for that runtime, or none may be made.
    pub(super) fn keep_prewarmed(&mut self, uid_base: u32, runtime: &str) {
        if self.host.criu.is_none() || self.prewarmed.kept.contains_key(runtime) {
            return;
        }
        let failed = self.prewarmed.failed;
        if failed.is_some_and(|at| at.elapsed() < AFTER_FAILURE) {
            return;
        }
        let checked = match is_plain(runtime) {
            true => self.check_uid(uid_base),
            false => Err(SandboxError::specification("not the name of a runtime")),
        };
        let key = self.next;
        self.next += 1;
        let name = format!("prewarmed.{key}");
        let started = checked
            .and_then(|()| LiveSandbox::start_prewarmed(&self.host, name, uid_base, runtime))
            .and_then(|live| self.watch_init(key, &live).map(|()| live));
        match started {
            Ok(live) => {
                self.live.insert(key, live);
                if let Err(error) = self.keep_off(key) {
                    tracing::warn!(%error, "a pre-warmed sandbox is not kept off the cores of others");
                }
                let kept = Kept { key, ready: false };
                self.prewarmed.kept.insert(runtime.to_owned(), kept);
                self.show(runtime);
                self.later(key, SETUP_TIMEOUT, move |supervisor| {
                    supervisor.give_up_prewarmed(key);
                });
                self.later(key, MAX_AGE, move |supervisor| {
                    supervisor.replace_prewarmed(key)
                });
            }
            Err(error) => self.prewarm_failed(&error),
        }
    }

    /// Tells the server how it is with a runtime's.
    fn show(&mut self, runtime: &str) {
        let kept = self.prewarmed.kept.get(runtime);
        self.say(Reply::Prewarmed {
            runtime: runtime.to_owned(),
            kept: kept.is_some(),
            ready: kept.is_some_and(|kept| kept.ready),
        });
    }

    /// The runtime whose pre-warmed sandbox this is.
    fn runtime_of(&self, key: Key) -> Option<String> {
        let mut kept = self.prewarmed.kept.iter();
        let (runtime, _) = kept.find(|(_, kept)| kept.key == key)?;
        Some(runtime.clone())
    }

    /// It is complete, and waits.
    pub(super) fn prewarmed_ready(&mut self, key: Key) {
        if let Some(runtime) = self.runtime_of(key) {
            self.prewarmed
                .kept
                .insert(runtime.clone(), Kept { key, ready: true });
            self.show(&runtime);
        }
    }

    /// Too old. A new one is created on the next request for one.
    pub(super) fn replace_prewarmed(&mut self, key: Key) {
        if self.forget(key) {
            self.destroy(key);
        }
    }

    pub(super) fn give_up_prewarmed(&mut self, key: Key) {
        let mut kept = self.prewarmed.kept.values();
        if kept.any(|kept| kept.key == key && !kept.ready) {
            let late = format!("not ready after {} s", SETUP_TIMEOUT.as_secs());
            self.fail(key, SandboxError::step("start", late));
        }
    }

    /// True when it was one.
    fn forget(&mut self, key: Key) -> bool {
        let Some(runtime) = self.runtime_of(key) else {
            return false;
        };
        self.prewarmed.kept.remove(&runtime);
        self.show(&runtime);
        true
    }

    /// Marks this sandbox as no longer pre-warmed. True if it was.
    pub(super) fn lose_prewarmed(&mut self, key: Key, why: Option<&SandboxError>) -> bool {
        let was = self.forget(key);
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
    pub(super) fn end_prewarmed(&mut self, runtime: &str) {
        if let Some(kept) = self.prewarmed.kept.get(runtime) {
            self.destroy(kept.key);
        }
    }

    /// Restores into a matching pre-warmed sandbox; otherwise returns the function.
    pub(super) fn restore_into_prewarmed(
        &mut self,
        sequence: Sequence,
        function: Function,
    ) -> Option<Function> {
        let Some(limit) = function.0.restore_limit else {
            return Some(function);
        };
        let kept = self.prewarmed.kept.get(&function.1.runtime);
        let Some(key) = kept.filter(|kept| kept.ready).map(|kept| kept.key) else {
            return Some(function);
        };
        let Some(live) = self.live.get_mut(&key) else {
            return Some(function);
        };
        match live.assign(&self.host, function.clone()) {
            Ok(ends) => {
                live.waiting = Some(Waiting {
                    sequence,
                    ends,
                    anew: Some(Box::new(function)),
                });
                self.forget(key);
                self.attach_network(key);
                self.look_ahead(key, Some(limit));
                None
            }
            Err(error) => {
                // It may have died a moment ago.
                tracing::debug!(%error, "a pre-warmed sandbox takes no function");
                self.destroy(key);
                Some(function)
            }
        }
    }
}
