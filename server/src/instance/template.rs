//! A template: an interpreter in its sandbox with the function imported. It serves no requests: it forks instances, or
//! becomes one itself.
//!
//! The server talks to it over a SEQPACKET socket. Its messages are bounded and parsed as hostile input, because user
//! code ran in that process.

mod boot;
mod exit;
pub(super) mod message;

use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use self::message::{Message, next_message, send};
use super::descriptors::InstanceDescriptors;
use super::fork::StartError;
use super::freeze;
use super::preforked::{Preforked, Prepared};
use super::{FunctionKey, Logs, Way};
use crate::host_error::{HostError, is_shortage_code};
use crate::model::{StartKind, Threads};
use crate::network::Attached;
use crate::sandbox::{Dumpable, MemoryUse, Sandbox};
use crate::watched::Watched;

pub use self::boot::{BootError, IMPORT_DEADLINE, Imported, TemplateConfig};
pub use self::exit::ExitStatus;

/// Consecutive forks that a template may refuse for lack of memory or processes before it is replaced: the memory that is
/// full may be its own.
const REFUSALS_MAX: u32 = 32;
/// How long to wait for the report on how a process ended once its socket has closed.
pub(super) const EXIT_NEWS_DEADLINE: Duration = Duration::from_millis(250);

/// A live template.
pub struct Template {
    control: Watched,
    /// The sandbox it lives in; taken when it is shut down.
    pub(super) sandbox: Sandbox,
    /// Its way out, while it lives.
    _network: Option<Attached>,
    sequence: AtomicU64,
    /// Forks refused since the last success for lack of host resources.
    refusals: AtomicU32,
    /// Out-of-memory kills in the template's cgroup that were attributed to forks.
    oom_kills_attributed: AtomicU64,
    waiting: Mutex<Waiting>,
    watched: AtomicBool,
    /// For the next start.
    pub(super) prepared: Mutex<Option<Prepared>>,
    pub(super) preforked: Preforked,
    retired: CancellationToken,
    pub(super) frozen: Mutex<freeze::Waiting>,
    busy_poll: Duration,
    /// The runtime's version, "3.11.2".
    pub runtime: String,
    /// How it came up: by a boot or a restore.
    pub start_kind: StartKind,
    /// Threads that its import left running; unknown for a restored template.
    pub threads: Option<Threads>,
}

/// Waiters for the template's messages. A missing entry means that nothing waits any more.
#[derive(Default)]
struct Waiting {
    forks: HashMap<u64, oneshot::Sender<StartError>>,
    exits: HashMap<u32, oneshot::Sender<ExitStatus>>,
    /// Exits reported before anybody asked, by pid; bounded.
    early: HashMap<u32, ExitStatus>,
}

/// Exits kept for watchers that have not asked yet.
const MAX_EARLY_EXITS: usize = 1024;

impl Template {
    fn up(
        control: Watched,
        sandbox: Sandbox,
        network: Option<Attached>,
        busy_poll: Duration,
        runtime: String,
        start_kind: StartKind,
        threads: Option<Threads>,
    ) -> Arc<Self> {
        sandbox.import_is_over();
        Arc::new(Self {
            control,
            sandbox,
            _network: network,
            sequence: AtomicU64::new(1),
            refusals: AtomicU32::new(0),
            oom_kills_attributed: AtomicU64::new(0),
            waiting: Mutex::default(),
            watched: AtomicBool::new(false),
            prepared: Mutex::default(),
            preforked: Preforked::default(),
            retired: CancellationToken::new(),
            frozen: Mutex::new(freeze::Waiting::Runs(Instant::now())),
            busy_poll,
            runtime,
            start_kind,
            threads,
        })
    }

    /// Has the template dumped.
    pub fn dumpable(&self) -> Dumpable {
        self.sandbox.dumpable()
    }

    /// Retires it: it ends with its last instance.
    pub fn retire(&self) {
        self.thaw();
        self.end_preforked();
        self.retired.cancel();
    }

    /// Waits for [`Self::retire`].
    pub async fn retired(&self) {
        self.retired.cancelled().await;
    }

    /// True for the first caller, which must run [`Self::listen`].
    pub fn claim_watch(&self) -> bool {
        !self.watched.swap(true, Ordering::AcqRel)
    }

