//! The way out of sandboxes that have one: an interface each, rules, addresses that names resolved to, counters.
//!
//! ```text
//! sandbox ── eth0 ═ s<n> ── gateway ── up ═ hearth<n> ── the host's own network namespace
//! ```
//! The gateway is a network namespace that this process's threads alone have, and no file: everything in it ends with the
//! process, however that ends. In the host's own namespace there are one interface, which ends with its other end, and one
//! table, which ends with the socket that made it. `server/docs/network.md` explains the design.
//!
//! - [`gateway`]: the namespace, and what is done in it. [`sandbox`]: what is done in a sandbox's.
//! - [`rules`]: what may pass. [`ranges`]: what never may. [`address`]: who has which address.
//! - [`connections`]: connections that are under way. [`refusals`]: how refused packets are reported.
//! - [`nft`], [`link`]: the kernel's interfaces, over [`netlink`].
//!
//! On two threads: one for everything that somebody waits for, and one for removals, for which the kernel takes long.

mod address;
mod connections;
mod gateway;
mod link;
mod netlink;
mod nft;
mod ranges;
mod refusals;
mod rules;
mod sandbox;
mod sys;

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

pub use self::address::NetworkSettings;
use self::connections::Connections;
use self::gateway::{Gateway, Leftover, Remover};
use crate::SandboxError;
use crate::helpers::{News, Reporter};
use crate::protocol::{KernelPolicy, Key, Resolved, Sequence};

/// Most requests that wait. Protects the host process's memory from a server that asks faster than the kernel answers.
const WAITING_MAX: usize = 4096;

/// What a sandbox got.
#[derive(Debug)]
pub(crate) struct Attached {
    /// Number of its interface in the gateway.
    pub(crate) interface: u32,
    /// Its UDP socket and its TCP listener for names.
    pub(crate) resolver: [OwnedFd; 2],
}

/// What is to be done.
enum Job {
    /// From now on, say here how it went.
    ReportTo(Reporter),
    Attach(Key, OwnedFd, Box<KernelPolicy>),
    Detach(Key),
    SetPolicy(Sequence, Key, Box<KernelPolicy>),
    Allow(Sequence, Key, Resolved),
    Count(Sequence, Key),
    Socket(Sequence, Key, Purpose),
}

/// What a TCP socket in a sandbox's network namespace is for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose {
    /// To listen at this port of [`BROKER`](crate::protocol::BROKER).
    Listen(u16),
    /// To connect to there.
    Dial(SocketAddr),
}

/// What is to be removed.
enum Removal {
    Of(Leftover, Reporter),
    /// There may be connections in the host's own namespace.
    ReachHost(Connections),
}

/// The threads.
pub(crate) struct Network {
    /// None once it ends.
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    waiting: Arc<AtomicUsize>,
    /// Where refused packets are reported; for the server.
    refusals: Option<OwnedFd>,
}

impl Network {
    /// Makes the gateway. Changes nothing in the host's own network namespace.
    ///
    /// # Errors
    /// What this host lacks.
    pub(crate) fn open(settings: &NetworkSettings) -> Result<Self, String> {
        let (sender, jobs) = mpsc::channel();
        let (opened, outcome) = mpsc::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let (settings, left) = (settings.clone(), waiting.clone());
        let thread = std::thread::Builder::new()
            .name("hearth-network".to_owned())
            .spawn(move || {
                let gateway = Gateway::open(&settings).and_then(|gateway| {
                    let failed = |error: io::Error| error.to_string();
                    let refusals = refusals::open(rules::GROUP).map_err(failed)?;
                    let remover = gateway.remover().map_err(failed)?;
                    Ok((gateway, refusals, remover))
                });
                match gateway {
                    Ok((gateway, refusals, remover)) => {
                        // Its receiver waits for it.
                        let _ = opened.send(Ok(refusals));
                        work(gateway, remover, &jobs, &left);
                    }
                    Err(error) => drop(opened.send(Err(error))),
                }
            })
            .map_err(|error| error.to_string())?;
        let refusals = outcome
            .recv()
            .unwrap_or_else(|error| Err(error.to_string()))?;
        Ok(Self {
            jobs: Some(sender),
            thread: Some(thread),
            waiting,
            refusals: Some(refusals),
        })
    }

    /// The socket on which the kernel reports what it refused; once.
    pub(crate) fn take_refusals(&mut self) -> Option<OwnedFd> {
        self.refusals.take()
    }

    /// Says from now on how it went.
    pub(crate) fn report_to(&self, reporter: Reporter) {
        self.send(Job::ReportTo(reporter));
    }

    /// Gives the sandbox with this PID 1 a network: [`News::Attached`] follows, unless it is false.
    #[must_use]
    pub(crate) fn attach(&self, key: Key, init: OwnedFd, policy: KernelPolicy) -> bool {
        self.send(Job::Attach(key, init, Box::new(policy)))
    }

