//! A live sandbox.

use std::collections::HashMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hearth_host::SandboxError;
use hearth_host::cgroup::Leaf;
use hearth_host::protocol::{Key, LeafNumber, Request};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

use super::client::{Answer, Client};
use super::throttling::Activity;
use super::{InstanceCgroup, Outbound, usage};
use crate::host_error::HostError;

/// Instance cgroups that the host process keeps ready in each sandbox.
const INSTANCE_CGROUP_POOL: usize = 4;

/// The end of a sandbox.
#[derive(Debug, Clone)]
pub(super) struct Ended {
    /// "the template exited with status 1" …
    pub(super) how: String,
    /// Whether the template's leaf met its memory limit.
    pub(super) out_of_memory: bool,
    /// Status or signal of the template, if PID 1 has reported it.
    pub(super) template: Option<(Option<i32>, Option<i32>)>,
}

/// State shared by the reader of the socket and the sandbox's owner.
#[derive(Debug)]
pub(super) struct Shared {
    /// Instance cgroups created in advance: filled by the reader, emptied by [`Sandbox::instance_cgroup`].
    pub(super) pool: Mutex<Pool>,
    pub(super) ended: watch::Sender<Option<Ended>>,
    pub(super) activity: Activity,
    /// Callers to notify if an instance could not be moved into its cgroup.
    pub(super) refused: Mutex<HashMap<LeafNumber, oneshot::Sender<HostError>>>,
    /// Callers waiting for the sandbox to be removed.
    pub(super) destroyed: Mutex<Option<oneshot::Sender<()>>>,
}

/// Instance cgroups created in advance.
#[derive(Debug)]
pub(super) struct Pool {
    ready: Vec<LeafNumber>,
    /// Cgroups that the host process is about to create.
    coming: usize,
}

impl Pool {
    /// One was made.
    pub(super) fn put(&mut self, leaf: LeafNumber) {
        self.ready.push(leaf);
        self.coming = self.coming.saturating_sub(1);
    }
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            // The host process fills it by itself at first.
            pool: Mutex::new(Pool {
                ready: Vec::new(),
                coming: INSTANCE_CGROUP_POOL,
            }),
            ended: watch::Sender::new(None),
            activity: Activity::importing(),
            refused: Mutex::default(),
            destroyed: Mutex::default(),
        }
    }
}

/// Memory charged to a sandbox, bytes, without the file cache, which the kernel takes back by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryUse {
    /// Memory of PID 1 and the template.
    pub template: u64,
    /// Memory of everything in it.
    pub sandbox: u64,
}

/// Dumps a sandbox's template.
#[derive(Clone)]
pub struct Dumpable {
    client: Arc<Client>,
    key: Key,
}

impl Dumpable {
    /// Has CRIU dump the template, which leaves it stopped, to an image of this name. Not if it has more memory mappings than
    /// `mappings`.
    ///
    /// # Errors
    /// [`SandboxError`]: its step is "mappings" where there are too many; nothing of a failed dump is left.
    pub async fn dump(&self, image: &str, mappings: u64) -> Result<(), SandboxError> {
        let (key, image) = (self.key, image.to_owned());
        let request = |sequence| Request::Dump(sequence, key, mappings, image);
        self.client.ask(request, Vec::new()).await.map(drop)
    }
}

/// A live sandbox. Dropping it destroys it (asynchronously); [`Sandbox::destroy`] waits.
pub struct Sandbox {
    /// Server's end of the template's control socket (SEQPACKET, non-blocking).
    pub control: Option<OwnedFd>,
    /// Read end of the template's stdout (non-blocking).
    pub stdout: Option<OwnedFd>,
    /// Read end of the template's stderr (non-blocking).
    pub stderr: Option<OwnedFd>,
    /// Its way out, if it was made with one.
    pub outbound: Option<Outbound>,
    pub(super) client: Arc<Client>,
    pub(super) key: Key,
    pub(super) uid: u32,
    template: Leaf,
    /// Its cgroup in the memory hierarchy.
    cgroup: PathBuf,
    pub(super) shared: Arc<Shared>,
}

impl Sandbox {
    pub(super) fn new(
        client: Arc<Client>,
        key: Key,
        name: &str,
        uid: u32,
        interface: u32,
        shared: Arc<Shared>,
        fds: Vec<OwnedFd>,
    ) -> Self {
        let cgroup = client.cgroup(name);
        let mut fds = fds.into_iter();
        Self {
            control: fds.next(),
            stdout: fds.next(),
            stderr: fds.next(),
            outbound: Outbound::new(&client, key, interface, fds),
            template: Leaf::template_of(client.version(), &cgroup),
            cgroup,
            client,
            key,
            uid,
            shared,
        }
    }

