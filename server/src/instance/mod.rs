//! Instances: one worker process each, forked from its function's [`Template`] or converted from one.
//!
//! ```text
//!               fork            READY              lease
//!  (none) ───────────▶ Starting ──────▶ Idle ◀────────────▶ Busy
//!                         │ timeout,     │ idle timeout,      │ deadline, crash,
//!                         ▼ exit         ▼ retired            ▼ bad frame, OOM
//!                       Failed        dropped               dropped
//! ```
//! An [`Instance`] value *is* the state: a starting one exists only as the future of [`Instance::start`]; an idle one
//! is owned by the pool, a busy one by the invocation that leased it. Nobody else can reach it, so illegal transitions
//! cannot happen, and dropping it kills the process and everything it started.

mod descriptors;
mod follow_up;
mod fork;
mod freeze;
mod fresh;
mod join;
mod logs;
mod preforked;
mod ready;
mod signs;
mod template;
mod watch;

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

pub use follow_up::FollowUp;
pub use fork::StartError;
pub use freeze::FREEZE_AFTER;
pub use join::JoinError;
pub use logs::{LogSink, LogTap, Logs};
pub use template::{BootError, ExitStatus, IMPORT_DEADLINE, Imported, Template, TemplateConfig};

use self::freeze::Frozen;

use crate::channel::{Hangup, HostChannel};
use crate::host_error::HostError;
use crate::sandbox::InstanceCgroup;
use crate::watched::Watched;

/// How a template is to start an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By a fork.
    Fork,
    /// By becoming the instance itself, with all of its threads: it is no template from then on.
    Become,
}

/// The row id of a function, known only once its first deploy has been stored: 0 until then.
#[derive(Debug, Clone, Default)]
pub struct FunctionKey(Arc<AtomicI64>);

impl FunctionKey {
    /// The key of a stored function.
    pub fn new(id: i64) -> Self {
        Self(Arc::new(AtomicI64::new(id)))
    }

    /// The row id, or 0.
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets the row id.
    pub fn set(&self, id: i64) {
        self.0.store(id, Ordering::Relaxed);
    }
}

/// How an instance ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Death {
    /// The kernel killed it for its memory limit.
    OutOfMemory,
    /// It exited or was killed: "it was killed by signal 11 (SIGSEGV)".
    Crashed(String),
    /// It was ended because the host could not apply its limits.
    Unlimited(HostError),
}

/// The part that outlives the instance: shared with the task that watches its process.
#[derive(Debug)]
pub struct Vitals {
    /// Number of the instance, unique in this server's life.
    pub id: u64,
    /// Its process id on the host.
    pub pid: u32,
    death: OnceLock<Death>,
    died: tokio::sync::Notify,
    hangup: Hangup,
}

impl Vitals {
    /// Waits until the process has ended.
    pub async fn died(&self) -> &Death {
        loop {
            let notified = self.died.notified();
            if let Some(death) = self.death.get() {
                return death;
            }
            notified.await;
        }
    }

    fn record(&self, death: Death) {
        // The watcher is the only writer.
        let _ = self.death.set(death);
        self.died.notify_waiters();
        self.hangup.signal();
    }
}

/// A live worker process. Dropping it kills it.
pub struct Instance {
    /// Its identity and its end.
    pub vitals: Arc<Vitals>,
    /// Its channel.
    pub channel: HostChannel,
    /// Its log.
    pub logs: LogTap,
    /// From the command to READY.
    pub forked_in: Duration,
    /// Whether it was started in advance: a fork that waited for GO, or a template that waited to become an instance.
    pub was_preforked: bool,
    /// Where READY came from. A member of a chain hears here of its peers.
    control: Arc<Watched>,
    instance_cgroup: Arc<InstanceCgroup>,
    /// The template it was before.
    becomes: Option<Arc<Template>>,
    frozen: Frozen,
}

impl Instance {
    /// Whether the process runs, according to the kernel: its end may be slightly older than the notification.
    pub fn is_running(&self) -> bool {
        self.vitals.death.get().is_none() && !self.logs.signs().look().ended
    }

    /// Kills the process and everything it started, now.
    pub fn kill(&self) {
        self.instance_cgroup.kill();
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.kill();
    }
}
