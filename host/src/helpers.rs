//! Threads that do what takes long, so that the supervisor never waits: each takes one job after the other and reports.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use crate::SandboxError;
use crate::network::Inside;
use crate::protocol::{Key, Reply, Sequence};

/// Most jobs that wait for one thread, but for those that the supervisor itself has: the server has at most some hundred
/// instances in the making and dumps one template at a time. Protects memory and descriptors from one that asks for more and
/// more.
const WAITING_MAX: usize = 4096;

/// What is done with what a thread works on, and what there is to report then.
type Job<S> = Box<dyn FnOnce(&mut S) -> Option<News> + Send>;

/// A thread, which works on an `S`. It ends when this is dropped and everything is done.
pub(crate) struct Helper<S> {
    jobs: mpsc::Sender<Job<S>>,
    waiting: Arc<AtomicUsize>,
}

impl<S: 'static> Helper<S> {
    /// Starts it: on it, `prepare` makes what it works on.
    pub(crate) fn start(
        name: &str,
        reporter: Reporter,
        prepare: impl FnOnce() -> Result<S, String> + Send + 'static,
    ) -> Result<Self, String> {
        let (sender, jobs) = mpsc::channel::<Job<S>>();
        let (prepared, outcome) = mpsc::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let left = waiting.clone();
        let work = move || {
            // The receiver of these waits for them.
            let mut on = match prepare() {
                Ok(on) => on,
                Err(error) => return drop(prepared.send(Err(error))),
            };
            let _ = prepared.send(Ok(()));
            for job in jobs {
                if let Some(news) = job(&mut on) {
                    reporter.report(news);
                }
                left.fetch_sub(1, Ordering::Relaxed);
            }
        };
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(work)
            .map_err(|error| error.to_string())?;
        outcome
            .recv()
            .unwrap_or_else(|error| Err(error.to_string()))?;
        Ok(Self {
            jobs: sender,
            waiting,
        })
    }

    /// Has it do what a request asks for, and answer that.
    ///
    /// # Errors
    /// When too much waits.
    pub(crate) fn ask(
        &self,
        sequence: Sequence,
        what: impl FnOnce(&mut S) -> Result<Reply, SandboxError> + Send + 'static,
    ) -> Result<(), SandboxError> {
        self.take(move |on| {
            let reply = what(on).unwrap_or_else(|error| Reply::Refused(sequence, error));
            Some(News::Say(reply))
        })
    }

    /// Has it do something for the server.
    ///
    /// # Errors
    /// When too much waits.
    pub(crate) fn take(
        &self,
        job: impl FnOnce(&mut S) -> Option<News> + Send + 'static,
    ) -> Result<(), SandboxError> {
        let has_room = self.waiting.load(Ordering::Relaxed) < WAITING_MAX;
        match has_room && self.must(job) {
            true => Ok(()),
            false => Err(SandboxError::step("host", "too much waits to be done")),
        }
    }

    /// Has it do something, however much waits. False when it has ended before its time.
    #[must_use]
    pub(crate) fn must(&self, job: impl FnOnce(&mut S) -> Option<News> + Send + 'static) -> bool {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.jobs.send(Box::new(job)).is_ok()
    }
}

/// What a helper reports.
pub(crate) enum News {
    /// This is for the server.
    Say(Reply),
    /// A sandbox's network namespace was entered, or could not be.
    Entered(Key, io::Result<Inside>),
    /// This socket is for the server, which asked for it.
    Socket(Sequence, OwnedFd),
    /// And so are both ends of this connection.
    Connection(Sequence, [OwnedFd; 2]),
}

/// Where helpers report. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Reporter {
    sender: mpsc::Sender<News>,
    bell: Arc<OwnedFd>,
}

impl Reporter {
    /// The supervisor has the other end, and waits at the bell.
    pub(crate) fn new(sender: mpsc::Sender<News>, bell: Arc<OwnedFd>) -> Self {
        Self { sender, bell }
    }

    /// Reports.
    fn report(&self, news: News) {
        // The supervisor may have ended.
        let _ = self.sender.send(news);
        // A full counter (2⁶⁴ unread rings) would be a bell that rings already.
        let _ = rustix::io::write(&*self.bell, &1_u64.to_ne_bytes());
    }
}
