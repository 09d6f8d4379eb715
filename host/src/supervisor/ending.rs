//! The end of a sandbox: it fails, PID 1 exits, or it is destroyed; then everything of it is removed.

use super::Supervisor;
use super::jobs::{RETRIES, pause};
use super::live::Waiting;
use crate::SandboxError;
use crate::protocol::{Key, Reply};

impl Supervisor {
    /// The sandbox cannot be created: reports it and removes what exists of it. If it was pre-warmed and the restore
    /// itself has not failed, another one is created instead.
    pub(super) fn fail(&mut self, key: Key, error: SandboxError) {
        self.lose_prewarmed(key, Some(&error));
        let live = self.live.get_mut(&key);
        let waiting = live.and_then(|live| live.waiting.take());
        self.destroy(key);
        let Some(Waiting { sequence, anew, .. }) = waiting else {
            return;
        };
        let refused = match anew.filter(|_| !error.is_of_restore()) {
            None => Err(error),
            Some(function) => {
                tracing::warn!(%error, "a pre-warmed sandbox failed");
                self.create_anew(sequence, *function)
            }
        };
        self.refuse_failed(sequence, refused);
    }

    /// Init's socket has ended. PID 1's pidfd says when it is gone; without one there is only the builder.
    pub(super) fn lose_init(&mut self, key: Key) {
        let Some(live) = self.live.get_mut(&key) else {
            return;
        };
        if live.init.is_none() && !live.gone {
            live.gone = true;
            self.reap_builder(key);
            self.fail_silent_init(key);
        } else if live.waiting.is_some() {
            self.fail_silent_init(key);
        }
    }

    fn fail_silent_init(&mut self, key: Key) {
        self.fail(
            key,
            SandboxError::step("start", "hearth-init exited without a status report"),
        );
    }

    /// PID 1 is dead, and so is everything that was inside.
    pub(super) fn on_exit(&mut self, key: Key) {
        // What it said last may still be in the socket.
        self.on_report(key);
        let Some(live) = self.live.get_mut(&key) else {
            return;
        };
        if live.init.is_none() {
            return;
        }
        let ended = live.reap(key);
        let is_known = live.outside.is_some();
        live.gone = true;
        live.control = None;
        let (destroying, waiting) = (live.destroying, live.waiting.is_some());
        if is_known {
            self.say(ended);
        }
        if waiting {
            // Its builder may live, and so its socket.
            self.fail_silent_init(key);
        }
        // Nothing else refers to a pre-warmed sandbox.
        if self.lose_prewarmed(key, None) {
            self.destroy(key);
        } else if destroying {
            self.begin_removal(key);
        }
    }

    /// Destroys a sandbox and tells the server when it is removed.
    pub(super) fn destroy_and_say(&mut self, key: Key) {
        match self.live.get_mut(&key) {
            Some(live) => {
                live.tell = true;
                self.destroy(key);
            }
            None => self.say(Reply::Destroyed(key)),
        }
    }

    pub(super) fn destroy(&mut self, key: Key) {
        let Some(live) = self.live.get_mut(&key) else {
            return;
        };
        let mut is_useless = false;
        if !std::mem::replace(&mut live.destroying, true) {
            live.kill();
            // The builder of a pre-warmed sandbox still runs, and is useless without PID 1.
            is_useless = live.init.is_some() || live.gone;
            if is_useless {
                live.kill_builder();
            }
            live.prewarmed = None;
        }
        let gone = live.gone;
        self.lose_prewarmed(key, None);
        if is_useless {
            self.reap_builder(key);
        }
        if gone {
            self.begin_removal(key);
        }
    }

    fn begin_removal(&mut self, key: Key) {
        if let Some(live) = self.live.get_mut(&key)
            && !std::mem::replace(&mut live.removing, true)
        {
            self.remove_sandbox(key, 0);
        }
    }

    pub(super) fn remove_sandbox(&mut self, key: Key, tries: u32) {
        if !self.is_without_network(key) {
            return; // it comes again when it is
        }
        let Some(live) = self.live.get(&key) else {
            return;
        };
        match live.remove() {
            Err(_) if tries < RETRIES => {
                self.later(key, pause(tries), move |supervisor| {
                    supervisor.remove_sandbox(key, tries + 1);
                });
                return;
            }
            Err(error) => tracing::warn!(%error, "cannot remove a sandbox"),
            Ok(()) => {}
        }
        self.forget_jobs(key);
        self.return_all_cores(key);
        if let Some(live) = self.live.remove(&key)
            && live.tell
        {
            self.say(Reply::Destroyed(key));
        }
    }
}
