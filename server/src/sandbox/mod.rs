//! Sandboxes: created once per function version by a dedicated thread, which takes typed messages and passes
//! descriptors.
//!
//! ```text
//! Host::create ─▶ Starting ──Ready──▶ Running ──template ends──▶ Ended
//!                    │ a step fails       │ destroy, drop           │ destroy, drop
//!                    ▼                    ▼                         ▼
//!                 (removed) ◀───────── Destroying ◀─────────────────┘
//! ```
//!
//! - [`limits`]: resource limits of a sandbox. [`cgroup`]: enforces them, on v1 and v2.
//! - [`probe`]: what the host can do. [`launch`]: starts `hearth-init`, which builds the sandbox and is its PID 1.
//! - [`thread`]: owns the sandboxes' state; [`lifecycle`]: its transitions. [`mailbox`]: its messages. [`attach`]:
//!   moves instances into their cgroups.
//! - [`prewarmed`]: pre-warmed sandboxes for restores.
//!
//! `server/docs/sandbox.md` explains how each resource is contained.

mod attach;
mod cgroup;
mod instance_cgroup;
mod launch;
mod lifecycle;
mod limits;
mod live;
mod mailbox;
mod prewarmed;
mod probe;
mod thread;

use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use hearth_init::criu::{CriuProgram, Outside};
use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::{oneshot, watch};

use self::attach::Attach;
use self::cgroup::{Leaf, Tag, Top};
pub use self::instance_cgroup::InstanceCgroup;
use self::live::Ended;
use self::mailbox::{Key, Mailbox, Message};
pub use self::prewarmed::{PrewarmedBoard, PrewarmedSpec};
pub use self::probe::find_init;
use crate::model::Network;

/// Instance cgroups kept ready in each sandbox, so that a start need not wait for one. Each costs the kernel some ten
/// KiB.
const INSTANCE_CGROUP_POOL: usize = 4;
/// The step of `hearth-init` in which CRIU is at work.
const RESTORE_STEP: &str = "restore";

/// Why there is no sandbox.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The host lacks something the sandbox needs: which, and how to get it, in one line.
    #[error("{what} is not available: {reason}; {remedy}")]
    Missing {
        /// "user namespaces", "Landlock", "the memory cgroup" …
        what: &'static str,
        /// What was tried and what the kernel said.
        reason: String,
        /// How to get it.
        remedy: &'static str,
    },
    /// A step of the set-up failed.
    #[error("sandbox set-up failed at {step}: {detail}")]
    Step {
        /// The step.
        step: String,
        /// What went wrong.
        detail: String,
    },
    /// It has ended.
    #[error("the sandbox is gone")]
    Gone,
}

impl SandboxError {
    fn step(step: &str, detail: impl ToString) -> Self {
        Self::Step {
            step: step.to_owned(),
            detail: detail.to_string(),
        }
    }

    /// Whether it was restoring that failed, or took too long.
    pub fn is_of_restore(&self) -> bool {
        matches!(self, Self::Step { step, .. } if step == RESTORE_STEP)
    }

    /// The thread that makes sandboxes has ended.
    fn shut_down() -> Self {
        Self::step("thread", "the sandboxes are shut down")
    }
}

/// What this host can do, for `GET /api/v1/node`.
#[derive(Debug, Clone, Serialize)]
pub struct Capability {
    /// `userns`, `landlock`, `seccomp`, `cgroup`, `cgroup_fast_attach`, `criu`, `xdp`, `sk_msg` …
    pub name: &'static str,
    /// Whether Hearth can use it.
    pub available: bool,
    /// Why not, or null.
    pub reason: Option<String>,
    /// Its version, where it has one ("v1", "v2", Landlock ABI "7").
    pub version: Option<String>,
}

/// What a sandbox is made from.
#[derive(Debug, Clone)]
pub struct SandboxSpec {
    /// Unique among live sandboxes, `[a-z0-9-]`: names its cgroup and its directory.
    pub id: String,
    /// Host name inside: the function's name.
    pub hostname: String,
    /// First of the two host uids (init; template and instances).
    pub uid_base: u32,
    /// The unpacked code, bound read-only to `/var/task`. World-readable, since its owner does not exist inside.
    pub code_dir: PathBuf,
    /// The runtime's files, bound read-only to `/opt/hearth/python` (or `…/node`); readable by everybody.
    pub runtime_dir: PathBuf,
    /// Directory name below `/opt/hearth`.
    pub runtime_name: &'static str,
    /// Program and arguments of the template, as seen inside.
    pub argv: Vec<String>,
    /// Whether the template forks its instances. Else they boot by themselves, and what they took until they were ready
    /// stays on the template's account.
    pub forks: bool,
    /// Its whole environment.
    pub env: Vec<(String, String)>,
    /// Memory of one instance, bytes.
    pub memory_bytes: u64,
    /// Most instances at one time.
    pub max_instances: u32,
    /// Network access.
    pub network: Network,
    /// Whether the template is to be dumped: CRIU needs its notes on the kernel in `/run` then.
    pub dumpable: bool,
    /// An image to restore the template from, instead of starting `argv`.
    pub restore: Option<RestoreSource>,
}