    /// A cgroup leaf for one instance to come; kept prepared ahead, so usually at once.
    ///
    /// # Errors
    /// [`SandboxError::Step`] when the kernel refuses another cgroup, or the sandbox is gone.
    pub async fn instance_cgroup(&self) -> Result<InstanceCgroup, SandboxError> {
        let prepared = self.shared.pool.lock().ready.pop();
        let number = match prepared {
            Some(number) => number,
            None => {
                // Creating them may have failed.
                self.shared.pool.lock().coming = 0;
                let key = self.key;
                let request = |sequence| Request::InstanceCgroup(sequence, key);
                match self.client.ask(request, Vec::new()).await? {
                    Answer::InstanceCgroup(number) => number,
                    _ => return Err(SandboxError::Gone),
                }
            }
        };
        Ok(InstanceCgroup::new(self, number))
    }

    /// Prepares more instance cgroups when few are left.
    pub fn prepare_instance_cgroups(&self) {
        let mut pool = self.shared.pool.lock();
        let there = pool.ready.len() + pool.coming;
        if there <= INSTANCE_CGROUP_POOL / 2 {
            let missing = INSTANCE_CGROUP_POOL - there;
            pool.coming += missing;
            drop(pool);
            self.client
                .send(Request::FillPool(self.key, missing as u32));
        }
    }

    /// The function's code is imported.
    pub fn import_is_over(&self) {
        self.shared.activity.end();
    }

    /// Waits until PID 1 is gone (the template ended or was killed) and says how: "the template was killed by signal
    /// 9", "the template exited with status 1", "…ran out of memory". Cancel-safe.
    pub async fn exited(&self) -> String {
        let mut ended = self.shared.ended.subscribe();
        match ended.wait_for(Option::is_some).await {
            Ok(ended) => ended
                .as_ref()
                .map(|ended| ended.how.clone())
                .unwrap_or_default(),
            Err(_) => "the sandbox was destroyed".to_owned(),
        }
    }

    /// Whether the process with this number on the host is one of the sandbox's, by its owner; `None` if there is no such
    /// process.
    pub fn owns(&self, pid: u32) -> Option<bool> {
        let meta = fs::metadata(format!("/proc/{pid}")).ok()?;
        // One that may not be dumped shows as the inner root's, whose uid is the one before.
        Some(meta.uid() == self.uid || meta.uid() + 1 == self.uid)
    }

    /// Has the template dumped.
    pub fn dumpable(&self) -> Dumpable {
        Dumpable {
            client: self.client.clone(),
            key: self.key,
        }
    }

    /// Whether the template's own leaf met its memory limit.
    pub fn template_oom_killed(&self) -> bool {
        match &*self.shared.ended.borrow() {
            Some(ended) => ended.out_of_memory,
            None => self.template.oom_kills() > 0,
        }
    }

    /// Processes that the memory limit of the template's own leaf has killed: the template, or forks that were not moved into
    /// their instance cgroups yet. 0 when it is gone. Reads a file of the kernel's.
    pub fn template_oom_kills(&self) -> u64 {
        self.template.oom_kills()
    }

    /// The template's exit status or the signal that ended it, once the sandbox is gone.
    pub fn template_status(&self) -> Option<(Option<i32>, Option<i32>)> {
        self.shared
            .ended
            .borrow()
            .as_ref()
            .and_then(|ended| ended.template)
    }

    /// Its memory use; `None` if it is gone. Reads four small kernel files.
    pub fn memory(&self) -> Option<MemoryUse> {
        Some(MemoryUse {
            template: usage::memory(self.template.version, &self.template.dir)?,
            sandbox: usage::memory(self.template.version, &self.cgroup)?,
        })
    }

    /// Processes of the template and of its import, without PID 1. Reads kernel files.
    pub fn processes(&self) -> usize {
        usage::processes(&self.template, self.uid)
    }

    /// Stops them, without waiting for it.
    pub fn freeze_template(&self) {
        self.client.send(Request::FreezeTemplate(self.key));
    }

    /// Resumes them.
    pub fn thaw_template(&self) {
        self.client.send(Request::ThawTemplate(self.key));
    }

    /// Kills everything in it, waits until it is gone and removes its cgroups and directories.
    pub async fn destroy(self) {
        let destroyed = self.client.on_destroyed(self.key);
        drop(self);
        // An error means that the host process has ended, and everything with it.
        let _ = destroyed.await;
    }

    pub(super) fn cgroup(&self) -> &Path {
        &self.cgroup
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.client.send(Request::Destroy(self.key));
    }
}
