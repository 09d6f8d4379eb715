//! Ports of functions and chains: whose each is. The host process opens them, or the kernel steers their connections
//! to one listener ([`crate::ingress`]); [`crate::triggers`] serves them.
//!
//! A change of a function or chain claims its ports first and takes them over once it is stored, in one step: at no time
//! does a port belong to two of them or, if it stays, to none. [`links`] has those that subscribe to a broker instead.

mod claim;
mod counters;
mod entry;
mod error;
mod links;

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use hearth_host::SandboxError;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::config::Brokers;
use crate::ingress::Ingress;
use crate::model::{Port, PortLimits, PortOwner, PortTrigger, Protocol};
use crate::sandbox::Host;

pub use self::claim::Claim;
pub use self::counters::{MessageCounters, MessageCounts};
use self::entry::Entry;
pub use self::entry::{Begun, Opened, PortState};
pub use self::error::PortError;
pub use self::links::{Link, LinkState};

/// How often it is tried again to open what another process has, after a restart.
const RETRY: Duration = Duration::from_secs(5);
/// How long a socket is served that had the port before its connections were steered: longer than a handshake takes.
const LINGER: Duration = Duration::from_secs(1);

/// The ports of all functions and chains. Cheap to clone.
#[derive(Clone)]
pub struct PortTable(Arc<Inner>);

struct Inner {
    host: Host,
    ingress: Ingress,
    range: RangeInclusive<u16>,
    entries: Mutex<HashMap<Port, Entry>>,
    brokers: Arc<Brokers>,
    links: Mutex<Vec<Arc<Link>>>,
    begun: mpsc::UnboundedSender<Begun>,
}

impl PortTable {
    /// No port belongs to anyone yet. What is opened, and what is subscribed to, comes out of the receiver. Needs a runtime.
    pub fn start(
        host: Host,
        ingress: Ingress,
        range: RangeInclusive<u16>,
        brokers: Arc<Brokers>,
    ) -> (Self, mpsc::UnboundedReceiver<Begun>) {
        let (begun, receiver) = mpsc::unbounded_channel();
        let table = Self(Arc::new(Inner {
            host,
            ingress,
            range,
            entries: Mutex::default(),
            brokers,
            links: Mutex::default(),
            begun,
        }));
        (table, receiver)
    }

    /// What the kernel does for them.
    pub fn ingress(&self) -> &Ingress {
        &self.0.ingress
    }

    /// Who has a port, and what it is to do.
    pub fn owner(&self, port: Port) -> Option<(PortOwner, PortTrigger)> {
        let entries = self.0.entries.lock();
        let entry = entries.get(&port)?;
        Some((entry.owner.clone(), entry.trigger.clone()?))
    }

    /// What is counted of a port's messages.
    pub fn counters(&self, port: Port) -> Option<Arc<MessageCounters>> {
        let entries = self.0.entries.lock();
        Some(entries.get(&port)?.counters.clone())
    }

    /// Ports of an owner that are not open, and why.
    pub fn failed(&self, owner: &PortOwner) -> Vec<PortState> {
        let entries = self.0.entries.lock();
        let of_owner = entries
            .iter()
            .filter(|(_, entry)| entry.owner == *owner && entry.failed.is_some());
        let mut all: Vec<_> = of_owner
            .map(|(port, entry)| PortState {
                port: *port,
                failed: entry.failed.clone(),
            })
            .collect();
        all.sort_by_key(|state| state.port);
        all
    }

    /// How many there are, and how many of them are not open.
    pub fn counts(&self) -> (usize, usize) {
        let entries = self.0.entries.lock();
        let failed = entries.values().filter(|entry| entry.failed.is_some());
        (entries.len(), failed.count())
    }

    /// Claims ports for somebody. Those that it has already stay as they are until [`Claim::take_over`].
    ///
    /// # Errors
    /// The first one that it cannot have, by its place in `wanted`; nothing is claimed then.
    pub async fn claim(
        &self,
        owner: &PortOwner,
        wanted: &[PortTrigger],
        limits: PortLimits,
    ) -> Result<Claim, (usize, PortError)> {
        let mut claim = Claim::new(self, owner, wanted, limits);
        for (index, trigger) in wanted.iter().enumerate() {
            if let Some(broker) = trigger.broker() {
                let known = self.check_broker(owner, broker);
                known.map_err(|error| (index, error))?;
            }
            let Some(port) = trigger.port() else {
                continue;
            };
            let claimed = claim.reserve(port).map_err(|error| (index, error))?;
            if claimed {
                let socket = self.open(port).await.map_err(|error| (index, error))?;
                claim.opened(port, socket);
            }
        }
        Ok(claim)
    }

