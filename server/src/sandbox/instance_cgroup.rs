//! One instance's cgroup: has the instance moved in, stopped and killed, and reads what is in it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use hearth_host::SandboxError;
use hearth_host::cgroup::Leaf;
use hearth_host::cores;
use hearth_host::protocol::request::Target;
use hearth_host::protocol::{Key, LeafNumber, Request};
use rustix::process::Pid;
use tokio::sync::oneshot;

use super::client::Client;
use super::sandbox::Shared;
use super::{Sandbox, usage};
use crate::host_error::HostError;

/// The cgroup leaf of one instance. Dropping it kills its processes and removes it (asynchronously).
pub struct InstanceCgroup {
    client: Arc<Client>,
    shared: Arc<Shared>,
    key: Key,
    number: LeafNumber,
    uid: u32,
    leaf: Leaf,
    /// The instance; 0 before it exists.
    pid: AtomicU32,
    /// Whether the instance may run: one that is pre-forked only waits, and one that is idle is frozen.
    in_use: AtomicBool,
}

impl InstanceCgroup {
    pub(super) fn new(sandbox: &Sandbox, number: LeafNumber) -> Self {
        let version = sandbox.client.version();
        Self {
            client: sandbox.client.clone(),
            shared: sandbox.shared.clone(),
            key: sandbox.key,
            number,
            uid: sandbox.uid,
            leaf: Leaf::instance_of(version, sandbox.cgroup(), number),
            pid: AtomicU32::new(0),
            in_use: AtomicBool::new(false),
        }
    }

    fn target(&self) -> Target {
        Target {
            key: self.key,
            leaf: self.number,
            pid: self.pid.load(Ordering::Relaxed),
        }
    }

    /// The instance is this process (host pid), which stays where it is for now.
    pub fn expect(&self, pid: u32) {
        self.pid.store(pid, Ordering::Relaxed);
    }

    /// Has the instance moved into the leaf, without waiting for it. The receiver gets an error if that
    /// fails: then the instance has no limits and must be ended.
    pub fn attach(&self) -> oneshot::Receiver<HostError> {
        let (refused, receiver) = oneshot::channel();
        self.shared.refused.lock().insert(self.number, refused);
        self.client.send(Request::Attach(self.target()));
        receiver
    }

    /// The instance is about to get a request.
    pub fn begin_use(&self) {
        if !self.in_use.swap(true, Ordering::Relaxed) {
            self.shared.activity.begin();
        }
    }

    /// Nothing runs in it until its next request.
    pub fn end_use(&self) {
        if self.in_use.swap(false, Ordering::Relaxed) {
            self.shared.activity.end();
        }
    }

    /// Kills every process of the instance, including strays and those not moved yet, without waiting for it.
    pub fn kill(&self) {
        self.client.send(Request::Kill(self.target()));
    }

    /// Processes of the instance, with those that it had started before it was moved here. Reads the kernel's files.
    pub fn processes(&self) -> usize {
        match Pid::from_raw(self.target().pid.cast_signed()) {
            Some(pid) => usage::processes_with(&self.leaf, pid, self.uid),
            None => usage::processes(&self.leaf, self.uid),
        }
    }

    /// Stops them, and optionally what its import started, without waiting for it.
    pub fn freeze(&self, with_template: bool) {
        self.client
            .send(Request::Freeze(self.target(), with_template));
    }

    /// Resumes them.
    pub fn thaw(&self, with_template: bool) {
        self.client
            .send(Request::Thaw(self.target(), with_template));
    }

    /// Lets it have no more than so many µs of processor time in each period of the scheduler's, without waiting for it.
    pub fn limit_cpu(&self, quota_us: u32) {
        self.client.send(Request::LimitCpu(self.target(), quota_us));
    }

    /// Moves it, with what it has started, to cores that no other sandbox's processes may use.
    pub async fn dedicate(&self, cores: &BTreeSet<u32>) -> Result<(), SandboxError> {
        let (target, mask) = (self.target(), cores::mask(cores));
        let request = |sequence| Request::Dedicate(sequence, target, mask);
        self.client.ask(request, Vec::new()).await?;
        Ok(())
    }

    /// Whether a process in it was killed by the memory limit.
    pub fn oom_killed(&self) -> bool {
        self.leaf.oom_kills() > 0
    }
}

impl Drop for InstanceCgroup {
    fn drop(&mut self) {
        self.shared.refused.lock().remove(&self.number);
        self.end_use();
        self.client.send(Request::Release(self.target()));
    }
}
