//! The sandbox thread: owns the state of all sandboxes and waits for messages, init's reports and process exits.
//!
//! A thread instead of a task, because a sandbox dies with the thread that spawned it (`PR_SET_PDEATHSIG`). Nothing
//! here blocks on a sandbox; retries are put into a list with a time.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use hearth_init::criu::CriuProgram;
use rustix::event::epoll::{self, EventData, EventFlags};
use tokio::sync::oneshot;

use super::attach::Attach;
use super::cgroup::{Leaf, Top};
use super::jobs::{Job, RETRIES, RETRY, Scheduled};
use super::live::LiveSandbox;
use super::mailbox::{Key, Mailbox, Message};
use super::prewarmed::{PrewarmedBoard, PrewarmedSandboxes};
use super::{INSTANCE_CGROUP_POOL, SandboxError};

/// A sandbox that is not ready after this long is given up. Building one takes milliseconds; protects callers from a
/// file system that hangs.
pub(super) const SETUP_TIMEOUT: Duration = Duration::from_secs(30);
/// Delay between ordering a sandbox and creating its first instance cgroup. Doing it immediately would delay the
/// sandbox, which the kernel wakes on this thread's CPU.
pub(super) const FIRST_INSTANCE_CGROUP: Duration = Duration::from_millis(3);
/// Delay between a sandbox becoming ready and creating its other instance cgroups: the template's first fork goes
/// first.
pub(super) const OTHER_INSTANCE_CGROUPS: Duration = Duration::from_millis(5);
/// Events taken at once.
const EVENTS: usize = 64;
/// The mailbox's event; sandboxes' are twice their key, plus one for PID 1's end.
const BELL: u64 = u64::MAX;

/// The thread's state.
pub(super) struct Thread {
    pub(super) init: PathBuf,
    /// Where roots are made; removed at the end.
    pub(super) dir: PathBuf,
    pub(super) top: Top,
    /// By which templates are dumped and restored.
    pub(super) criu: Option<CriuProgram>,
    pub(super) attach: mpsc::Sender<Attach>,
    pub(super) mailbox: Mailbox,
    pub(super) epoll: OwnedFd,
    pub(super) live: HashMap<Key, LiveSandbox>,
    pub(super) next: Key,
    pub(super) prewarmed: PrewarmedSandboxes,
    pub(super) jobs: Vec<Scheduled>,
    /// No sandbox will be asked for any more: the thread ends with the last one.
    pub(super) closing: bool,
    /// Who waits for that.
    pub(super) closed: Vec<oneshot::Sender<()>>,
}

/// Starts the thread.
pub fn start(
    init: PathBuf,
    dir: PathBuf,
    top: Top,
    attach: mpsc::Sender<Attach>,
    criu: Option<CriuProgram>,
    board: PrewarmedBoard,
) -> io::Result<Mailbox> {
    let (mailbox, messages, bell) = Mailbox::new()?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, &*bell, EventData::new_u64(BELL), EventFlags::IN)?;
    let thread = Thread {
        init,
        dir,
        top,
        criu,
        attach,
        mailbox: mailbox.clone(),
        epoll,
        live: HashMap::new(),
        next: 0,
        prewarmed: PrewarmedSandboxes::new(board),
        jobs: Vec::new(),
        closing: false,
        closed: Vec::new(),
    };
    std::thread::Builder::new()
        .name("hearth-sandbox".to_owned())
        .spawn(move || thread.run(&messages, &bell))?;
    Ok(mailbox)
}

