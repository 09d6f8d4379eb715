//! The sandbox thread: owns every sandbox's state, and waits for messages, init's reports and deaths at once.
//!
//! A thread and not a task: a sandbox dies with the thread that spawned it (`PR_SET_PDEATHSIG`). Nothing here waits for a
//! sandbox; what has to be tried again is put into a list with a time.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Child;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use hearth_init::{MAX_REPORT, Report, wire};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::time::Timespec;
use tokio::sync::oneshot;

use super::attach::Attach;
use super::cgroup::{Leaf, Top};
use super::live::{Live, Waiting};
use super::mailbox::{Key, Mailbox, Message};
use super::{CELL_POOL, Sandbox, SandboxError, SandboxSpec};

/// A sandbox that is not ready after this long is given up. Building one takes milliseconds; protects callers from a
/// file system that hangs.
const SETUP_PATIENCE: Duration = Duration::from_secs(30);
/// First and longest pause before something is tried again.
const RETRY: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(250));
/// Times a removal is tried, about ten seconds in all. What is left then is cleared at the next start.
const RETRIES: u32 = 48;
/// Events taken at once.
const EVENTS: usize = 64;
/// The mailbox's event; sandboxes' are twice their key, plus one for PID 1's end.
const BELL: u64 = u64::MAX;

/// Something to be done at a later time.
enum Job {
    Reap(Child),
    Sweep(Key),
    RemoveCell(Key, Leaf),
    RemoveSandbox(Key),
    GiveUpStarting(Key),
}

struct Scheduled {
    at: Instant,
    tries: u32,
    job: Job,
}

/// The thread's state.
struct Thread {
    init: PathBuf,
    /// Where roots are made; removed at the end.
    dir: PathBuf,
    top: Top,
    attach: mpsc::Sender<Attach>,
    mailbox: Mailbox,
    epoll: OwnedFd,
    live: HashMap<Key, Live>,
    next: Key,
    jobs: Vec<Scheduled>,
    /// No sandbox will be asked for any more: the thread ends with the last one.
    closing: bool,
    /// Who waits for that.
    closed: Vec<oneshot::Sender<()>>,
}

