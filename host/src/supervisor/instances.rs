//! What is done to one instance: it is moved into its cgroup, stopped, resumed, killed.
//!
//! The server names the process. Whatever it names, only processes of the named sandbox's own user are touched, and signals
//! are sent through a descriptor, so that its number cannot pass to another one in between.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};

use super::Supervisor;
use super::attach::Attach;
use super::jobs::{RETRIES, pause};
use super::live::LiveSandbox;
use crate::cgroup::{belongs, signal_process};
use crate::protocol::request::Target;
use crate::protocol::{Key, LeafNumber, Reply};
use crate::scheduling::{Scheduling, schedule_all};

impl Supervisor {
    /// The sandbox of a target, if it has the target's cgroup.
    fn sandbox_of(&mut self, target: Target) -> Option<&mut LiveSandbox> {
        let live = self.live.get_mut(&target.key)?;
        live.leaves.contains(&target.leaf).then_some(live)
    }

    /// Moves an instance into its cgroup, on another thread.
    pub(super) fn attach(&mut self, target: Target) {
        let Some(live) = self.sandbox_of(target) else {
            return;
        };
        let (leaf, uid) = (live.leaf(target.leaf), live.uid);
        // Its request is on the way.
        self.boost(target, uid);
        let Some(pid) = number(target.pid) else {
            return;
        };
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            // It has ended.
            Err(rustix::io::Errno::SRCH) => return,
            Err(errno) => {
                let detail = format!("no descriptor of the instance: {errno}");
                return self.say(Reply::AttachFailed(target.key, target.leaf, detail));
            }
        };
        let attach = Attach {
            key: target.key,
            number: target.leaf,
            leaf,
            pid,
            pidfd,
            uid,
        };
        if let Err(error) = self.attach.take(move |()| attach.run()) {
            let detail = error.to_string();
            self.say(Reply::AttachFailed(target.key, target.leaf, detail));
        }
    }

    /// Kills an instance and everything that it started.
    pub(super) fn kill(&mut self, target: Target) {
        let Some(live) = self.sandbox_of(target) else {
            return;
        };
        // Taking its memory apart is most of the work, which requests are not to wait for.
        if let Some(pid) = number(target.pid).filter(|pid| belongs(*pid, live.uid)) {
            schedule_all(pid, Scheduling::Patient);
        }
        signal_number(target.pid, live.uid, Signal::KILL);
        live.leaf(target.leaf).kill();
        self.sweep(target.key);
    }

    /// The same, and removes its cgroup.
    pub(super) fn release(&mut self, target: Target) {
        let Some(live) = self.sandbox_of(target) else {
            return;
        };
        live.frozen.remove(&target.leaf);
        // Nobody has a use for it any more, and its removal begins once.
        live.leaves.remove(&target.leaf);
        live.removed_leaves.insert(target.leaf);
        signal_number(target.pid, live.uid, Signal::KILL);
        self.remove_instance_cgroup(target.key, target.leaf, 0);
    }

    pub(super) fn remove_instance_cgroup(&mut self, key: Key, number: LeafNumber, tries: u32) {
        let Some(live) = self.live.get_mut(&key) else {
            return; // removed with its sandbox
        };
        let leaf = live.leaf(number);
        leaf.kill();
        let removed = leaf.remove() && live.group.remove_cpu(number);
        if removed {
            live.removed_leaves.remove(&number);
            self.return_cores((key, number));
        }
        // Once before the instance is gone would be too early to find all of its strays, and so is only the first time.
        if removed || tries == 0 {
            self.sweep(key);
        }
        if !removed {
            if tries < RETRIES {
                self.later(key, pause(tries), move |supervisor| {
                    supervisor.remove_instance_cgroup(key, number, tries + 1);
                });
            } else {
                tracing::warn!(
                    "cannot kill an instance; its cgroup remains until its sandbox is removed"
                );
            }
        }
    }

    pub(super) fn sweep(&mut self, key: Key) {
        let Some(live) = self.live.get_mut(&key).filter(|live| !live.sweep_is_due) else {
            return;
        };
        if !live.sweep() {
            live.sweep_is_due = true;
            self.later(key, pause(0), move |supervisor| {
                if let Some(live) = supervisor.live.get_mut(&key) {
                    live.sweep_is_due = false;
                }
                supervisor.sweep(key);
            });
        }
    }

    /// Makes instance cgroups for later.
    pub(super) fn fill_pool(&mut self, key: Key, count: u32) {
        for _ in 0..count {
            let Some(live) = self.live.get_mut(&key).filter(|live| !live.destroying) else {
                return;
            };
            // The next caller gets the error.
            let Ok(leaf) = live.instance_cgroup() else {
                return;
            };
            let is_running = live.is_running();
            if let Err(error) = self.keep_off(key) {
                tracing::warn!(%error, "an instance is not kept off the cores of others");
            }
            match is_running {
                true => self.say(Reply::Prepared(key, leaf)),
                // Before the server knows the sandbox it cannot make use of it.
                false => {
                    if let Some(live) = self.live.get_mut(&key) {
                        live.prepared.push(leaf);
                    }
                }
            }
        }
    }

    /// Stops an instance, what it started, and what its import started if that was asked for.
    pub(super) fn freeze(&mut self, target: Target, with_template: bool) {
        let Some(live) = self.sandbox_of(target) else {
            return;
        };
        let (leaf, uid) = (live.leaf(target.leaf), live.uid);
        // What it started before it was moved is to be in its cgroup, too.
        if let Some(pid) = number(target.pid).filter(|pid| belongs(*pid, uid)) {
            leaf.adopt(pid, uid);
        }
        // Until it is stopped it may start others.
        signal_number(target.pid, uid, Signal::STOP);
        let mut stopped = leaf.freeze(uid);
        if with_template {
            stopped += live.group.template().freeze(uid);
        }
        live.frozen.insert(target.leaf, stopped > 1);
    }

    /// Resumes what was stopped.
    pub(super) fn thaw(&mut self, target: Target, with_template: bool) {
        let Some(live) = self.sandbox_of(target) else {
            return;
        };
        let (leaf, uid) = (live.leaf(target.leaf), live.uid);
        if live.frozen.remove(&target.leaf).unwrap_or(true) {
            leaf.thaw(uid);
            if with_template {
                live.group.template().thaw(uid);
            }
        }
        signal_number(target.pid, uid, Signal::CONT);
    }

    /// Lets an instance have no more than so much of a processor.
    pub(super) fn limit_cpu(&mut self, target: Target, quota_us: u32) {
        self.end_boosts(target.key);
        let Some(live) = self.sandbox_of(target) else {
            return;
        };
        if let Err(error) = live.group.limit_cpu(target.leaf, quota_us.into()) {
            tracing::warn!(%error, "an instance has all the processor time that its sandbox has");
        }
    }

    /// Stops a template and what its import started.
    pub(super) fn freeze_template(&mut self, key: Key) {
        if let Some(live) = self.live.get(&key) {
            live.group.template().freeze(live.uid);
        }
    }

    /// Resumes them.
    pub(super) fn thaw_template(&mut self, key: Key) {
        if let Some(live) = self.live.get(&key) {
            live.group.template().thaw(live.uid);
        }
    }
}

pub(super) fn number(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

/// Sends a signal to the process with this number, if it is one of this user's.
fn signal_number(pid: u32, uid: u32, signal: Signal) {
    if let Some(pid) = number(pid) {
        signal_process(pid, signal, |pid| belongs(pid, uid));
    }
}