impl Thread {
    fn run(mut self, messages: &mpsc::Receiver<Message>, bell: &Arc<OwnedFd>) {
        let mut events = Vec::with_capacity(EVENTS);
        while !self.done() {
            events.clear();
            match epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut events),
                self.timeout().as_ref(),
            ) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => {
                    // Cannot happen with a valid descriptor; ending kills every sandbox, which is the safe side.
                    tracing::error!(%error, "the sandbox thread cannot wait");
                    break;
                }
            }
            for event in &events {
                match event.data.u64() {
                    BELL => {
                        let mut count = [0; 8];
                        // Nothing to read means that it was read already.
                        let _ = rustix::io::read(bell, &mut count);
                    }
                    data if data % 2 == 0 => self.on_report(data / 2),
                    data => self.on_exit(data / 2),
                }
            }
            while let Ok(message) = messages.try_recv() {
                self.handle(message);
            }
            self.run_due_jobs();
        }
        if let Err(error) = self.top.remove() {
            tracing::warn!(%error, "cannot remove the sandboxes' cgroup");
        }
        // The directory may have been removed with the one it is in.
        let _ = std::fs::remove_dir_all(&self.dir);
        for reply in self.closed {
            // It may not be waited for any more.
            let _ = reply.send(());
        }
    }

    /// Nothing is left, and nothing will come.
    fn done(&self) -> bool {
        let reaping = |job: &Scheduled| matches!(job.job, Job::Reap(_) | Job::ReapUnheld(_));
        self.closing && self.live.is_empty() && !self.jobs.iter().any(reaping)
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Create(spec, reply) => self.create(*spec, reply),
            Message::KeepPrewarmed(spec) => self.keep_prewarmed(&spec),
            Message::EndPrewarmed(runtime_name) => self.end_prewarmed(runtime_name),
            Message::InstanceCgroup(key, reply) => {
                let made = match self.live.get_mut(&key) {
                    Some(live) if !live.destroying => live
                        .instance_cgroup()
                        .map_err(|error| SandboxError::step("cgroup", error)),
                    _ => Err(SandboxError::Gone),
                };
                if let Err(Ok(leaf)) = reply.send(made) {
                    // Nothing waits for it any more.
                    leaf.remove();
                }
            }
            Message::FillPool(key) => self.fill_pool(key, INSTANCE_CGROUP_POOL),
            Message::Kill(key, leaf) => {
                leaf.kill();
                self.sweep(key);
            }
            Message::Release(key, leaf) => self.remove_instance_cgroup(key, leaf, 0),
            Message::Destroy(key, reply) => self.destroy(key, reply),
            Message::Orphaned => {
                self.closing = true;
                self.end_all_prewarmed();
            }
            Message::Shutdown(reply) => {
                self.closing = true;
                self.closed.push(reply);
                let keys: Vec<_> = self.live.keys().copied().collect();
                for key in keys {
                    self.destroy(key, None);
                }
            }
        }
    }

    pub(super) fn remove_instance_cgroup(&mut self, key: Key, leaf: Leaf, tries: u32) {
        if !self.live.contains_key(&key) {
            return; // removed with its sandbox
        }
        leaf.kill();
        let removed = leaf.remove();
        // Once before the instance is gone would be too early to find all of its strays, and so is only the first time.
        if removed || tries == 0 {
            self.sweep(key);
        }
        if !removed {
            if tries < RETRIES {
                self.again(tries, Job::RemoveInstanceCgroup(key, leaf));
            } else {
                tracing::warn!(
                    "cannot kill an instance; its cgroup remains until its sandbox is removed"
                );
            }
        }
    }

    pub(super) fn sweep(&mut self, key: Key) {
        if self.live.get(&key).is_some_and(|live| !live.sweep()) {
            self.later(RETRY.0, 0, Job::Sweep(key));
        }
    }

    /// Creates instance cgroups until `instance_cgroups` are unused.
    pub(super) fn fill_pool(&mut self, key: Key, instance_cgroups: usize) {
        let Some(live) = self.live.get_mut(&key) else {
            return;
        };
        while !live.destroying && live.pool.lock().len() < instance_cgroups {
            match live.instance_cgroup() {
                Ok(leaf) => live.pool.lock().push(leaf),
                // The next caller gets the error.
                Err(_) => return,
            }
        }
    }
}