    /// The ports that somebody had before the server was started. What cannot be opened now is tried again.
    pub async fn restore(&self, owner: &PortOwner, triggers: &[PortTrigger], limits: PortLimits) {
        self.0.ingress.limit(owner, limits);
        self.link(owner, triggers);
        for trigger in triggers {
            let Some(port) = trigger.port() else {
                continue;
            };
            let entry = Entry::new(owner.clone(), Some(trigger.clone()));
            self.0.entries.lock().insert(port, entry);
            if let Err(error) = self.try_open(port).await {
                tracing::warn!(%owner, %port, %error, "cannot open a port; trying again");
                tokio::spawn(self.clone().keep_trying(port));
            }
        }
    }

    /// Takes all ports from their owner.
    pub fn release(&self, owner: &PortOwner) {
        self.0.ingress.settle(owner, []);
        self.0.ingress.limit(owner, PortLimits::default());
        self.link(owner, &[]);
        self.0.entries.lock().retain(|_, entry| {
            let stays = entry.owner != *owner;
            if !stays {
                entry.closed.cancel();
            }
            stays
        });
    }

    async fn keep_trying(self, port: Port) {
        loop {
            tokio::time::sleep(RETRY).await;
            let is_wanted = self
                .0
                .entries
                .lock()
                .get(&port)
                .is_some_and(|entry| entry.failed.is_some());
            if !is_wanted || self.try_open(port).await.is_ok() {
                return;
            }
        }
    }

    /// Opens a port that somebody has.
    async fn try_open(&self, port: Port) -> Result<(), PortError> {
        let opened = self.socket(port).await;
        let mut entries = self.0.entries.lock();
        let Some(entry) = entries.get_mut(&port) else {
            return Ok(());
        };
        match opened {
            Ok(socket) => {
                entry.failed = None;
                let closed = entry.closed.child_token();
                if self.0.ingress.steers(port) {
                    // Clients wait for this port. Who has reached the socket before connections are steered is served there.
                    let closed = closed.clone();
                    tokio::spawn(async move {
                        closed.run_until_cancelled(tokio::time::sleep(LINGER)).await;
                        closed.cancel();
                    });
                }
                self.0.hand_on(port, socket, entry, closed);
                let owner = entry.owner.clone();
                self.0.settle(&owner, &entries);
                Ok(())
            }
            Err(error) => {
                entry.failed = Some(error.clone());
                Err(error)
            }
        }
    }

    /// Opens a port. Without a socket, its connections are steered from when it is [settled](Inner::settle); nobody else has
    /// it, which opening it for a moment has shown.
    async fn open(&self, port: Port) -> Result<Option<OwnedFd>, PortError> {
        let socket = self.socket(port).await?;
        Ok((!self.0.ingress.steers(port)).then_some(socket))
    }

    /// A socket on a port.
    async fn socket(&self, port: Port) -> Result<OwnedFd, PortError> {
        if !self.0.range.contains(&port.number) {
            return Err(PortError::Range(self.0.range.clone()));
        }
        let protocol = match port.protocol {
            Protocol::Tcp => hearth_host::protocol::Protocol::Tcp,
            Protocol::Udp => hearth_host::protocol::Protocol::Udp,
        };
        let opened = self.0.host.open_port(protocol, port.number).await;
        opened.map_err(|error| match error.owner_of_port() {
            Some(owner) => PortError::Process(owner.to_owned()),
            None => PortError::Host(reason(&error)),
        })
    }
}

/// What the kernel said.
fn reason(error: &SandboxError) -> String {
    match error {
        SandboxError::Step { detail, .. } => detail.clone(),
        other => other.to_string(),
    }
}

impl Inner {
    /// Tells the kernel which ports somebody has.
    fn settle(&self, owner: &PortOwner, entries: &HashMap<Port, Entry>) {
        let has = |entry: &Entry| {
            entry.owner == *owner && entry.trigger.is_some() && entry.failed.is_none()
        };
        let ports = entries.iter().filter(|(_, entry)| has(entry));
        self.ingress.settle(owner, ports.map(|(port, _)| *port));
    }

    fn hand_on(&self, port: Port, socket: OwnedFd, entry: &Entry, closed: CancellationToken) {
        // Whoever serves them may have ended, as everything does.
        let _ = self.begun.send(Begun::Port(Opened {
            port,
            socket,
            datagrams: self.ingress.datagrams(port),
            closed,
            counters: entry.counters.clone(),
        }));
    }
}