/// Starts the thread.
pub fn start(
    init: PathBuf,
    dir: PathBuf,
    top: Top,
    attach: mpsc::Sender<Attach>,
) -> io::Result<Mailbox> {
    let (mailbox, messages, bell) = Mailbox::new()?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, &*bell, EventData::new_u64(BELL), EventFlags::IN)?;
    let thread = Thread {
        init,
        dir,
        top,
        attach,
        mailbox: mailbox.clone(),
        epoll,
        live: HashMap::new(),
        next: 0,
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
                    data if data % 2 == 0 => self.hear(data / 2),
                    data => self.bury(data / 2),
                }
            }
            while let Ok(message) = messages.try_recv() {
                self.handle(message);
            }
            self.run_due_jobs();
        }
        if let Err(error) = self.top.remove() {
            tracing::warn!(%error, "cannot remove the cgroup of the sandboxes");
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
        let reaping = |job: &Scheduled| matches!(job.job, Job::Reap(_));
        self.closing && self.live.is_empty() && !self.jobs.iter().any(reaping)
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Create(spec, reply) => self.create(*spec, reply),
            Message::Cell(key, reply) => {
                let made = match self.live.get_mut(&key) {
                    Some(live) if !live.destroying => live
                        .cell()
                        .map_err(|error| SandboxError::step("cgroup", error)),
                    _ => Err(SandboxError::step("cgroup", "the sandbox is gone")),
                };
                if let Err(Ok(leaf)) = reply.send(made) {
                    // Nobody waits for it any more.
                    leaf.remove();
                }
            }
            Message::FillPool(key) => self.fill_pool(key),
            Message::Kill(key, leaf) => {
                leaf.kill();
                self.sweep(key);
            }
            Message::Release(key, leaf) => self.remove_cell(key, leaf, 0),
            Message::Destroy(key, reply) => self.destroy(key, reply),
            Message::Orphaned => self.closing = true,
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

    fn create(&mut self, spec: SandboxSpec, reply: oneshot::Sender<Result<Sandbox, SandboxError>>) {
        let key = self.next;
        self.next += 1;
        let started = if self.closing && !self.closed.is_empty() {
            Err(SandboxError::shut_down())
        } else {
            // The key makes a sandbox's name another one than that of a predecessor that is still being removed.
            let name = format!("{}.{key}", spec.id);
            Live::start(&self.init, &self.dir, &self.top, &name, spec)
        };
        let (mut live, ends) = match started {
            Ok(started) => started,
            Err(error) => {
                // It may not be waited for any more.
                let _ = reply.send(Err(error));
                return;
            }
        };
        let watched = live.control.as_ref().map(|control| {
            epoll::add(
                &self.epoll,
                control,
                EventData::new_u64(key * 2),
                EventFlags::IN,
            )
        });
        if let Some(Err(error)) = watched {
            let _ = reply.send(Err(SandboxError::step("epoll", error)));
            live.control = None;
        } else {
            live.waiting = Some(Waiting { reply, ends });
        }
        let unwatched = live.control.is_none();
        self.live.insert(key, live);
        if unwatched {
            self.lose_init(key);
        } else {
            self.later(SETUP_PATIENCE, 0, Job::GiveUpStarting(key));
        }
    }

    /// Reads what init has to say.
    fn hear(&mut self, key: Key) {
        let mut buffer = [0; MAX_REPORT];
        loop {
            let Some(live) = self.live.get_mut(&key) else {
                return;
            };
            let Some(control) = &live.control else { return };
            let (length, mut fds) = match wire::receive(control, &mut buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => (0, Vec::new()), // reset: gone
            };
            if length == 0 {
                live.control = None; // closing it takes it out of epoll
                self.lose_init(key);
                return;
            }
            match serde_json::from_slice(&buffer[..length]) {
                Ok(Report::Spawned) => self.spawned(key, fds.pop()),
                Ok(Report::Ready) => self.ready(key),
                Ok(Report::Failed { step, detail }) => {
                    self.fail(key, SandboxError::Step { step, detail });
                }
                Ok(Report::TemplateEnded { code, signal }) => {
                    live.template_end = Some((code, signal));
                }
                Err(error) => self.fail(key, SandboxError::step("report", error)),
            }
        }
    }

    fn spawned(&mut self, key: Key, pidfd: Option<OwnedFd>) {
        let Some(live) = self.live.get_mut(&key) else {
            return;
        };
        let watched = pidfd
            .as_ref()
            .ok_or(rustix::io::Errno::BADF)
            .and_then(|pidfd| {
                epoll::add(
                    &self.epoll,
                    pidfd,
                    EventData::new_u64(key * 2 + 1),
                    EventFlags::IN,
                )
            });
        live.init = pidfd;
        if live.destroying {
            live.kill();
        }
        if let Some(builder) = live.builder.take() {
            self.later(RETRY.0, 0, Job::Reap(builder));
        }
        if let Err(error) = watched {
            self.fail(key, SandboxError::step("pidfd", error));
        }
    }

    fn ready(&mut self, key: Key) {
        let Some(live) = self.live.get_mut(&key) else {
            return;
        };
        let Some(Waiting { reply, ends }) = live.waiting.take() else {
            return;
        };
        let sandbox = Sandbox {
            control: Some(ends.control),
            stdout: Some(ends.stdout),
            stderr: Some(ends.stderr),
            key,
            uid: live.uid,
            template: live.group.template(),
            pool: Arc::clone(&live.pool),
            ended: live.ended.subscribe(),
            mailbox: self.mailbox.clone(),
            attach: self.attach.clone(),
        };
        // When nobody waits any more, the sandbox is dropped here, and its drop has it destroyed.
        drop(reply.send(Ok(sandbox)));
        self.fill_pool(key);
    }

    /// The sandbox cannot be made: says so and removes what there is of it.
    fn fail(&mut self, key: Key, error: SandboxError) {
        if let Some(live) = self.live.get_mut(&key)
            && let Some(Waiting { reply, .. }) = live.waiting.take()
        {
            // It may not be waited for any more.
            let _ = reply.send(Err(error));
        }
        self.destroy(key, None);
    }

    /// Init's socket has ended. PID 1's pidfd says when it is gone; without one there is only the builder.
    fn lose_init(&mut self, key: Key) {
        let Some(live) = self.live.get_mut(&key) else {
            return;
        };
        if live.init.is_none() && !live.gone {
            live.gone = true;
            if let Some(builder) = live.builder.take() {
                self.later(Duration::ZERO, 0, Job::Reap(builder));
            }
            self.fail_silent_init(key);
        } else if live.waiting.is_some() {
            self.fail_silent_init(key);
        }
    }

    fn fail_silent_init(&mut self, key: Key) {
        self.fail(
            key,
            SandboxError::step("start", "hearth-init ended without a word"),
        );
    }

    /// PID 1 is dead, and so is everything that was inside.
    fn bury(&mut self, key: Key) {
        // What it said last may still be in the socket.
        self.hear(key);
        let Some(live) = self.live.get_mut(&key) else {
            return;
        };
        if live.init.is_none() {
            return;
        }
        let how = live.reap();
        live.ended.send_replace(Some(how));
        live.gone = true;
        live.control = None;
        if live.destroying {
            self.remove_sandbox(key, 0);
        }
    }

    fn destroy(&mut self, key: Key, reply: Option<oneshot::Sender<()>>) {
        let Some(live) = self.live.get_mut(&key) else {
            if let Some(reply) = reply {
                // It may not be waited for any more.
                let _ = reply.send(());
            }
            return;
        };
        live.destroyed.extend(reply);
        if !std::mem::replace(&mut live.destroying, true) {
            live.kill();
        }
        if live.gone {
            self.remove_sandbox(key, 0);
        }
    }

    fn remove_sandbox(&mut self, key: Key, tries: u32) {
        let Some(live) = self.live.get(&key) else {
            return;
        };
        match live.remove() {
            Err(_) if tries < RETRIES => {
                self.again(tries, Job::RemoveSandbox(key));
                return;
            }
            Err(error) => tracing::warn!(%error, "cannot remove a sandbox"),
            Ok(()) => {}
        }
        if let Some(live) = self.live.remove(&key) {
            for reply in live.destroyed {
                // It may not be waited for any more.
                let _ = reply.send(());
            }
        }
    }

    fn remove_cell(&mut self, key: Key, leaf: Leaf, tries: u32) {
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
                self.again(tries, Job::RemoveCell(key, leaf));
            } else {
                tracing::warn!("an instance does not die; its cgroup stays until its sandbox goes");
            }
        }
    }

    fn sweep(&mut self, key: Key) {
        if self.live.get(&key).is_some_and(|live| !live.sweep()) {
            self.later(RETRY.0, 0, Job::Sweep(key));
        }
    }

    fn fill_pool(&mut self, key: Key) {
        let Some(live) = self.live.get_mut(&key) else {
            return;
        };
        while !live.destroying && live.pool.lock().len() < CELL_POOL {
            match live.cell() {
                Ok(leaf) => live.pool.lock().push(leaf),
                // Whoever needs one will be told.
                Err(_) => return,
            }
        }
    }

    fn later(&mut self, after: Duration, tries: u32, job: Job) {
        self.jobs.push(Scheduled {
            at: Instant::now() + after,
            tries,
            job,
        });
    }

    fn again(&mut self, tries: u32, job: Job) {
        let pause = RETRY.0.saturating_mul(1 << tries.min(16)).min(RETRY.1);
        self.later(pause, tries + 1, job);
    }

    fn timeout(&self) -> Option<Timespec> {
        let at = self.jobs.iter().map(|job| job.at).min()?;
        let left = at.saturating_duration_since(Instant::now());
        Timespec::try_from(left).ok()
    }

    fn run_due_jobs(&mut self) {
        let now = Instant::now();
        let (due, left) = std::mem::take(&mut self.jobs)
            .into_iter()
            .partition::<Vec<_>, _>(|job| job.at <= now);
        self.jobs = left;
        for Scheduled { tries, job, .. } in due {
            match job {
                Job::Reap(mut builder) => {
                    if let Ok(None) = builder.try_wait() {
                        self.again(tries, Job::Reap(builder));
                    }
                }
                Job::Sweep(key) => self.sweep(key),
                Job::RemoveCell(key, leaf) => self.remove_cell(key, leaf, tries),
                Job::RemoveSandbox(key) => self.remove_sandbox(key, tries),
                Job::GiveUpStarting(key) => {
                    if let Some(live) = self.live.get_mut(&key)
                        && (live.waiting.is_some() || live.builder.is_some())
                    {
                        live.kill_builder();
                        let detail = format!("not ready after {} s", SETUP_PATIENCE.as_secs());
                        self.fail(key, SandboxError::step("start", detail));
                    }
                }
            }
        }
    }
}
