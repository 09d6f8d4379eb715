//! Threads that do what takes long, so that the keeper never waits: each takes one job after the other and reports.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use crate::SandboxError;
use crate::network::Attached;
use crate::protocol::{Counters, Key, LeafNumber, Sequence};

/// Most jobs that wait for one thread. The server has at most some hundred instances in the making and dumps one template at
/// a time: protects memory and descriptors from one that asks for more and more.
const WAITING_MAX: usize = 4096;

/// A thread. It ends when this is dropped.
pub(crate) struct Helper<Job> {
    jobs: mpsc::Sender<Job>,
    waiting: Arc<AtomicUsize>,
}

impl<Job: Send + 'static> Helper<Job> {
    /// Starts it: it runs `prepare` once and `run` for each job.
    pub(crate) fn start(
        name: &str,
        prepare: impl FnOnce() + Send + 'static,
        mut run: impl FnMut(Job) + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, jobs) = mpsc::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let left = waiting.clone();
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                prepare();
                for job in jobs {
                    run(job);
                    left.fetch_sub(1, Ordering::Relaxed);
                }
            })?;
        Ok(Self {
            jobs: sender,
            waiting,
        })
    }

    /// Has it do one more.
    ///
    /// # Errors
    /// When too many wait.
    pub(crate) fn take(&self, job: Job) -> Result<(), SandboxError> {
        let busy = || SandboxError::step("host", "too much waits to be done");
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= WAITING_MAX {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(busy());
        }
        self.jobs.send(job).map_err(|_| busy())
    }
}

/// What a helper reports.
pub(crate) enum News {
    /// An instance could not be moved into its cgroup.
    AttachFailed(Key, LeafNumber, String),
    /// Something was done with an image, or not.
    Image(Sequence, Result<(), SandboxError>),
    /// A sandbox has a network, or cannot have it.
    Attached(Key, Result<Attached, SandboxError>),
    /// Nothing is left of a sandbox's network.
    Detached(Key),
    /// Something about a network was done, or counted, or not.
    Network(Sequence, Result<Option<Counters>, SandboxError>),
    /// A socket was made in a sandbox's network namespace, or not.
    Socket(Sequence, Result<OwnedFd, SandboxError>),
}

/// Where helpers report. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Reporter {
    sender: mpsc::Sender<News>,
    bell: Arc<OwnedFd>,
}

impl Reporter {
    /// The keeper has the other end, and waits at the bell.
    pub(crate) fn new(sender: mpsc::Sender<News>, bell: Arc<OwnedFd>) -> Self {
        Self { sender, bell }
    }

    /// Reports.
    pub(crate) fn report(&self, news: News) {
        // The keeper may have ended.
        let _ = self.sender.send(news);
        // A full counter (2⁶⁴ unread rings) would be a bell that rings already.
        let _ = rustix::io::write(&*self.bell, &1_u64.to_ne_bytes());
    }
}