    /// Listens to the template until its socket closes. One task per template runs this.
    pub async fn listen(&self) {
        while let Ok(message) = next_message(&self.control).await {
            let mut waiting = self.waiting.lock();
            match message {
                Message::ForkFailed {
                    seq,
                    message,
                    errno,
                } => {
                    if let Some(sender) = waiting.forks.remove(&seq) {
                        let scarce = errno.is_some_and(is_shortage_code)
                            && self.refusals.fetch_add(1, Ordering::Relaxed) < REFUSALS_MAX;
                        // The waiter may have given up.
                        let _ = sender.send(if scarce {
                            StartError::Host(HostError::new(message))
                        } else {
                            StartError::Fork(message)
                        });
                    }
                }
                Message::Exited { pid, code, signal } => {
                    let status = match signal {
                        Some(signal) => ExitStatus::Signal(signal),
                        None => ExitStatus::Code(code.unwrap_or(-1)),
                    };
                    match waiting.exits.remove(&pid) {
                        Some(sender) => drop(sender.send(status)),
                        None => {
                            // Pre-forked instances may exit on their own.
                            if waiting.early.len() >= MAX_EARLY_EXITS {
                                waiting.early.clear();
                            }
                            let _ = waiting.early.insert(pid, status);
                        }
                    }
                }
                Message::Booted { .. } | Message::ImportError { .. } => {}
            }
        }
    }

    /// Descriptors for one instance.
    pub(super) fn new_descriptors(
        &self,
        function: &FunctionKey,
        sink: &Logs,
    ) -> Result<InstanceDescriptors, StartError> {
        InstanceDescriptors::new(self.busy_poll, function, sink)
    }

    /// Commands a start that takes over `fds`; the answer is READY on the instance's own socket, or a message here.
    pub(super) async fn command(
        &self,
        way: Way,
        fds: &[BorrowedFd<'_>],
    ) -> std::io::Result<(u64, oneshot::Receiver<StartError>)> {
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        {
            let mut waiting = self.waiting.lock();
            // They belong to pre-forked instances that were dropped.
            waiting.forks.retain(|_, sender| !sender.is_closed());
            waiting.forks.insert(sequence, sender);
        }
        let mut command = [0_u8; 9];
        command[0] = match way {
            Way::Fork => b'F',
            Way::Become => b'B',
        };
        command[1..].copy_from_slice(&sequence.to_le_bytes());
        if let Err(error) = send(&self.control, &command, fds).await {
            self.waiting.lock().forks.remove(&sequence);
            return Err(error);
        }
        Ok((sequence, receiver))
    }

    /// A fork worked.
    pub(super) fn has_forked(&self) {
        self.refusals.store(0, Ordering::Relaxed);
    }

    /// The fork with this number has answered or was given up.
    pub(super) fn forget_fork(&self, sequence: u64) {
        self.waiting.lock().forks.remove(&sequence);
    }

    /// The template's report on the end of the child that it knows as `pid`.
    pub(super) fn exit_of(&self, pid: u32) -> oneshot::Receiver<ExitStatus> {
        let (sender, receiver) = oneshot::channel();
        let mut waiting = self.waiting.lock();
        match waiting.early.remove(&pid) {
            Some(status) => drop(sender.send(status)),
            None => drop(waiting.exits.insert(pid, sender)),
        }
        receiver
    }

    /// Memory of it and its instances; `None` if the sandbox is gone. Reads files.
    pub fn memory(&self) -> Option<MemoryUse> {
        self.sandbox.memory()
    }

    /// Whether it hit the limit of its own cgroup, which it was in before it became an instance.
    pub(super) fn ran_out_of_memory(&self) -> bool {
        self.sandbox.template_oom_killed()
    }

    /// Whether the memory limit of the template's cgroup killed a fork that is not attributed yet: one that ran out of
    /// memory before it was moved into its own cgroup.
    pub(super) fn take_oom_kill(&self) -> bool {
        let kills = self.sandbox.template_oom_kills();
        let one_more = |attributed| (attributed < kills).then_some(attributed + 1);
        let taken =
            self.oom_kills_attributed
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        taken.is_ok()
    }

    /// How it ended after becoming an instance: by its own status, once known.
    pub(super) async fn end_of_itself(&self) -> Option<ExitStatus> {
        self.sandbox.exited().await;
        let (code, signal) = self.sandbox.template_status()?;
        Some(match signal {
            Some(signal) => ExitStatus::Signal(signal),
            None => ExitStatus::Code(code.unwrap_or(-1)),
        })
    }

    /// Waits until the sandbox is gone and returns how it ended.
    pub async fn exited(&self) -> String {
        self.sandbox.exited().await
    }
}