/// What a template is restored from.
#[derive(Debug, Clone)]
pub struct RestoreSource {
    /// Directory of CRIU's image files.
    pub images: PathBuf,
    /// Longest time it may take, sandbox included.
    pub limit: Duration,
}

/// What CRIU needs to know of a sandbox to dump its template.
#[derive(Debug)]
pub struct Dumpable {
    /// PID 1.
    pub init: OwnedFd,
    /// The template's descriptors that lead outside.
    pub outside: Outside,
    /// Inode of the server's end of the control socket.
    pub control_peer: u64,
}

/// The narrow interface to everything that needs root: a thread with a mailbox. Cheap to clone.
#[derive(Clone)]
pub struct Host(Arc<HostInner>);

struct HostInner {
    mailbox: Mailbox,
    capabilities: Vec<Capability>,
    prewarmed: PrewarmedBoard,
}

impl Drop for HostInner {
    fn drop(&mut self) {
        self.mailbox.send(Message::Orphaned);
    }
}

impl Host {
    /// Probes the host and starts the sandbox thread. `dir` is a private directory for roots (`DATA_DIR/run`), `init`
    /// the path of the `hearth-init` binary ([`find_init`]). Clears what an earlier server left there and in the cgroups.
    /// May block for some ten milliseconds, and for seconds when there is much to clear.
    ///
    /// # Errors
    /// [`SandboxError::Missing`] when the host cannot give something that every sandbox needs.
    pub fn start(dir: &Path, init: &Path) -> Result<Self, SandboxError> {
        Self::start_with_criu(dir, init, None)
    }

    /// The same, with a CRIU by which templates can be dumped and restored.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_with_criu(
        dir: &Path,
        init: &Path,
        criu: Option<CriuProgram>,
    ) -> Result<Self, SandboxError> {
        let failed = |step: &'static str| move |error: io::Error| SandboxError::step(step, error);
        let mut capabilities = probe::kernel(init)?;
        let tag = Tag::new();
        let top = Top::open(&tag)?;
        cgroup::clear_stale_directories(dir);
        let dir = dir.join(tag.as_str());
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir)
            .map_err(|error| {
                SandboxError::step("directory", format!("{}: {error}", dir.display()))
            })?;
        top.record(&dir).map_err(failed("directory"))?;
        capabilities.extend(probe::cgroup(init, &top, &dir));

        let attach = attach::start().map_err(failed("thread"))?;
        let prewarmed = PrewarmedBoard::default();
        let board = prewarmed.clone();
        let mailbox = thread::start(init.to_owned(), dir, top, attach, criu, board)
            .map_err(failed("thread"))?;
        Ok(Self(Arc::new(HostInner {
            mailbox,
            capabilities,
            prewarmed,
        })))
    }

    /// Pre-warms a sandbox for restores of this runtime, without waiting for it. Does nothing without CRIU.
    pub fn keep_prewarmed(&self, spec: PrewarmedSpec) {
        self.0.mailbox.send(Message::KeepPrewarmed(Box::new(spec)));
    }

    /// Ends the pre-warmed sandbox of this runtime, without waiting for it.
    pub fn end_prewarmed(&self, runtime_name: &'static str) {
        self.0.mailbox.send(Message::EndPrewarmed(runtime_name));
    }

    /// The pre-warmed sandboxes.
    pub fn prewarmed(&self) -> &PrewarmedBoard {
        &self.0.prewarmed
    }

    /// What was probed.
    pub fn capabilities(&self) -> &[Capability] {
        &self.0.capabilities
    }

    /// One of them by name.
    pub fn capability(&self, name: &str) -> Option<&Capability> {
        self.0
            .capabilities
            .iter()
            .find(|capability| capability.name == name)
    }

    /// Makes a sandbox and starts the template in it. Dropping the future undoes it.
    ///
    /// # Errors
    /// [`SandboxError::Step`] with the step that failed; nothing of it is left then.
    pub async fn create(&self, spec: SandboxSpec) -> Result<Sandbox, SandboxError> {
        if spec.network == Network::Outbound {
            return Err(SandboxError::Missing {
                what: "outbound network",
                reason: probe::OUTBOUND_REASON.to_owned(),
                remedy: "use \"network\": \"none\"",
            });
        }
        let (reply, answer) = oneshot::channel();
        self.0.mailbox.send(Message::Create(Box::new(spec), reply));
        answer
            .await
            .unwrap_or_else(|_| Err(SandboxError::shut_down()))
    }

    /// Destroys every sandbox and removes all cgroups and directories. Waits until that is done.
    pub async fn shutdown(&self) {
        let (reply, answer) = oneshot::channel();
        self.0.mailbox.send(Message::Shutdown(reply));
        // An error means that the thread has ended before, with nothing left to do.
        let _ = answer.await;
    }
}

/// Memory charged to a sandbox, bytes, without the file cache, which the kernel takes back by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryUse {
    /// Of PID 1 and the template.
    pub template: u64,
    /// Of everything in it.
    pub sandbox: u64,
}

