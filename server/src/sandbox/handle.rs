//! A live sandbox as its owner holds it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, mpsc};

use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

use super::attach::Attach;
use super::cgroup::Leaf;
use super::live::Ended;
use super::mailbox::{Key, Mailbox, Message};
use super::{Dumpable, INSTANCE_CGROUP_POOL, InstanceCgroup, SandboxError};

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
    pub(super) dumpable: Dumpable,
    pub(super) key: Key,
    pub(super) uid: u32,
    pub(super) template: Leaf,
    /// Filled by the thread, emptied by [`Sandbox::instance_cgroup`].
    pub(super) pool: Arc<Mutex<Vec<Leaf>>>,
    pub(super) ended: watch::Receiver<Option<Ended>>,
    pub(super) mailbox: Mailbox,
    pub(super) attach: mpsc::Sender<Attach>,
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

    /// Processes that the memory limit of the template's own leaf has killed: the template, or forks that were not moved into
    /// their instance cgroups yet. 0 when it is gone. Reads a file of the kernel's.
    pub fn oom_kills_of_template(&self) -> u64 {
        self.template.oom_kills()
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