    /// Takes it away again: [`News::Detached`] follows, unless it is false.
    #[must_use]
    pub(crate) fn detach(&self, key: Key) -> bool {
        self.send(Job::Detach(key))
    }

    /// Replaces a policy: [`News::Network`] follows, as for the next two.
    pub(crate) fn set_policy(
        &self,
        sequence: Sequence,
        key: Key,
        policy: KernelPolicy,
    ) -> Result<(), SandboxError> {
        self.ask(Job::SetPolicy(sequence, key, Box::new(policy)))
    }

    /// Allows an address.
    pub(crate) fn allow(
        &self,
        sequence: Sequence,
        key: Key,
        resolved: Resolved,
    ) -> Result<(), SandboxError> {
        self.ask(Job::Allow(sequence, key, resolved))
    }

    /// Asks for counters.
    pub(crate) fn count(&self, sequence: Sequence, key: Key) -> Result<(), SandboxError> {
        self.ask(Job::Count(sequence, key))
    }

    /// Asks for a socket: [`News::Socket`] follows.
    pub(crate) fn socket(
        &self,
        sequence: Sequence,
        key: Key,
        purpose: Purpose,
    ) -> Result<(), SandboxError> {
        self.ask(Job::Socket(sequence, key, purpose))
    }

    fn ask(&self, job: Job) -> Result<(), SandboxError> {
        if self.waiting.fetch_add(1, Ordering::AcqRel) >= WAITING_MAX {
            self.waiting.fetch_sub(1, Ordering::AcqRel);
            return Err(SandboxError::step("network", "too much is to be done"));
        }
        match self.send(job) {
            true => Ok(()),
            false => Err(SandboxError::step("network", "its thread has ended")),
        }
    }

    /// False when the thread has ended before its time.
    fn send(&self, job: Job) -> bool {
        let jobs = self.jobs.as_ref();
        jobs.is_some_and(|jobs| jobs.send(job).is_ok())
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            // It may have panicked.
            let _ = thread.join();
        }
    }
}

/// Does what is to be done until the last sandbox is gone and nobody is left who could ask.
fn work(mut gateway: Gateway, remover: Remover, jobs: &mpsc::Receiver<Job>, waiting: &AtomicUsize) {
    let mut reporter = None;
    let report = |reporter: &Option<Reporter>, news: News| {
        if let Some(reporter) = reporter {
            reporter.report(news);
        }
    };
    std::thread::scope(|scope| {
        let (removals, left) = mpsc::channel();
        let spawned = std::thread::Builder::new()
            .name("hearth-unlink".to_owned())
            .spawn_scoped(scope, move || remove(remover, &left));
        if let Err(error) = spawned {
            tracing::error!(%error, "no thread for the network");
            return;
        }
        for job in jobs {
            let (sequence, done) = match job {
                Job::ReportTo(to) => {
                    reporter = Some(to);
                    continue;
                }
                Job::Attach(key, init, policy) => {
                    let attached = gateway.join().and_then(|host| {
                        if let Some(host) = host {
                            let _ = removals.send(Removal::ReachHost(host));
                        }
                        gateway.attach(key, &init, &policy)
                    });
                    report(&reporter, News::Attached(key, attached));
                    continue;
                }
                Job::Detach(key) => {
                    match (gateway.detach(key), &reporter) {
                        (Some(leftover), Some(to)) => {
                            let _ = removals.send(Removal::Of(leftover, to.clone()));
                        }
                        _ => report(&reporter, News::Detached(key)),
                    }
                    continue;
                }
                Job::SetPolicy(sequence, key, policy) => {
                    (sequence, gateway.set_policy(key, &policy).map(|()| None))
                }
                Job::Allow(sequence, key, resolved) => {
                    (sequence, gateway.allow(key, &resolved).map(|()| None))
                }
                Job::Count(sequence, key) => (sequence, gateway.count(key).map(Some)),
                Job::Socket(sequence, key, purpose) => {
                    waiting.fetch_sub(1, Ordering::AcqRel);
                    report(
                        &reporter,
                        News::Socket(sequence, gateway.socket(key, purpose)),
                    );
                    continue;
                }
            };
            waiting.fetch_sub(1, Ordering::AcqRel);
            report(&reporter, News::Network(sequence, done));
        }
        gateway.close();
    });
}

/// Removes what is left of sandboxes.
fn remove(mut remover: Remover, removals: &mpsc::Receiver<Removal>) {
    for removal in removals {
        match removal {
            Removal::ReachHost(host) => remover.reach_host(host),
            Removal::Of(leftover, reporter) => {
                remover.remove(&leftover);
                reporter.report(News::Detached(leftover.key));
            }
        }
    }
}