/// A live sandbox. Dropping it destroys it (asynchronously); [`Sandbox::destroy`] waits.
pub struct Sandbox {
    /// Server's end of the template's control socket (SEQPACKET, non-blocking).
    pub control: Option<OwnedFd>,
    /// Read end of the template's stdout (non-blocking).
    pub stdout: Option<OwnedFd>,
    /// Read end of the template's stderr (non-blocking).
    pub stderr: Option<OwnedFd>,
    /// What leads out of it.
    dumpable: Dumpable,
    key: Key,
    uid: u32,
    template: Leaf,
    /// Filled by the thread, emptied by [`Sandbox::instance_cgroup`].
    pool: Arc<Mutex<Vec<Leaf>>>,
    ended: watch::Receiver<Option<Ended>>,
    mailbox: Mailbox,
    attach: mpsc::Sender<Attach>,
}

impl Sandbox {
    /// A cgroup leaf for one instance to come; kept prepared ahead, so usually at once.
    ///
    /// # Errors
    /// [`SandboxError::Step`] when the kernel refuses another cgroup, or the sandbox is gone.
    pub async fn instance_cgroup(&self) -> Result<InstanceCgroup, SandboxError> {
        let prepared = self.pool.lock().pop();
        let leaf = match prepared {
            Some(leaf) => leaf,
            None => {
                let (reply, answer) = oneshot::channel();
                self.mailbox.send(Message::InstanceCgroup(self.key, reply));
                answer
                    .await
                    .unwrap_or_else(|_| Err(SandboxError::shut_down()))?
            }
        };
        Ok(InstanceCgroup {
            key: self.key,
            uid: self.uid,
            leaf,
            mailbox: self.mailbox.clone(),
            attach: self.attach.clone(),
        })
    }

    /// Prepares more instance cgroups when few are left.
    pub fn prepare_instance_cgroups(&self) {
        if self.pool.lock().len() <= INSTANCE_CGROUP_POOL / 2 {
            self.mailbox.send(Message::FillPool(self.key));
        }
    }

    /// Waits until PID 1 is gone (the template ended or was killed) and says how: "the template was killed by signal
    /// 9", "the template exited with status 1", "…ran out of memory". Cancel-safe.
    pub async fn exited(&self) -> String {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await {
            Ok(ended) => ended
                .as_ref()
                .map(|ended| ended.how.clone())
                .unwrap_or_default(),
            Err(_) => "the sandbox was destroyed".to_owned(),
        }
    }

    /// Whether the process with this number on the host is one of the sandbox's, by its owner.
    pub fn owns(&self, pid: u32) -> bool {
        // One that may not be dumped shows as the inner root's, whose uid is the one before.
        fs::metadata(format!("/proc/{pid}"))
            .is_ok_and(|meta| meta.uid() == self.uid || meta.uid() + 1 == self.uid)
    }

    /// The host uid of the template and its instances.
    pub fn worker_uid(&self) -> u32 {
        self.uid
    }

    /// What CRIU needs to dump the template.
    pub fn dumpable(&self) -> &Dumpable {
        &self.dumpable
    }

    /// Whether the template's own leaf met its memory limit.
    pub fn template_oom_killed(&self) -> bool {
        match &*self.ended.borrow() {
            Some(ended) => ended.out_of_memory,
            None => self.template.oom_kills() > 0,
        }
    }

    /// The template's exit status or the signal that ended it, once the sandbox is gone.
    pub fn template_status(&self) -> Option<(Option<i32>, Option<i32>)> {
        self.ended
            .borrow()
            .as_ref()
            .and_then(|ended| ended.template)
    }

    /// What it uses now; `None` when it is gone. Reads four small files of the kernel's.
    pub fn memory(&self) -> Option<MemoryUse> {
        Some(MemoryUse {
            template: self.template.memory()?,
            sandbox: self.template.memory_of_all()?,
        })
    }

    /// Memory mappings of that process of the template's which has most, counted up to `most`. Reads the kernel's files.
    pub fn mappings(&self, most: usize) -> usize {
        let processes = fs::read_to_string(self.template.procs()).unwrap_or_default();
        let count = |pid: &str| {
            let maps = fs::File::open(format!("/proc/{pid}/maps")).map(BufReader::new);
            maps.map_or(0, |maps| maps.split(b'\n').take(most).count())
        };
        processes.lines().map(count).max().unwrap_or_default()
    }

    /// Processes of the template and of what its import has started, PID 1 not being one. Reads the kernel's files.
    pub fn processes(&self) -> usize {
        self.template.processes(self.uid)
    }

    /// Stops them; returns how many there are.
    pub fn freeze_template(&self) -> usize {
        self.template.freeze(self.uid)
    }

    /// Resumes them.
    pub fn thaw_template(&self) {
        self.template.thaw(self.uid);
    }

    /// Kills everything in it, waits for it to be gone and removes its cgroups and directories.
    pub async fn destroy(self) {
        let (reply, answer) = oneshot::channel();
        self.mailbox.send(Message::Destroy(self.key, Some(reply)));
        // An error means that the thread has ended, and everything with it.
        let _ = answer.await;
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.mailbox.send(Message::Destroy(self.key, None));
    }
}
